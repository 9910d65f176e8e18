"""One HTML file for each kind of run: well-formed, safe, of bounded size, and saying what the result says."""

import re
from collections.abc import Iterator
from xml.etree import ElementTree

import numpy as np
import pytest

import shortlist as sl
from shortlist.report.model import Report
from shortlist.report.page import page
from shortlist.report.shown_arms import MOST_ROWS
from shortlist.report.verdict import certificate, headline
from tests.report import samples
from tests.report.reading import Strict
from tests.report.samples import append, fresh, problem, report_of, told

KINDS = sorted(samples.ALL)


@pytest.fixture(params=KINDS)
def report(request: pytest.FixtureRequest) -> Report:
    """Return one run of each kind."""
    return samples.ALL[request.param]()


def pictures(html: str) -> Iterator[str]:
    """Yield all pictures, outer ones only."""
    depth, start = 0, 0
    for found in re.finditer(r"<svg[^>]*>|</svg>", html):
        if found[0] == "</svg>":
            depth -= 1
            if depth == 0:
                yield html[start : found.end()]
        else:
            start = found.start() if depth == 0 else start
            depth += 1


def test_a_page_is_well_formed(report: Report) -> None:
    read = Strict(page(report))
    assert [one.tag for one in read.elements if not one.within] == ["html"]
    assert [one.tag for one in read.elements].count("h1") == 1
    assert read.words("title").startswith((report.origin.run[:20]) if report.origin else "Shortlist")


def test_a_page_loads_nothing_and_runs_nothing(report: Report) -> None:
    html = page(report)
    allowed = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    read = Strict(html)
    metas = [one.attributes for one in read.elements if one.tag == "meta"]
    assert {"http-equiv": "Content-Security-Policy", "content": allowed} in metas
    tags = {one.tag for one in read.elements}
    assert not tags & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "a",
        "use",
        "image",
    }
    for one in read.elements:
        assert not [name for name in one.attributes if name.startswith("on")], one
        assert not one.attributes.keys() & {"src", "href", "srcset", "xlink:href", "action", "data"}, one
        assert "url(" not in one.attributes.get("style", "")
    style = read.words("style")
    assert "url(" not in style
    assert "@import" not in style


def test_pictures_are_xml_and_say_what_they_show(report: Report) -> None:
    for picture in pictures(page(report)):
        root = ElementTree.fromstring(picture)
        name = "{http://www.w3.org/2000/svg}"
        assert root.tag == f"{name}svg"
        assert root.attrib["role"] == "img"
        title, description = root.findtext(f"{name}title"), root.findtext(f"{name}desc")
        assert title
        assert description
        assert root.attrib["aria-label"] == f"{title}. {description}"
        for element in root.iter():
            assert element.tag.startswith(name)
            for key in ("x", "x1", "x2", "cx", "y", "y1", "y2", "cy", "width", "height", "r"):
                value = element.attrib.get(key, "0")
                assert re.fullmatch(r"-?[0-9.]+%?", value), (key, value)
                if value.endswith("%"):
                    assert 0 <= float(value[:-1]) <= 100, (key, value)


def test_figures_are_called_by_their_titles(report: Report) -> None:
    read = Strict(page(report))
    named = [one.attributes["aria-label"] for one in read.elements if one.tag == "figure"]
    assert named == re.findall(r"<h3>(.*?)</h3>", page(report))
    inner = [one for one in read.elements if one.tag == "svg" and "svg" in one.within]
    assert all(one.attributes["aria-hidden"] == "true" for one in inner)


def test_every_figure_has_its_numbers_beside_it(report: Report) -> None:
    read = Strict(page(report))
    figures = [one for one in read.elements if one.tag == "figure"]
    tables = [
        one for one in read.elements if one.tag == "table" and one.within[-3:-1] == ("figure", "details")
    ]
    assert len(figures) == len(tables) >= (report.result.n_pulls > 0)


