"""Numbers as people type them: a comma never means something else because of a count."""

import pytest

from shortlist.errors import InvalidAnswers
from shortlist.session.result_sheet import read_results
from shortlist.session.sheet_format import read_sheet
from shortlist.session.typed_numbers import typed_rewards
from tests.session.typed import TYPED


@pytest.mark.parametrize(("text", "wanted", "outcome"), TYPED)
def test_rewards_are_read_in_one_way_or_refused(text: str, wanted: int, outcome: list[float] | str) -> None:
    if isinstance(outcome, list):
        assert typed_rewards("line 2", text, wanted) == outcome
    else:
        with pytest.raises(InvalidAnswers) as caught:
            typed_rewards("line 2", text, wanted)
        assert str(caught.value).startswith("line 2: ")
        assert outcome in str(caught.value)


def test_a_single_comma_is_refused_where_the_number_of_pulls_is_unknown() -> None:
    with pytest.raises(InvalidAnswers, match="can be read as 2 rewards"):
        typed_rewards("line 2", "26,8")


@pytest.mark.parametrize("between", [";", "\t"])
def test_numbers_of_a_sheet_may_have_decimal_commas(between: str) -> None:
    def read(*rows: str) -> list[float | None]:
        text = "\n".join(rows).replace("|", between)
        return [value for one in read_sheet(text.encode()) for value in (one.mean, one.variance)]

    assert read("ticket|mean|variance", "a|6,8|1,234", "b|7.5|2") == [6.8, 1.234, 7.5, 2.0]
    with pytest.raises(InvalidAnswers, match=r"line 2: the variance is '1,234'; write 1\.234 or 1234\."):
        read("ticket|mean|variance", "a|6.8|1,234")


def test_one_reward_on_each_line_may_have_a_decimal_comma() -> None:
    (entry,) = read_sheet(b"ticket;reward\na;26,8\na;25,125\n")
    assert entry.rewards == [26.8, 25.125]


def test_results_from_elsewhere_may_have_decimal_commas() -> None:
    sheet = read_results(b"arm;pulls;mean\nA;200;0,125\nB;300;0,5\n")
    assert (sheet.counts, sheet.means) == ((200, 300), (0.125, 0.5))
    with pytest.raises(InvalidAnswers, match="the mean is '12,345'; write"):
        read_results(b"variant\tvisitors\tmean\nA\t12,345\t12,345\n")


GROUPED = [
    "13,934",
    "13.934",
    "13 934",
    "13'934",
    "13’934",
    "13\u00a0934",
    "13\u202f934",
    "13934",
    "13934.0",
    "1.3934e4",
]


@pytest.mark.parametrize("text", GROUPED)
def test_counts_may_have_separators_of_thousands(text: str) -> None:
    sheet = read_results(f"variant\tvisitors\tconversions\nA\t{text}\t60\nB\t1,234,567\t1.000\n".encode())
    assert (sheet.counts, sheet.successes) == ((13934, 1234567), (60, 1000))
    (entry,) = read_sheet(f"ticket\tpulls\tcount\tmean\nx\t{text}\t{text}\t0,5\n".encode())
    assert (entry.count, entry.mean) == (13934, 0.5)
    assert read_results(f'arm,n,wins\nA,"{text}",60\n'.encode()).counts == (13934,)


@pytest.mark.parametrize(
    "text", ["13.93", "1,2,3", "1,23,456", "1.234,567", "0,123", "1234.567", "1204.000", "-5", "1e999", "x"]
)
def test_other_separators_in_counts_are_refused_with_their_line(text: str) -> None:
    for header in ("variant\tconversions\tvisitors", "variant\tn\twins"):
        with pytest.raises(
            InvalidAnswers, match=r"line 3: the entry for (visitors|wins) is .*such as 13934 or 13,934"
        ):
            read_results(f"{header}\nA\t9\t9\nB\t9\t{text}\n".encode())
    with pytest.raises(InvalidAnswers, match=r"line 2: the entry for count is .*such as 13934"):
        read_sheet(f"ticket\tcount\tmean\nx\t{text}\t1\n".encode())


@pytest.mark.parametrize("arm", ["page", "Variant", "arm", "option", "Name"])
@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("rate", "0.0462"),
        ("rate", "4.62"),
        ("Conversion Rate", "4.6%"),
        ("conversion_rate", "4,622 %"),
        ("CTR (%)", "4.62"),
        ("CTR", "5%"),
        ("ctr", ""),
        ("bounce rate", "70%"),
    ],
)
def test_a_rate_beside_successes_is_ignored_if_it_is_theirs(arm: str, header: str, text: str) -> None:
    sheet = read_results(f"{arm};visitors;conversions;{header}\nA;1190;55;{text}\nB;0;0;-\n".encode())
    assert (sheet.arms, sheet.successes, sheet.means) == (("A", "B"), (55, 0), None)


@pytest.mark.parametrize(
    ("header", "text"),
    [("rate", "0.0472"), ("Rate", "4.7"), ("CTR", "0.0462%"), ("conversion rate", "4.63 %"), ("CTR", "n/a")],
)
def test_a_rate_that_is_not_that_of_successes_is_refused(header: str, text: str) -> None:
    with pytest.raises(InvalidAnswers) as caught:
        read_results(f"page;visitors;conversions;{header}\nB;100;7;7%\nA;1190;55;{text}\n".encode())
    assert f"line 3: the {header} is {text!r}, but 55 of 1,190 are 4.622 %." in str(caught.value)
    with pytest.raises(InvalidAnswers, match="there is both a column of means and of successes"):
        read_results(b"page;visitors;conversions;mean\nB;100;7;0.07\n")
