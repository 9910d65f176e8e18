"""Every guarantee lists what the sections that it cites assume, and says it in words."""

import itertools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.adapters import summary
from shortlist.certificates import Guarantee
from shortlist.certificates.assumptions import WORDS, in_words, listed
from shortlist.certificates.guarantee import at_least
from shortlist.report import verdict
from shortlist.report.fragment import certificate_html
from shortlist.report.model import report_of_run
from shortlist.session.run_changes import words_on_larger
from shortlist.strategies import names, strategy_for
from tests.docs.pages import ROOT, text_of
from tests.questions import known, unknown

QUESTIONS = {
    "variances": known(1, 0.3, 0.05, [1.0, 1.0, 2.0]),
    "Gaussian": known(1, 0.3, 0.05, [1.0, 1.0, 2.0], noise="gaussian"),
    "equal Gaussian": known(1, 0.3, 0.05, [1.0] * 3, noise="gaussian"),
    "indifference": known(1, 0.3, 0.05, [1.0] * 3, noise="gaussian", guarantee="indifference"),
    "unknown": unknown(1, 0.3, 0.05, 3),
    "binary": sl.Problem(1, 0.3, 0.05, n=3, rewards=sl.Bernoulli()),
    "graded": sl.Problem(1, 0.3, 0.05, n=3, rewards=sl.Bounded(1, 5)),
    "own bounds": sl.Problem(1, 0.3, 0.05, rewards=sl.Bounded([0, 0], [1, 2])),
    "items": sl.Problem(1, 0.3, 0.05, n=3, rewards=sl.Bernoulli(), items=40),
    "population": sl.Problem(1, 0.3, 0.05, n=3, rewards=sl.Bernoulli(), items=40, target="population"),
    "blocks": sl.Problem(1, 0.3, 0.05, n=3, rewards=sl.Gaussian(), items=sl.Blocks()),
    "bounded blocks": sl.Problem(1, 0.3, 0.05, n=3, rewards=sl.Bernoulli(), items=sl.Blocks()),
}
ALL_NAMES = dict.fromkeys(itertools.chain(*map(names, ("known", "unknown", "items", "changing"))))


def listed_in_theory() -> dict[int, dict[str, set[str]]]:
    """The ids in each section's lines, by the kind of question in brackets; "" for every kind."""
    found: dict[int, dict[str, set[str]]] = {}
    for page in sorted((ROOT / "docs" / "theory").glob("*.md")):
        section = 0
        for line in page.read_text(encoding="utf-8").splitlines():
            section = int(line[3:].partition(".")[0]) if line.startswith("## ") else section
            if match := re.fullmatch(r"Assumes(?: \((\w+)\))?: ((?:`[\w-]+`(?:, )?)+)\.\\?", line):
                own = found.setdefault(section, {})
                assert own.setdefault(match[1] or "", ids := set(re.findall(r"[\w-]+", match[2]))) is ids
                assert ids <= WORDS.keys()
            else:
                assert not line.startswith("Assumes")
    return found


THEORY = listed_in_theory()


def promises() -> list[Any]:
    """Every guarantee of a strategy for a question that it accepts."""
    found = []
    for (kind, problem), name in itertools.product(QUESTIONS.items(), ALL_NAMES):
        try:
            rules = strategy_for(name, problem)
        except sl.errors.InvalidProblem:
            continue
        if not rules.unfit(problem) and (promise := rules.guarantee(problem)) is not None:
            found.append(pytest.param(promise, problem, id=f"{name}-{kind}"))
    return found


def cited(source: str) -> list[int]:
    numbers: list[int] = []
    for first, joint, last in re.findall(r"sections? (\d+)(?: (and|to) (\d+))?", source):
        numbers += (
            range(int(first), int(last) + 1) if joint == "to" else map(int, filter(None, (first, last)))
        )
    return numbers


@pytest.mark.parametrize(("promise", "problem"), promises())
def test_a_guarantee_lists_what_its_sections_assume(promise: Guarantee, problem: sl.Problem) -> None:
    sections = cited(promise.source.partition("docs/theory.md")[2])
    assert sections
    kind = "blocks" if problem.has_blocks else problem.target if problem.target == "population" else "items"
    expected: set[str] = set()
    for section in [31] if 31 in sections else sections:  # it says that it replaces what others assume
        lines = THEORY[section]
        expected |= lines.get("", set()) | (lines.get(kind, set()) if problem.items is not None else set())
    if problem.is_bounded and "sub-gaussian-stated" in expected:  # as section 1 says
        expected |= {"within-bounds"}
    if expected & {"within-bounds", "gaussian-equal"}:  # either implies it
        expected -= {"sub-gaussian-stated"}
    assert set(promise.assumptions) == expected
    assert len(promise.assumptions) == len(expected)
    assert promise.to_dict()["assumptions"] == list(promise.assumptions)
    assert promise.words == in_words(problem, promise.assumptions)
    assert f"provided that {promise.assumption}." in str(promise)


def test_every_section_with_assumptions_is_cited_and_every_kind_of_question_is_tried() -> None:
    assert {number for one in promises() for number in cited(one.values[0].source)} >= THEORY.keys()
    tried = [one.id for one in promises()]
    assert all(any(str(one).endswith(f"-{kind}") for one in tried) for kind in QUESTIONS)
    assert len(tried) > 100


def test_the_page_on_theory_has_the_words_of_every_assumption() -> None:
    terms = {"rewards": "rewards", "values": "lie within the declared bounds", "over": ""}
    rows = dict(re.findall(r"^\| `([\w-]+)` \| (.+?) \|", text_of("docs/theory.md"), re.MULTILINE))
    assert rows == {
        one: words.format(**terms, looked="rewards taken in this order") for one, words in WORDS.items()
    }


