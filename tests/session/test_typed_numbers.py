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
    with pytest.raises(InvalidAnswers, match="the visitors is '12,345'; write"):
        read_results(b"variant\tvisitors\tconversions\nA\t12,345\t60\n")
