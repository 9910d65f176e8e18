"""BibTeX entries for the strategy, the proof and the lower bound of a run."""

import re
from functools import lru_cache
from importlib.metadata import version
from importlib.resources import files

from shortlist.result import Result
from shortlist.strategies import strategy_for

_KEY = re.compile(r"\[([A-Z]+[0-9]{2})\]")
_ENTRY = re.compile(r"^@\w+\{(\w+),\n.*?^\}$", flags=re.MULTILINE | re.DOTALL)
_OURS = """@software{shortlist,
  author  = {{The Shortlist developers}},
  title   = {Shortlist: approximate top-m arm identification with guarantees},
  version = {%s},
  year    = {2026},
}"""


@lru_cache(maxsize=1)
def references() -> dict[str, str]:
    """Return all entries of the bibliography, by key."""
    text = (files("shortlist.report") / "references.bib").read_text(encoding="utf-8")
    return {found[1]: found[0] for found in _ENTRY.finditer(text)}


def keys_of(result: Result) -> list[str]:
    """Return the keys of the references that a result cites, in order of first mention.

    If variances are known, this includes the paper whose algorithms the result is compared with.
    """
    rules = strategy_for(result.strategy, result.problem)
    promise = rules.guarantee(result.problem)
    named = f"{rules.source}; {'' if promise is None else promise.source}"
    if result.problem.knows_variances:
        named += "; [ZT22]"
    return list(dict.fromkeys(_KEY.findall(named)))


def software() -> str:
    """Return the entry of this software."""
    return _OURS % version("shortlist")


def bibtex(result: Result) -> str:
    """Return the BibTeX entries that a result cites, and one for this software, which completes proofs."""
    entries = [references()[key] for key in keys_of(result)]
    return "\n\n".join([*entries, software()]) + "\n"
