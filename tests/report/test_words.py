"""Numbers, names and pictures in detail."""

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shortlist as sl
from shortlist.report import text_format as markup
from shortlist.report.svg import Picture, Scale
from shortlist.report.text_format import (
    compact,
    large,
    mean_words,
    percent,
    power_words,
    powers,
    tick_words,
    ticks,
)
from shortlist.report.verdict import status_words

NUMBERS = st.floats(-1e100, 1e100).filter(lambda value: value == 0 or abs(value) > 1e-100)


@given(NUMBERS, NUMBERS, st.integers(2, 6))
def test_ticks_are_round_and_lie_within(one: float, other: float, most: int) -> None:
    low, high = sorted((one, other))
    found = ticks(low, high, most)
    assert len(found) <= most
    slack = 1e-8 * (high - low)
    assert all(low - slack <= tick <= high + slack for tick in found)
    if len(found) > 1:
        step = found[1] - found[0]
        digits = step / 10 ** math.floor(math.log10(step) + 1e-9)
        assert min(abs(digits - k) for k in (1, 2, 5, 10)) < 1e-5


@pytest.mark.parametrize("most", [3, 4, 5])
@given(low=st.floats(-1e6, 1e6), width=st.floats(1e-3, 1e6))
def test_there_are_ticks_and_their_labels_differ(most: int, low: float, width: float) -> None:
    found = ticks(low, low + width, most)
    assert found
    labels = tick_words(found)
    assert len(set(labels)) == len(labels) or width < 1e-4 * abs(low)


@given(st.floats(1e-2, 1e18), st.floats(1.5, 1e18))
def test_logarithmic_ticks_lie_within(low: float, factor: float) -> None:
    found = powers(low, low * factor, 5)
    assert 0 < len(found) <= 5 or factor < 2.5
    assert all(low * (1 - 1e-6) <= tick <= low * factor * (1 + 1e-6) for tick in found)
    assert found == sorted(set(found))
    assert len(set(map(power_words, found))) == len(found)


def test_numbers_are_written_as_people_write_them() -> None:
    assert [mean_words(0.123456, epsilon) for epsilon in (0.1, 0.5, 1.0, 100.0, 1e-9)] == [
        *("0.123", "0.123", "0.12", "0", "0.123456"),
    ]
    assert (mean_words(math.nan, 0.1), mean_words(-1e12, 0.1), mean_words(1234.5, 1.0)) == (
        *("–", "-1e+12", "1,234.50"),
    )
    assert [percent(share) for share in (0, 0.0001, 0.0049, 0.05, 0.123, 1)] == [
        *("0 %", "below 0.1 %", "0.5 %", "5.0 %", "12 %", "100 %"),
    ]
    assert (large(1234.4), large(3e14)) == ("1,234", "3e+14")
    assert [power_words(value) for value in (0.1, 1, 2, 1000, 1e4, 1e12)] == [
        *("10⁻¹", "1", "2", "1,000", "10⁴", "10¹²"),
    ]
    assert [compact(value) for value in (0, 9000, 20_000, 1.5e6)] == ["0", "9,000", "20k", "1.5M"]


@given(st.text(max_size=80), st.integers(5, 60))
def test_any_name_is_safe_and_short(text: str, most: int) -> None:
    html = markup.name(text, most, titled=True)
    read = ElementTree.fromstring(html)  # so it is XML, too, with every character allowed there
    assert read.tag == "bdi"
    assert len(read.text or "") <= most
    seen = markup.visible(text)
    assert (read.text or "") == seen or read.attrib["title"] == seen
    assert "\n" not in html
    plain = markup.plain_name(text, most)
    assert len(plain) <= most
    assert not set(plain) & set("\x00\x1b\n\u202e\u2066\u200f")
    ElementTree.fromstring(f"<p title='{markup.words(text)}'>{markup.words(text)}</p>")


def test_names_for_terminals_turn_and_control_nothing() -> None:
    assert markup.plain_name("a\u202eb\u2066c\u200fd\x1b[31m") == "a\ufffdb\ufffdc\ufffdd\\x1b[31m"


def test_long_names_lose_their_middle() -> None:
    assert markup.shortened("abcdefghij", 10) == "abcdefghij"
    assert markup.shortened("abcdefghijk", 10) == "abcde…hijk"
    assert 'title="abcdefghijk"' in markup.name("abcdefghijk", 10, titled=True)
    assert "title" not in markup.name("abcdefghijk", 10)


@given(NUMBERS, NUMBERS, NUMBERS, st.booleans())
def test_a_scale_keeps_everything_in_the_picture(
    one: float, other: float, value: float, is_log: bool
) -> None:
    low, high = sorted((abs(one) + 1, abs(other) + 1)) if is_log else sorted((one, other))
    scale = Scale(low, high, is_log)
    assert 0 <= scale(value) <= 1
    assert scale(low) <= scale(high)


def test_labels_fit_into_the_room_there_is() -> None:
    for high in (3.0, 40_000.0, 1e15):
        labels = [label for _, label in Scale(0.0, high).ticks(12)]
        assert sum(map(len, labels)) + 2 * len(labels) <= 12 or len(labels) == 1


def test_words_in_pictures_are_escaped() -> None:
    picture = Picture(10, "a < b", "c & \"d'")
    picture.text(0, 5, "<b>&")
    root = ElementTree.fromstring(picture.render())
    assert "".join(root.itertext()) == "a < bc & \"d'<b>&"


def test_a_certificate_names_arms_of_each_kind() -> None:
    problem = sl.Problem(m=1, epsilon=0.1, delta=0.05, variances=[1.0] * 3, names=["A", "B", "C"])
    words = [
        status_words(sl.certify(problem, counts=[count] * 3, means=[1.9, 1.0, 2.0]))
        for count in (1, 100, 100_000)
    ]
    assert words == [
        "For epsilon 0.1: in (certified): none; open (undecided): C, A, B; out (can be dropped): none.",
        "For epsilon 0.1: in (certified): none; open (undecided): C, A; out (can be dropped): B.",
        "For epsilon 0.1: in (certified): C; open (undecided): none; out (can be dropped): A, B.",
    ]
    many = sl.Problem(m=6, epsilon=0.1, delta=0.05, variances=[1.0] * 14, names=list("ABCDEFGHIJKLMN"))
    found = sl.certify(many, counts=[100_000] * 14, means=[*range(14)])
    assert status_words(found) == (
        "For epsilon 0.1: in (certified): N, M, L, K, J, I; open (undecided): none; "
        "out (can be dropped): A, B, C, D, E, and 3 more."
    )