def test_the_verdict_is_that_of_the_result(report: Report) -> None:
    result = report.result
    read = Strict(page(report))
    said = read.words("h1", "bdi")
    numbers = [int(number.replace(",", "")) for number in re.findall(r"[0-9][0-9,]*", headline(report))]
    k, n = len(result.indices), result.problem.n
    expected = [n] if k == n else [k, n] if report.is_finished else [result.n_pulls]
    assert numbers == expected
    assert headline(report) in read.words("h1")
    if result.guarantee is not None:
        assert result.guarantee.sentence in certificate(report)
    else:
        assert re.search("Nothing is certified|nothing is certified|has no guarantee", certificate(report))
    lead = " ".join(read.words().split())
    assert " ".join(certificate(report).split()) in lead
    assert f"{result.n_pulls:,} pull" in lead
    assert said


def test_there_is_a_bounded_number_of_rows_and_marks(report: Report) -> None:
    read = Strict(page(report))
    names = [one for one in read.elements if one.tag == "li" and "ol" in one.within]
    assert len(names) <= MOST_ROWS + 1 + 5  # and the cut, and five bounds
    assert sum(one.tag == "circle" for one in read.elements) <= MOST_ROWS + 1
    assert sum(one.tag == "tr" for one in read.elements) < 400


def test_a_page_of_very_many_arms_is_small() -> None:
    html = page(samples.large())
    assert len(html.encode()) < 200_000
    read = Strict(html)
    result = samples.large().result
    text = read.words()
    left = result.problem.n - MOST_ROWS + 2  # two rows stand for all the others
    more = [
        int(number.replace(",", "")) for number in re.findall(r'<li class="left">([0-9,]+) more arms', html)
    ]
    assert sum(more) == left
    for arm in (*result.indices[:10], *result.indices[-19:]):
        assert result.problem.name(int(arm)) in text
    assert "Means of all arms" in text
    assert "Pulls of all arms" in text


def test_hostile_names_stay_names() -> None:
    report = samples.hostile()
    html = page(report)
    read = Strict(html)
    assert "<script" not in html
    assert "<img" not in html
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", html)
    html.encode("utf-8")
    assert "\ufffe" not in html
    titles = [one.attributes["title"] for one in read.elements if "title" in one.attributes]
    assert "a" * 10_000 in titles
    assert len(html) < 120_000  # long names are there in full once
    bdi = [text for where, text in read.texts if where == "bdi"]
    assert "<script>alert('x')</script>" in bdi
    assert "two\\nlines\\r\\nand\\ttabs" in bdi
    assert "nothing\\x00in between\\x1b[31m" in bdi
    assert max(map(len, bdi)) <= 2000
    assert not re.search("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", html), "no name turns words around"


def test_names_stand_in_the_rows_of_their_arms() -> None:
    report = samples.small()
    result = report.result
    names = re.findall(r"<li><bdi>(.*?)</bdi></li>", page(report))
    merits = np.where(np.isin(np.arange(10), result.indices), 10, 0) + result.arms.means
    assert names == [result.problem.name(int(arm)) for arm in np.argsort(-merits)]


def test_a_run_that_stopped_says_why_and_how_to_go_on() -> None:
    text = Strict(page(samples.failed())).words()
    assert "arm-17 failed four times" in text
    assert "shortlist run FILE.toml --name furnace --strategy level-race --seed 7" in text
    assert text.index("Health") < text.index("The arms"), "warnings come first"
    assert "7 pulls of 837 (0.8 %) failed and were scored as 0" in text
    assert "8 answers contradict an earlier one, which is kept" in text
    assert "and 3 more" in text
    text = Strict(page(samples.interrupted())).words()
    assert "shortlist ask 'field trial' -o tickets.csv" in text
    assert "Nothing is certified yet" in text
    assert "leading arms so far" in text
    assert "To resume" not in Strict(page(samples.small())).words()


def test_provenance_is_complete() -> None:
    report = samples.small()
    assert report.origin is not None
    text = Strict(page(report)).words()
    for part in (
        report.result.problem.digest,
        "race: ",
        "race adapts to the rewards. It needs at most",
        "Seed7",
        f"by Shortlist {sl.__version__}",
        f"ticket prefix {report.origin.code}",
        'shortlist.select(measure, problem, "race", seed=7)',
        "@inproceedings{ZT22,",
        "@software{shortlist,",
        "rewards are independent, the mean of each arm is constant, and rewards are sub-Gaussian",
    ):
        assert part in text, part