def test_words_are_one_plain_sentence() -> None:
    said = {kind: strategy_for("race", QUESTIONS[kind]).guarantee(QUESTIONS[kind]) for kind in ("graded",)}
    assert said["graded"] is not None
    assert said["graded"].assumption == (
        "rewards are independent, the mean of each arm is constant, and rewards lie between 1 and 5"
    )
    assert listed(("a", "b")) == "a, and b"
    assert listed(("a",)) == "a"


def test_an_assumption_is_added_once() -> None:
    problem = QUESTIONS["binary"]
    promise = strategy_for("race", problem).guarantee(problem)
    assert promise is not None
    twice = promise.provided(problem, "not-withdrawn", "constant-means").provided(problem, "not-withdrawn")
    assert twice.assumptions == (*promise.assumptions, "not-withdrawn")
    assert twice.assumption.endswith("are 0 or 1, and no answer was withdrawn because of its value")


# --- a lead that turns half-way ---------------------------------------------------------------------------


def turned(problem: sl.Problem, strategy: str, seed: int) -> sl.Result:
    """A run in which arm 0 leads for the first 1,000 pulls or blocks, and lies far behind for ever after."""
    rng, seen = np.random.default_rng(seed), np.zeros(problem.n, dtype=np.int64)
    lead, spread = (0.8, 0.0) if problem.is_bounded else (1.0, 0.5)

    def measure(arm: int, pulls: Any, *_: Any) -> Any:
        count = len(pulls) if problem.items is not None else pulls
        places = np.arange(seen[arm], seen[arm] + count)
        seen[arm] += count
        is_ahead = (places < 1000) == (arm == 0)
        if problem.is_bounded:
            return rng.binomial(1, np.where(is_ahead, 0.5 + lead / 2, 0.5 - lead / 2)).astype(float)
        return np.where(is_ahead, lead, 0.0) + spread * rng.standard_normal(count)

    result = sl.select(measure, problem, strategy, seed=seed)
    assert seen.max() < 1000
    return result


@pytest.mark.parametrize(
    ("kind", "strategy", "excluding"),
    [
        ("variances", "race", "constant-means"),
        ("variances", "level-race", "constant-means"),
        ("equal Gaussian", "single-stage", "constant-means"),
        ("unknown", "paired-race", "constant-means"),
        ("unknown", "t-cut-race", "constant-means"),
        ("unknown", "t-race", "constant-means"),
        ("binary", "race", "constant-means"),
        ("graded", "race", "constant-means"),
        ("blocks", "paired-race", "constant-differences"),
        ("bounded blocks", "shared-items", "constant-differences"),
    ],
)
def test_a_lead_that_turns_is_excluded_by_an_assumption(kind: str, strategy: str, excluding: str) -> None:
    problem = QUESTIONS[kind]
    if kind == "graded":
        problem = problem.changed(rewards=sl.Bounded(0, 1))
    if kind == "blocks":
        problem = problem.changed(epsilon=0.5)
    for seed in range(3):
        result = turned(problem, strategy, seed)
        assert result.selected == ("arm-0",)  # wrong on average over 3,000 pulls or more
        assert result.guarantee is not None
        assert excluding in result.guarantee.assumptions
        assert WORDS[excluding] in str(result)


# --- epsilon, rounded up ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [
        (0.02, "0.02"),
        (1.0, "1"),
        (0.1 + 0.2, "0.3"),
        (1.0000004, "1.00001"),
        (0.12345649, "0.123457"),
        (1234567.0, "1.23457e+06"),
        (999999.6, "1e+06"),
        (np.float64(1 / 3), "0.333334"),
        (5e-324, "4.94066e-324"),
    ],
)
def test_a_certified_epsilon_is_rounded_up(epsilon: float, said: str) -> None:
    assert at_least(epsilon) == said
    assert float(at_least(epsilon)) >= epsilon * (1 - 1e-12)
    assert float(at_least(epsilon, 3)) >= epsilon * (1 - 1e-12)


def test_no_sentence_rounds_epsilon_down() -> None:
    problem = QUESTIONS["variances"].changed(epsilon=1.0000004)
    for name in ("race", "medelim"):
        promise = strategy_for(name, problem).guarantee(problem)
        assert promise is not None
        assert "at most 1.00001 below" in promise.sentence
    gaussian = QUESTIONS["indifference"].changed(epsilon=1.0000004)
    promise = strategy_for("kn", gaussian).guarantee(gaussian)
    assert promise is not None
    assert "by at least 1.00001" in promise.sentence
    block = strategy_for("block-race", QUESTIONS["binary"]).guarantee(QUESTIONS["binary"])
    assert block is not None
    assert "at most 0.300001 better" in replace(block, epsilon=0.3000004).sentence


def test_no_view_rounds_a_certified_epsilon_down() -> None:
    problem = QUESTIONS["binary"].changed(epsilon=0.001)
    session = sl.Session(problem, "race")
    session.feed([0, 1, 2], [4000] * 3, successes=[3000, 1000, 1000], label="monday")
    session.feed([1], [10], successes=[9])
    result = session.result
    assert result.certificate is not None
    certificate = replace(result.certificate, epsilon=0.1234412, epsilons=np.array([0.1234412]))
    result = replace(result, certificate=certificate)
    assert "at most 0.1235 below" in summary.promise(result, item="row")
    report = replace(report_of_run("main", session.history, session.records), result=result)
    assert "to within 0.123442" in verdict.headline(replace(report, state="open"))
    assert ">0.1235<" in certificate_html(certificate)
    said = words_on_larger(session.history, "main", 1.0000004)
    assert "An epsilon of 1.00001 is certified already" in said
