"""A report in ten lines, as plain data and in notebooks; and what it cites."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import shortlist as sl
from shortlist.report.citations import bibtex, keys_of, references
from shortlist.report.model import report_of_result
from shortlist.report.report_text import report_dict, report_lines
from shortlist.strategies import names, strategy_for
from tests.questions import known, unknown
from tests.report import samples
from tests.report.reading import Strict

ROOT = Path(__file__).parents[2]
MEANS = (np.r_[np.zeros(7), np.full(3, 9.0)], np.linspace(0.4, 0.6, 10))  # an easy instance, and a hard one


@pytest.mark.parametrize("kind", sorted(samples.ALL))
def test_text_has_ten_lines_and_the_verdict_first(kind: str) -> None:
    report = samples.ALL[kind]()
    lines = report_lines(report)
    assert 6 <= len(lines) <= 10
    assert not any(set(line) & set("\n\x00\x1b\u202e") for line in lines)
    assert max(map(len, lines)) < 1500
    said = {"certified": "certified. ", "suspended": "suspended. ", "open": "not finished. "}
    assert said.get(report.state, "") in lines[0]


def test_text_says_what_came_out() -> None:
    lines = report_lines(samples.small())
    assert lines[0] == "prompts: certified. 3 of 10 arms selected."
    assert lines[1].startswith("Selected: prompt G (0.7")
    assert lines[2].startswith("With probability at least 95 %, the true mean of each of the 3 selected arms")
    assert "1,536 pulls in 28 rounds by race" in lines[3]
    assert not any("vmedelim" in line for line in lines)
    stopped = report_lines(samples.failed())
    assert stopped[0] == "furnace: suspended. 837 pulls made, and nothing is certified yet."
    assert stopped[3].startswith("Why it stopped: arm-17 failed four times.")
    assert "To resume: shortlist run FILE.toml --name furnace --strategy level-race --seed 7" in stopped


def test_one_is_one_and_less_than_the_least_is_explained() -> None:
    question = sl.Problem(m=1, epsilon=10.0, delta=0.4, variances=[1.0, 1.0])
    session = sl.Session(question, "uniform")
    session.tell(session.ask()[0], means=0.0)
    assert session.result.effort.startswith("1 pull by uniform")
    easy, hard = (samples.told(samples.fresh(samples.problem()), means).result for means in MEANS)
    assert (easy.gap or 0) < 1 < (hard.gap or 0)
    assert easy.optimality.endswith("by chance, or if its means are easier than the worst case.")
    assert hard.optimality.endswith("times the lower bound.")


def test_words_of_a_failure_stand_on_one_line() -> None:
    (said,) = [line for line in report_lines(samples.failed()) if line.startswith("Why it stopped")]
    assert "ended with status 1: trace" in said
    assert "Measured by: rig-2 (50 %)" in " ".join(report_lines(samples.failed()))


@pytest.mark.parametrize("kind", sorted(set(samples.ALL) - {"large"}))
def test_plain_data_are_json(kind: str) -> None:
    report = samples.ALL[kind]()
    data = json.loads(json.dumps(report_dict(report), allow_nan=False))
    assert data["state"] == report.state
    assert data["result"] == json.loads(json.dumps(report.result.to_dict()))
    assert data["origin"]["began"] <= data["origin"]["changed"]


# --- notebooks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(samples.ALL))
def test_results_show_themselves_in_notebooks(kind: str) -> None:
    result = samples.ALL[kind]().result
    html = result._repr_html_()
    read = Strict(html)
    assert [one.tag for one in read.elements if not one.within] == ["div"]
    assert read.elements[0].attributes == {"class": "shortlist"}
    assert len(html) < 100_000
    for rule in re.findall(r"(?:^|\})\s*([^{}@]+)\{", re.sub(r"/\*.*?\*/", "", read.words("style"))):
        assert all(part.strip().startswith(".shortlist") for part in rule.split(",") if part.strip()), rule
    if result.guarantee is not None:
        assert result.guarantee.sentence in read.words()


def test_notebooks_need_no_database() -> None:
    program = (
        "import sys, shortlist as sl\n"
        "problem = sl.Problem(m=1, epsilon=0.5, delta=0.05, variances=[1.0, 1.0])\n"
        "result = sl.select(lambda arm, count, rng: rng.normal(arm, 1.0, count), problem)\n"
        "assert 'shortlist.report.fragment' not in sys.modules\n"
        "assert '1 of 2 arms selected' in result._repr_html_()\n"
        "assert 'sqlalchemy' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- citations ------------------------------------------------------------------------------------


def test_the_bibliography_is_that_of_the_documentation() -> None:
    text = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    assert (ROOT / "src/shortlist/report/references.bib").read_text(encoding="utf-8") == text
    assert sorted(references()) == sorted(re.findall(r"^@\w+\{(\w+),", text, flags=re.MULTILINE))
    assert all(entry in text for entry in references().values())
    assert sum(map(len, references().values())) >= len(text) - 3 * len(references())


@pytest.mark.parametrize("kind", ["known", "unknown"])
def test_every_source_has_its_entry(kind: str) -> None:
    numbers = {"m": 1, "epsilon": 0.5, "delta": 0.05}
    question: sl.Problem = unknown(**numbers, n=3)  # type: ignore[arg-type]
    if kind == "known":
        question = known(**numbers, variances=[1.0] * 3, noise="gaussian")  # type: ignore[arg-type]
    for name in names(kind):
        rules = strategy_for(name, question)
        promise = rules.guarantee(question)
        named = re.findall(r"\[(\w+)\]", f"{rules.source} {promise.source if promise else ''}")
        if rules.unfit(question):
            continue
        result = sl.Session(question, name).result
        assert set(keys_of(result)) == set(named) | ({"ZT22"} if kind == "known" else set())
        entries = re.findall(r"^@\w+\{(\w+),", bibtex(result), flags=re.MULTILINE)
        assert entries == [*keys_of(result), "shortlist"]


def test_reports_of_results_alone_say_how_to_have_them_again() -> None:
    result = samples.small().result
    assert 'shortlist.select(measure, problem, "race", seed=7)' in report_lines(report_of_result(result))[-2]


@pytest.mark.slow
def test_reprs_are_short_and_notebooks_show_html() -> None:
    names = [f"<u>{arm}</u>" for arm in range(3000)]
    problem = sl.Problem(m=2000, epsilon=0.5, delta=0.1, variances=[1.0] * 3000, names=names)
    session = sl.Session(problem, "race")
    session.tell(session.ask(), means=np.arange(3000.0))
    result = session.result
    assert repr(result).startswith("Result(selected=['<u>2999</u>', '<u>2998</u>', ")
    assert f"stop=OPEN, certified_epsilon={result.certified_epsilon:g}, n_pulls={result.n_pulls}" in repr(
        result
    )
    counts = "n_in={}, n_open={}, n_out={})".format(
        *(session.certified.statuses.count(status) for status in ("in", "open", "out"))
    )
    assert repr(session.certified).endswith(counts)
    assert repr(sl.plan(problem)).startswith("Plan(best='")
    for thing in (problem, session, result, result.arms, session.certified, sl.plan(problem)):
        assert len(repr(thing)) < 300
    few = sl.Problem(m=2, epsilon=0.5, delta=0.1, variances=[1.0] * 5, names=names[:5])
    ended = sl.select(lambda arm, count, rng: rng.normal(arm, 1.0, count), few)
    assert ended.certificate is not None
    for part in (session, result, session.certified, sl.plan(few), ended, ended.certificate, sl.Session(few)):
        html = part._repr_html_()
        assert "<u>" not in html
        Strict(f"<!DOCTYPE html><html><body>{html}</body></html>")
    assert "&lt;u&gt;2999" in session._repr_html_()
    assert "usually about" in sl.plan(few)._repr_html_()
    assert "✓ Certified" in ended.certificate._repr_html_()
    assert "Certified, but not yet to within 0.5" in session.certified._repr_html_()
    assert "Nothing certified yet" in sl.Session(few).certified._repr_html_()
