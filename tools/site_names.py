"""How docstrings are shown: names in single backticks as links, and short names for types of arrays."""

import re
from typing import Any

from docutils import nodes
from numpy.typing import ArrayLike
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.typing import stringify_annotation

import shortlist
from shortlist.arrays import BoolArray, FloatArray, IntArray

PUBLIC = frozenset(shortlist.__all__) - {"__version__", "errors", "instances", "plot", "strategies"}
_ARRAYS = {"ArrayLike": ArrayLike, "FloatArray": FloatArray, "IntArray": IntArray, "BoolArray": BoolArray}


def name_role(
    _name: str, _raw: str, text: str, _line: int, _inliner: Any, *_: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Return what stands for a word in backticks."""
    code = nodes.literal(text, text)
    first = text.removeprefix("shortlist.").split(".")[0]
    if first not in PUBLIC or "." in text.removeprefix("shortlist."):
        return [code], []
    target = f"shortlist.{first}"
    return [addnodes.pending_xref("", code, refdomain="py", reftype="obj", reftarget=target)], []


def short_signature(
    _app: Sphinx,
    _what: str,
    _name: str,
    _thing: Any,
    _options: Any,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Return a signature with the names that our own sources use for types of arrays."""
    return _short(signature), _short(returns)


def _short(text: str | None) -> str | None:
    for name, kind in _ARRAYS.items():
        text = text.replace(stringify_annotation(kind, "smart"), name) if text else text
    return text


class PlainColons(SphinxTransform):
    """Put a colon between a parameter and what is said of it, where Sphinx puts two hyphens."""

    default_priority = 400

    def apply(self, **_options: Any) -> None:
        """Replace the hyphens."""
        for text in list(self.document.findall(nodes.Text)):
            if text == " -- ":
                text.parent.replace(text, nodes.Text(": "))


def right_links(app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """Let sources lead back to their entries, also where those stand under the names of several modules.

    Sphinx assumes one module for all entries of a source file; of `bounds/complexity.py` one is a public name
    of the package, and the other is found in `shortlist.bounds`.
    """
    entries = app.env.domains.python_domain.objects

    def found(link: re.Match[str]) -> str:
        name = link[2].removeprefix("shortlist")
        place = next(
            (entry for entry in (link[2], *entries) if entry in entries and entry.endswith(name)), link[2]
        )
        return f"{link[1]}{place}{link[3]}"

    if page.startswith("_modules/"):
        context["body"] = re.sub(r'(class="viewcode-back" href="[^"#]*#)([^"]*)(")', found, context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect all this."""
    app.add_role("name", name_role)
    app.add_transform(PlainColons)
    app.connect("autodoc-process-signature", short_signature)
    app.connect("html-page-context", right_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