def test_rows_of_tables_have_headings_and_columns_names(report: Report) -> None:
    read = Strict(page(report))
    rows = [one for one in read.elements if one.tag == "tr" and one.within[-1] == "tbody"]
    headings = [one for one in read.elements if one.tag == "th" and one.attributes["scope"] == "row"]
    assert len(rows) == len(headings)
    assert '<th scope="col"></th>' not in page(report)


def test_the_assumptions_stand_beside_the_certificate(report: Report) -> None:
    html = page(report)
    top = html[html.index("<header>") : html.index("</header>")]
    assert ("This assumes that rewards are independent" in top) == (report.promise is not None)


def test_an_unfinished_run_says_how_far_it_is() -> None:
    text = Strict(page(samples.interrupted())).words()
    assert "Round 2 is in progress: 11 of its 22 tickets have no answer yet." in text
    text = Strict(page(samples.begun())).words()
    assert "Round 0 is in progress: 10 of its 10 tickets have no answer yet; 10 arms have not been" in text
    assert "is in progress" not in Strict(page(samples.small())).words()


def test_a_run_that_is_suspended_is_not_called_healthy() -> None:
    session = told(fresh(problem()), np.linspace(0, 1, 10), rounds=1)
    append(session, sl.store.Suspended("no power", "run@lab:77:abcdef"))
    text = Strict(page(report_of(session))).words()
    assert "No warnings" not in text
    assert "Warning: The run was suspended by process 77 on lab" in text
    assert text.index("Health") < text.index("The arms")


def test_pulls_by_round_are_those_that_were_made() -> None:
    report = samples.interrupted()
    last = re.findall(r"<tr>(.*?)</tr>", page(report)[page(report).index("Arms pulled in each round") :])[3]
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", last)
    assert (cells[0], cells[1], cells[3]) == ("2", "22", f"{report.result.n_pulls:,}")


def test_arms_that_were_not_pulled_are_neither_behind_nor_shown_one_by_one() -> None:
    session = fresh(problem(6, 2))
    session.tell(session.ask()[:3], means=[0.1, 0.2, 0.3])
    html = page(report_of(session))
    assert html.count(">not pulled yet</text>") == 3
    assert html.count("<td>not pulled yet</td><td>–</td><td>–</td><td>0</td>") == 3
    session = fresh(problem(200, 2))
    session.tell(session.ask()[:9], means=np.linspace(0, 1, 9))
    html = page(report_of(session))
    assert '<li class="left">191 not pulled yet</li>' in html
    assert '<th scope="row">191 not pulled yet</th><td>–</td>' in html
    assert "<h3>Means of all arms that were pulled</h3>" in html
    assert html.count("<li><bdi") == 9


def test_a_few_whole_numbers_have_a_column_each() -> None:
    session = fresh(problem(200, 2, variances=np.linspace(0.25, 0.5, 200)))
    pulls = session.ask().counts
    session.tell(session.ask(), means=np.linspace(0, 1, 200))
    assert 1 < len(set(pulls.tolist())) < 30
    html = page(report_of(session))
    part = html[html.index("Pulls of all arms") :]
    (path,) = re.findall(r' d="([^"]*)"', part[: part.index("</figure>")])
    assert path.count("L") - 1 == pulls.max() - pulls.min() + 1


def test_histograms_count_every_arm_once() -> None:
    html = page(samples.large())
    part = html[html.index("Pulls of all arms") :]
    rows = re.findall(r'<th scope="row">([^<]*)</th><td>([0-9,]+)</td></tr>', part[: part.index("</figure>")])
    pulls = samples.large().result.arms.pulls
    assert sum(int(count.replace(",", "")) for _, count in rows) == len(pulls)
    ends = [int(one.replace(",", "")) for label, _ in rows for one in dict.fromkeys(label.split(" to "))]
    assert ends == sorted(set(ends)), "no number of pulls is in two of them"
    assert (ends[0], ends[-1]) == (pulls.min(), pulls.max())
