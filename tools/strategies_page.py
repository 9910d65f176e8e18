"""Write docs/strategies.md: what each strategy does, promises and asks for, as the registry has it.

`make docs-reference` runs it. What a strategy promises is found by asking it questions of several kinds.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shortlist import Bernoulli, Blocks, Gaussian, Problem, SubGaussian
from shortlist.certificates import Scope
from shortlist.strategies import Strategy, names, strategy_for, strategy_named
from tools.theory import sections

ROOT = Path(__file__).parent.parent
TARGET = Path("docs") / "strategies.md"
_HEAD = """# Strategies

Written by `make docs-reference` from the strategies themselves; do not edit.
[How to choose](choosing.md) says when to take which; as a rule leave `strategy="auto"`.
A strategy of your own can be tried without registering it: `sl.simulate(problem, means, MY_STRATEGY)`; see
[Adding a strategy](../CONTRIBUTING.md#adding-a-strategy).

- **promise**: *m best*, whatever the means: each selected arm is within epsilon of the m-th best. *If clear*:
  the m best are selected if they lie at least epsilon above all others (`guarantee="indifference"`).
  *Screen*: the arms are only narrowed down, to more than m arms that still include contenders for each of the
  m places. *By block*: for each selected arm, at most m - 1 other arms are more than epsilon better in every
  block.
- **noise**: *any* is `rewards=SubGaussian(variances)`, or `variances` alone, where the variances are upper
  bounds; *Gaussian* is `rewards=Gaussian(variances)`, where they are the exact variances
  (for `gaussian-single-stage`, upper bounds will do).
- **cap**: whether the maximum number of pulls is known before anything is measured. **rounds**: how many
  batches, one after the other; *several* are up to some dozens or hundreds.
"""
_WORDS = {
    Scope.TOP_M: "m best",
    Scope.EVERY_BLOCK: "by block",
    Scope.CORRECT: "if clear",
    Scope.SCREENING: "screen",
}
_QUESTIONS = [  # the weaker assumption first
    Problem(m=m, epsilon=0.5, delta=0.05, rewards=kind(variances))
    for kind in (SubGaussian, Gaussian)
    for variances in ([1.0, 1.0, 2.0, 3.0, 5.0, 8.0], [1.0] * 6)
    for m in (2, 1)
]
_ITEMS = [Problem(m=m, epsilon=0.5, delta=0.05, n=6, rewards=Bernoulli(), items=9) for m in (2, 1)]
_BLOCKS = [Problem(m=m, epsilon=0.5, delta=0.05, n=6, rewards=Bernoulli()) for m in (2, 1)]
_SHARED = [Problem(m=m, epsilon=0.5, delta=0.05, n=6, rewards=Gaussian(), items=Blocks()) for m in (2, 1)]
_UNKNOWN = [Problem(m=m, epsilon=0.5, delta=0.05, n=6, rewards=Gaussian()) for m in (2, 1)]


def build() -> str:
    """Return the text of docs/strategies.md."""
    known, baselines = ("\n".join(_rows(is_baseline=wanted)) for wanted in (False, True))
    own = [name for name in names("unknown") if name not in names()]
    others = [name for name in names("unknown") if name in names() and _takes(name)]
    return f"""{_HEAD}
## For known variances

| name | what it does | m | promise | noise | cap | rounds | source |
|---|---|---|---|---|---|---|---|
{known}

## For unknown variances

For [unknown variances](unknown-variances.md): Gaussian rewards. `paired-race` and `t-cut-race` have no
cap; the others begin with a pilot, and their cap is known after it.

| name | what it does | m | promise | source |
|---|---|---|---|---|
{chr(10).join(_row(name, _UNKNOWN) for name in own)}

These work on upper bounds that a pilot gives for all variances at once, so they need more pulls:
{_listed(others)}.

## For shared items

For [a fixed set of items](shared-items.md) that every arm is scored on. The cap is the whole table.

| name | what it does | m | promise | source |
|---|---|---|---|---|
{chr(10).join(_row(name, _ITEMS) for name in names("items") if _fits(name, _ITEMS[0]))}

## For blocks

For [conditions that all arms share](common-random-numbers.md), such as the random numbers of simulations.
Rewards are Gaussian, their variances unknown, and arms may depend on each other within a block. There is no
cap. If rewards have bounds, `shared-items` takes blocks.

| name | what it does | m | promise | source |
|---|---|---|---|---|
{chr(10).join(_row(name, _SHARED) for name in names("items") if _fits(name, _SHARED[0]))}

## For means that change

For rewards of 0 or 1, or within bounds, whose means [change from day to day](ab-test.md). There is no cap.

| name | what it does | m | promise | source |
|---|---|---|---|---|
{chr(10).join(_row(name, _BLOCKS) for name in names("changing"))}

## Baselines

To compare other strategies with; the race needs fewer pulls.

| name | what it does | m | promise | noise | cap | rounds | source |
|---|---|---|---|---|---|---|---|
{baselines}
"""


def _rows(*, is_baseline: bool) -> Iterator[str]:
    for name in names():
        strategy = strategy_named(name)
        if strategy.is_baseline != is_baseline:
            continue
        question = next((q for q in _QUESTIONS if not strategy.unfit(q) and strategy.guarantee(q)), None)
        asked = question or _QUESTIONS[0]
        noise = "any" if asked.noise == "sub-gaussian" else "Gaussian"
        if noise == "Gaussian" and len(set(asked.variances)) == 1:
            noise += ", equal variances"
        cap = "none" if strategy.worst_case_pulls(asked) is None else "yes"
        cells = [_m(strategy, _QUESTIONS), _promise(strategy, asked), noise, cap, _rounds(strategy)]
        yield f"| `{name}` | {strategy.summary} | {' | '.join(cells)} | {_source(strategy.source)} |"


def _row(name: str, questions: list[Any]) -> str:
    strategy = strategy_for(name, questions[0])
    cells = [_m(strategy, questions), _promise(strategy, questions[-1]), _source(strategy.source)]
    return f"| `{name}` | {strategy.summary} | {' | '.join(cells)} |"


def _fits(name: str, question: Any) -> bool:
    return not strategy_for(name, question).unfit(question)


def _takes(name: str) -> bool:
    return not strategy_for(name, _UNKNOWN[-1]).unfit(_UNKNOWN[-1])


def _m(strategy: Strategy[Any], questions: list[Any]) -> str:
    return "any" if any(q.m > 1 and not strategy.unfit(q) for q in questions) else "1"


def _promise(strategy: Strategy[Any], question: Any) -> str:
    found = strategy.guarantee(question)
    return "none" if found is None else _WORDS[found.scope]


def _rounds(strategy: Strategy[Any]) -> str:
    """Return how many rounds a question with many arms of many variances takes, in words."""
    many = Problem(m=1, epsilon=0.5, delta=0.05, variances=[2.0 ** (arm % 8) for arm in range(64)])
    most = strategy.n_rounds(many)
    return "many" if most is None else "1" if most == 1 else "several"


def _source(text: str) -> str:
    """Return where a strategy is defined, with links to sections of docs/theory.md."""
    links = sections(ROOT / "docs")
    escaped = text.replace("[", r"\[").replace("]", r"\]")
    return re.sub(
        r"docs/theory\.md, (sections?) (\d+)",
        lambda found: f"[{found[1]} {found[2]}]({links[found[2]]})",
        escaped,
    )


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main() -> None:
    """Write the file."""
    (ROOT / TARGET).write_text(build(), encoding="utf-8")


if __name__ == "__main__":
    main()
