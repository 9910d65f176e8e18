"""Faults in what guarantees say: their assumptions, and epsilon in words."""

from tools.faults.fault import Fault

_ASSUMPTIONS = "certificates/assumptions.py"
_GUARANTEE = "certificates/guarantee.py"
_ITEMS = "strategies/shared_items.py"

FAULTS = (
    *(
        Fault(
            f"guarantee: means may change where rewards are {what}",
            _ASSUMPTIONS,
            f'{name} = ("independent", "constant-means", ',
            f'{name} = ("independent", ',
        )
        for name, what in (
            ("SUB_GAUSSIAN", "sub-Gaussian"),
            ("\nGAUSSIAN", "Gaussian"),
            ("EQUAL_GAUSSIAN", "Gaussian with equal variances"),
            ("UNKNOWN_VARIANCES", "Gaussian with unknown variances"),
            ("BOUNDED", "within bounds"),
        )
    ),
    Fault(
        "guarantee: mean differences of Gaussian rewards may change from block to block",
        _ASSUMPTIONS,
        'PAIRED = ("gaussian-differences", "constant-differences", ',
        'PAIRED = ("gaussian-differences", ',
    ),
    Fault(
        "guarantee: mean differences of rewards within bounds may change from block to block",
        _ITEMS,
        '("constant-differences", "independent-differences", "question-first")',
        '("independent-differences", "question-first")',
    ),
    Fault(
        "guarantee: the question may follow from scores in the same order",
        _ITEMS,
        '("fixed-scores", "question-first") if is_pool',
        '("fixed-scores",) if is_pool',
    ),
    Fault(
        "guarantee: a question about a population may follow from scores on the same items",
        _ITEMS,
        '("fixed-scores", "items-drawn", "fresh-items")',
        '("fixed-scores", "items-drawn")',
    ),
    Fault(
        "guarantee: within blocks, rewards may depend on each other",
        "certificates/block_totals.py",
        'assumptions = "docs/theory.md, section 42", ("independent", "within-bounds")',
        'assumptions = "docs/theory.md, section 42", ("within-bounds",)',
    ),
    Fault(
        "guarantee: an assumption is said twice",
        _GUARANTEE,
        "if one not in self.assumptions",
        "if one",
    ),
    Fault(
        "guarantee: its ids are not in its data",
        _GUARANTEE,
        '            "assumptions": list(self.assumptions),\n',
        "",
    ),
    Fault(
        "client: what is assumed is what the strategy assumes by itself",
        "client/questions.py",
        'assumptions=tuple(data.get("assumptions", ())), words=',
        "words=",
    ),
    Fault(
        "guarantee: epsilon is rounded to the nearest number",
        _GUARANTEE,
        "    if float(nearest) >= epsilon * (1 - 1e-12):",
        "    if nearest:",
    ),
    Fault(
        "guarantee: a rounding error raises epsilon in words",
        _GUARANTEE,
        "epsilon * (1 - 1e-12)",
        "epsilon",
    ),
    *(
        Fault(f"guarantee: epsilon is rounded down {where}", file, right, wrong)
        for where, file, right, wrong in (
            ("in its sentence", _GUARANTEE, "at most {at_least(self.epsilon)}", "at most {self.epsilon:g}"),
            (
                "in other sentences",
                _GUARANTEE,
                "epsilon=at_least(self.epsilon),",
                "epsilon=f'{self.epsilon:g}',",
            ),
            (
                "in every block",
                _GUARANTEE,
                "at most {at_least(epsilon)} better",
                "at most {epsilon:g} better",
            ),
            (
                "in headlines",
                "report/verdict.py",
                "{at_least(result.certified_epsilon)}",
                "{result.certified_epsilon:g}",
            ),
            (
                "in summaries",
                "adapters/summary.py",
                "at_least(result.certified_epsilon, 4)",
                "result.certified_epsilon:.4g",
            ),
            ("in notebooks", "report/fragment.py", "at_least(epsilon, 4)", 'f"{epsilon:.4g}"'),
            (
                "of a larger one",
                "session/run_changes.py",
                "{at_least(epsilon)} is certified",
                "{epsilon:g} is certified",
            ),
        )
    ),
    Fault(
        "a smaller epsilon: what it was chosen by is not named",
        "session/state.py",
        '("epsilon-unseen",) * self.is_narrowed_late',
        '("epsilon-unseen",) * 0',
    ),
    Fault(
        "a smaller epsilon: whole rows may have decided about it",
        "session/state.py",
        "is_ahead = self.ahead or (self.reached >= self.problem.n_items).any()",
        "is_ahead = self.ahead",
    ),
    Fault(
        "a smaller epsilon: scores that were measured ahead may have decided about it",
        "session/state.py",
        "is_ahead = self.ahead or (self.reached",
        "is_ahead = (self.reached",
    ),
    Fault(
        "a smaller epsilon: a second one forgets the first",
        "session/state.py",
        "self.is_narrowed_late = self.is_narrowed_late or bool(is_ahead)",
        "self.is_narrowed_late = bool(is_ahead)",
    ),
    Fault(
        "a smaller epsilon: named for populations too",
        "session/state.py",
        'if self.problem.has_pool and self.problem.target == "pool":',
        "if self.problem.has_pool:",
    ),
)
