"""`feed`, `certify`, `stop`, `withdraw`: results as they come in, and an honest word at any moment."""

import io
import json
import threading
import time

import numpy as np
import pytest

import shortlist as sl
from shortlist import Session
from shortlist.errors import NoSuchRun, StoreTrouble
from tests.cli.calling import QUESTION, SIMULATED, Calls

PAGE = """
[problem]
m = 1
epsilon = 0.01
delta = 0.05
names = ["control", "short", "video"]
rewards = "bernoulli"
"""
RATES = {"control": 0.04, "short": 0.042, "video": 0.056}
EPSILON = ["--epsilon", "0.01"]
BOUNDS = ["--bounds", "0", "1"]
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def week(call: Calls) -> dict[str, dict[str, tuple[int, int]]]:
    """Write a file for each day; return visitors and conversions by day and variant."""
    rng, found = np.random.default_rng(8), dict[str, dict[str, tuple[int, int]]]()
    for day in DAYS:
        sizes = {name: int(rng.integers(500, 900)) for name in RATES}
        found[day] = {name: (size, int(rng.binomial(size, RATES[name]))) for name, size in sizes.items()}
        sheet(call, day, found[day])
    return found


def sheet(call: Calls, day: str, rows: dict[str, tuple[int, int]]) -> str:
    lines = [f"{name},{visitors},{hits}" for name, (visitors, hits) in rows.items()]
    return call.write(f"{day}.csv", "\n".join(["variant,visitors,conversions", *lines, ""]))


def test_a_week_of_a_team_with_two_files_sent_twice_and_one_corrected(call: Calls) -> None:
    days = week(call)
    call.write("page.toml", PAGE)
    begun = call("begin", "page.toml")
    assert "shortlist feed page results.csv" in begun.words
    statuses = [call("feed", "page", f"{day}.csv").status for day in DAYS[:4]]
    assert call("feed", "page", "tue.csv").words.startswith(
        "0 rows added; 3 already known under the label tue.csv."
    )
    visitors, hits = days["wed"]["short"]
    sheet(call, "wed", days["wed"] | {"short": (visitors, hits + 9)})
    days["wed"]["short"] = (visitors, hits + 9)
    doubted = call("feed", "page", "wed.csv")
    assert doubted.status == 2
    assert "1 of 3 rows would replace earlier ones" in doubted.err
    corrected = call("feed", "page", "wed.csv", "--yes")
    assert corrected.words.startswith("0 rows added; 2 already known; 1 corrected under the label wed.csv.")
    for day in (*DAYS[4:], "sun"):
        last = call("feed", "page", f"{day}.csv")
        statuses.append(last.status)
    totals = {name: np.array([days[day][name] for day in DAYS]).sum(axis=0) for name in RATES}
    data = call("feed", "page", "mon.csv", "--json").data
    assert data["rows"] == {"new": 0, "known": 3, "corrected": 0}
    assert data["n_fed"] == sum(int(total[0]) for total in totals.values())
    lines = [f"{name},{total[0]},{total[1]}" for name, total in totals.items()]
    call.write("all.csv", "\n".join(["variant,visitors,conversions", *lines]))
    whole = call("certify", "all.csv", "--epsilon", "0.01", "--json")
    assert whole.data["epsilon"] == data["certificate"]["epsilon"]
    assert whole.data["selected"] == data["certificate"]["selected"] == ["video"]
    assert whole.data["statuses"] == data["arms"]
    assert whole.status == 0
    assert set(statuses) == {0}
    assert "no more results are needed" in last.words
    report = call("report", "page").words
    assert "1 fed row corrected: short, wed.csv" in report
    assert "the mean of each arm is constant" in report
    assert call("report", "page", "-o", "page.html").status == 0
    assert call("replay", "page").status == 0
    assert f"{data['n_fed']:,}" in call("list").words


def test_before_the_end_it_says_what_can_be_dropped_and_where_to_go_on(call: Calls) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    sheet(call, "mon", {"control": (3000, 30), "short": (1000, 45), "video": (1000, 55)})
    done = call("feed", "page", "mon.csv")
    assert done.status == 0
    assert "Best certified so far: video." in done.words
    assert "(asked: 0.01)" in done.words
    assert (
        "Can be dropped (at least one correct selection contains none of them): control. A dropped arm may "
        "be open again later; it then needs pulls again."
    ) in done.words
    assert "The next round asks for" in done.words
    assert "More rounds may follow." in done.words
    assert "control" not in done.words.partition("Divide them as follows")[2].partition(".")[0]
    assert "Best certified so far: video." in call("status", "page").words
    assert "5,000 fed" in call("status", "page").words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("variant,visitors\ncontrol,10\n", "neither a column of means"),
        ("variant,conversions\ncontrol,10\n", "no column `pulls`"),
        ("visitors,conversions\n10,1\n", "no column `arm`"),
        ("variant,name,visitors,conversions\na,b,10,1\n", "mean the same"),
        ("variant,visitors,conversions\nother,10,1\n", "line 2: there is no arm 'other'"),
        ("variant,visitors,conversions\nshort,ten,1\n", "line 2: the entry for visitors is 'ten'"),
        ("variant,visitors,conversions\nshort,10\n", "line 2 has 2 cells"),
        ("variant,visitors,conversions\nshort,10,11\n", "11 successes in 10"),
        ("variant,visitors,conversions\nshort,10,1\nshort,10,1\n", "two rows of short"),
        ("variant,visitors,conversions,day\nshort,10,1,\n", "line 2 has no label"),
        ("", "it must have a header"),
    ],
)
def test_a_wrong_file_adds_nothing_and_says_why(call: Calls, text: str, message: str) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    call.write("day.csv", text)
    done = call("feed", "page", "day.csv")
    assert done.status == 2
    assert message in done.err
    assert "day.csv: " in done.err
    assert call("status", "page", "--json").data["certificate"]["epsilon"] is None


def test_a_slip_of_the_hand_asks_for_a_second_look(call: Calls) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    sheet(call, "mon", {"control": (3000, 120), "short": (3000, 130), "video": (3000, 170)})
    call("feed", "page", "mon.csv")
    sheet(call, "tue", {"control": (3000, 1200), "short": (3000, 135), "video": (3000, 175)})
    done = call("feed", "page", "tue.csv")
    assert done.status == 2
    assert "control: the mean 0.4 differs from the earlier mean 0.04" in done.err
    assert "--yes" in done.err
    assert call("feed", "page", "tue.csv", "--yes").words.startswith("3 rows added under the label tue.csv.")


def test_a_correction_under_another_name_says_how_to_correct(call: Calls) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    sheet(call, "wed 1", {"control": (3012, 120), "short": (2987, 130), "video": (3001, 170)})
    call("feed", "page", "wed 1.csv")
    sheet(call, "fixed", {"control": (3012, 122), "short": (2987, 133), "video": (3001, 171)})
    done = call("feed", "page", "fixed.csv")
    assert done.status == 2
    said = " ".join(done.err.split())
    assert "The numbers of rewards are the same as those under the label wed 1.csv, for all arms." in said
    assert said.endswith(
        "If these rows correct the rows labelled 'wed 1.csv': "
        "`shortlist feed page fixed.csv --label 'wed 1.csv'`. "
        "If they are for another day, repeat the command with --yes."
    )
    call.write(
        "days.csv",
        "day,variant,visitors,conversions\nwed,control,3012,122\nwed,short,2987,133\nwed,video,3001,1",
    )
    assert "If these rows correct the rows labelled 'wed 1.csv', give them that label." in " ".join(
        call("feed", "page", "days.csv").err.split()
    )
    corrected = call("feed", "page", "fixed.csv", "--label", "wed 1.csv")
    assert corrected.words.startswith("0 rows added; 3 corrected under the label wed 1.csv.")


@pytest.mark.parametrize("again", ["21.03.2026", "21/03/2026", "03/21/2026", "2026/3/21", "2026-03-21.csv"])
def test_a_date_in_another_format_is_doubted(call: Calls, again: str) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    numbers = {"control": (1204, 49), "short": (1189, 51), "video": (1233, 60)}
    changed = {"control": (1214, 50), "short": (1190, 51), "video": (1235, 61)}
    call("feed", "page", sheet(call, "mon", numbers), "--label", "2026-03-21")
    file = sheet(call, "tue", changed)
    done = call("feed", "page", file, "--label", again)
    assert done.status == 2
    assert f"The label {again} is the same date as the label 2026-03-21, which has rows already." in done.err
    assert f"rows labelled '2026-03-21': `shortlist feed page {file} --label 2026-03-21`." in done.err
    assert "3 corrected" in call("feed", "page", file, "--label", "2026-03-21", "--yes").words


@pytest.mark.parametrize("other", ["03/04/2026", "2026-04-03", "2026-03-22", "21.13.2026", "the 21st"])
def test_a_date_that_may_be_another_one_is_not_doubted(call: Calls, other: str) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    for day, label in enumerate(("21.03.2026", "04/03/2026", other)):
        file = sheet(call, "day", {"control": (1204 + day, 49), "short": (1189 + day, 51)})
        again = call("feed", "page", file, "--label", label)
        assert again.status == 0, again.err


def test_a_date_in_another_format_is_right_for_other_arms(call: Calls) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    call("feed", "page", sheet(call, "mon", {"control": (1204, 49)}), "--label", "2026-03-21")
    file = sheet(call, "mon", {"short": (1189, 51)})
    assert call("feed", "page", file, "--label", "21.03.2026").status == 0


def test_rows_that_would_be_replaced_are_named_with_their_old_and_new_numbers(call: Calls) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    sheet(call, "mon", {"control": (1204, 49), "short": (1190, 55), "video": (1223, 74)})
    call("feed", "page", "mon.csv")
    sheet(call, "mon", {"control": (1310, 50), "short": (1190, 55), "video": (0, 0)})
    refused = " ".join(call("feed", "page", "mon.csv").err.split())
    assert "2 of 3 rows would replace earlier ones, with other numbers, under the label mon.csv:" in refused
    assert "control, 49 of 1,204 before, 50 of 1,310 now; video, 74 of 1,223 before, nothing now." in refused
    sheet(call, "mon", {"control": (1310, 900), "short": (1190, 55), "video": (1223, 74)})
    call("feed", "page", "mon.csv", "--yes")
    sheet(call, "tue", {"control": (1204, 49), "short": (1200, 55), "video": (1223, 74)})
    call("feed", "page", "tue.csv", "--yes")
    sheet(call, "tue", {"control": (1310, 1305), "short": (1200, 55), "video": (1223, 74)})
    both = " ".join(call("feed", "page", "tue.csv").err.split())
    assert "standard errors" in both, "a doubt about a mean"
    assert "49 of 1,204 before, 1,305 of 1,310 now" in both, "does not hide what would be replaced"


def test_a_label_that_has_no_effect_is_refused_and_is_no_consent_to_replace_rows(call: Calls) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    rows = "control,1204,49\nmon,short,1190,55\nmon,video,1223,74\n"
    for column in ("date", "label", "block"):
        text = f"{column},variant,visitors,conversions\nmon,{rows}"
        call.write("days.csv", text)
        refused = call("feed", "page", "days.csv", "--label", "monday")
        assert refused.status == 2
        assert (
            f"it has labels of its own (column `{column}`), so --label has no effect. Omit it. To replace "
            f"rows, use --yes. Nothing was added."
        ) in " ".join(refused.err.split())
    assert call("feed", "page", "days.csv").status == 0
    call.write("days.csv", text.replace("49", "59"))
    for words in ((), ("--label", "")):
        assert "1 of 3 rows would replace" in call("feed", "page", "days.csv", *words).err
    assert "1 corrected" in call("feed", "page", "days.csv", "--yes").words
    plain = sheet(call, "mon", {"control": (1210, 49)})
    assert "1 corrected" in call("feed", "page", plain, "--label", "mon").words


@pytest.mark.parametrize(
    "lines",
    [
        ["arm,n,wins", "control,100,4", "short,101,9", "video,99,5", "Total,300,18"],
        ["date,arm,n,wins", "m,control,50,1", "m,short,40,2", "m,Total,90,3", "t,short,7,1", "t,control,9,1"],
        ["date,arm,n,wins", "m,control,50,1", "m,short,40,2", ",,106,5", "t,short,7,1", "t,control,9,1"],
        ["arm,n,rate,clicks", "control,100,4%,4", "short,100,7%,7", "all,200,5.5%,11"],
    ],
)
def test_a_row_of_totals_is_skipped_with_a_note(call: Calls, lines: list[str]) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    call.write("days.csv", "\n".join(lines))
    done = call("feed", "page", "days.csv")
    assert done.status == 0
    (where,) = (k for k, line in enumerate(lines, 1) if any(name in line for name in ("Total", "all", ",,")))
    name = "without a name" if ",," in lines[where - 1] else "all" if "all" in lines[where - 1] else "Total"
    assert f"Row {name} (line {where}) is skipped: it is the sum of the others." in done.words
    again = call("feed", "page", "days.csv", "--json").data
    assert again["rows"] == {"new": 0, "known": len(lines) - 2, "corrected": 0}
    assert again["skipped"].startswith(f"Row {name}")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ["arm,n,wins", "control,100,4", "short,101,9", "Total,201,14"],
            "it has 201 rewards and 14 successes, the others have 201 and 13.",
        ),
        (
            ["arm,n,rate", "control,100,.04", "short,100,.08", "Total,1200,.06"],
            "it has 1,200 rewards with the mean 0.06, the others have 200 with 0.06.",
        ),
        (
            ["date,arm,n,wins", "m,control,50,1", "m,short,40,2", "t,Total,90,4"],
            "it has 90 rewards and 4 successes, the others have 90 and 3.",
        ),
        (
            ["date,arm,n,wins", "m,control,50,1", "t,control,50,1", "t,short,40,2", "t,Total,90,4"],
            "it has 90 rewards and 4 successes, the others of t have 90 and 3.",
        ),
    ],
)
def test_a_row_of_totals_that_does_not_add_up_is_refused(call: Calls, lines: list[str], said: str) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    call.write("days.csv", "\n".join(lines))
    options = ["--epsilon", "0.1", *(["--bounds", "0", "1"] if "rate" in lines[0] else [])]
    for done in (call("feed", "page", "days.csv"), call("certify", "days.csv", *options)):
        assert done.status == 2
        assert f"line {len(lines)}: row Total does not add up: {said}" in done.err


@pytest.mark.parametrize("last", ["shrt,100,4", "all,201,14", "Total,100,4"])
def test_other_rows_of_no_arm_are_refused(call: Calls, last: str) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    rest = [] if last.startswith("Total") else ["short,101,9"]
    call.write("days.csv", "\n".join(["arm,n,wins", "control,100,4", *rest, last]))
    done = call("feed", "page", "days.csv")
    assert done.status == 2
    assert "there is no arm" in done.err
    assert "the arms are control, short, video." in " ".join(done.err.split())


def test_an_arm_with_the_sum_of_all_others_counts(call: Calls) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    file = sheet(call, "mon", {"control": (200, 9), "short": (100, 4), "video": (100, 5)})
    data = call("feed", "page", file, "--json").data
    assert (data["rows"]["new"], data["n_fed"], data["skipped"]) == (3, 400, "")


def test_several_rows_of_totals_are_skipped(call: Calls) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    days = [f"{day},{row}" for day in DAYS for row in ("control,50,1", "short,40,2", "Total,90,3")]
    call.write("week.csv", "\n".join(["date,arm,n,wins", *days, "Total,Total,630,21"]))
    said = call("feed", "page", "week.csv").words
    assert said.startswith("14 rows added under 7 labels.")
    assert "8 rows are skipped, which are sums of others: Total (line 4), Total (line 7), " in said


@pytest.mark.parametrize("n", [6, 7])
def test_the_last_arm_is_named_if_it_is_only_one_more(call: Calls, n: int) -> None:
    names = [f"arm {letter}" for letter in "abcdefg"[:n]]
    call.write("page.toml", PAGE.replace('["control", "short", "video"]', json.dumps(names)))
    call("begin", "page.toml")
    file = sheet(call, "mon", dict.fromkeys(names, (300, 12)))
    said = call("feed", "page", file).words
    divided = said.partition("Divide them as follows")[2].partition(". More rounds")[0]
    assert (divided.count("%"), "and 2 more" in divided) == ((6, False) if n == 6 else (5, True))
    unknown = " ".join(call("feed", "page", sheet(call, "tue", {"other": (300, 12)})).err.split())
    assert f"the arms are {', '.join(names if n == 6 else [*names[:5], '...'])}." in unknown


def test_so_does_an_answer_by_hand(call: Calls) -> None:
    call.write("trial.toml", QUESTION.replace("bounds = [0.0, 1.0]", "variances = [1.0, 1.0, 1.0]"))
    call("begin", "trial.toml")
    assert call.tell([row | {"mean": 1.0} for row in call.sheet()]).status == 0
    rows = [row | {"mean": 1.0} for row in call.sheet()]
    rows[0]["mean"] = 100.0
    done = call.tell(rows)
    assert done.status == 2
    assert "data-entry error" in done.err
    assert call("status", "trial", "--json").data["n_open"] == len(rows)
    assert call.tell(rows, "--yes").status == 0


def test_results_without_labels_need_one_from_standard_input(
    call: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")

    class Stdin(io.TextIOWrapper):
        pass

    text = b"variant,visitors,conversions\nshort,10,1\n"
    monkeypatch.setattr("sys.stdin", Stdin(io.BytesIO(text)))
    done = call("feed", "page", "-")
    assert done.status == 2
    assert "give a label" in done.err
    monkeypatch.setattr("sys.stdin", Stdin(io.BytesIO(text)))
    assert call("feed", "page", "-", "--label", "x").words.startswith("1 row added under the label x.")


def test_other_strategies_refuse_results(call: Calls) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml", "--strategy", "wnelim", "--name", "page")
    sheet(call, "mon", {"control": (3000, 120)})
    done = call("feed", "page", "mon.csv")
    assert done.status == 2
    assert "wnelim certifies nothing for results" in done.err
    assert "block-race if means change from day to day" in done.err


# --- certify ----------------------------------------------------------------------------------------


def test_certify_says_what_means_prove(call: Calls) -> None:
    call.write("scores.csv", "arm,pulls,mean\nA,400,0.61\nB,400,0.82\nB,100,0.8\nC,300,0.55\n")
    done = call("certify", "scores.csv", "--epsilon", "0.1", "--bounds", "0", "1")
    assert done.status == 0
    assert "Best certified so far: B" in done.words
    assert call("certify", "scores.csv", "-m", "2", "--epsilon", "0.001", "--bounds", "0", "1").status == 3
    assert call("certify", "scores.csv", "--epsilon", "0.1", "--variance", "0.04").status == 0
    least = call("certify", "scores.csv", "--epsilon", "0.1", "--variance", "0.04", "--minimise", "--json")
    assert least.data["selected"] == ["C"]
    for wrong in ([], ["--bounds", "0", "0.5"], ["--bounds", "0", "1", "--variance", "1"]):
        assert call("certify", "scores.csv", "--epsilon", "0.1", *wrong).status == 2


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        (["arm,pulls,successes", "A,100,4", "B,101,9", "C,99,5", "Total,300,18"], []),
        (["arm,pulls,successes", "Total,300,18", "A,100,4", "B,200,14"], []),
        (["day,arm,pulls,successes", "mon,A,50,1", "tue,A,50,3", "mon,B,90,8", "Total,Total,190,12"], []),
        (["arm,pulls,mean", "A,100,0.61", "B,100,0.82", "C,200,0.55", "Total,400,0.63"], BOUNDS),
    ],
)
def test_certify_skips_a_row_of_totals_with_a_note(call: Calls, lines: list[str], options: list[str]) -> None:
    file = call.write("week.csv", "\n".join(lines))
    done = call("certify", file, "--epsilon", "0.05", *options)
    where = next(number for number, line in enumerate(lines, 1) if "Total" in line)
    note = f"Row Total (line {where}) is skipped: it is the sum of the others."
    assert done.words.startswith(f"{note} ")
    skipping = call("certify", file, "--epsilon", "0.05", *options, "--json").data
    file = call.write("week.csv", "\n".join(line for line in lines if "Total" not in line))
    assert call("certify", file, "--epsilon", "0.05", *options).words == done.words.removeprefix(f"{note} ")
    assert skipping == call("certify", file, "--epsilon", "0.05", *options, "--json").data | {"skipped": note}


def test_certify_refuses_another_row_with_the_sum_of_all_others(call: Calls) -> None:
    file = call.write("week.csv", "arm,pulls,successes\nA,100,4\nB,101,9\nfiltered,201,13\n")
    done = call("certify", file, "--epsilon", "0.05")
    assert done.status == 2
    assert "line 4: row filtered is the sum of all others; remove it." in done.err


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        (["arm,pulls,successes", "A,100,4", "B,100,4"], []),
        (["arm,pulls,successes", "control,200,9", "A,100,4", "B,100,7"], []),
        (["arm,pulls,mean", "control,200,0.3", "A,100,0.4", "B,100,0.7"], BOUNDS),
        (["arm,pulls,successes", "A,0,0", "B,0,0", "C,0,0"], []),
    ],
)
def test_certify_takes_arms_that_have_as_many_pulls_as_all_others(
    call: Calls, lines: list[str], options: list[str]
) -> None:
    file = call.write("week.csv", "\n".join(lines))
    assert call("certify", file, "--epsilon", "0.05", *options).status in (0, 3)


@pytest.mark.parametrize(
    ("column", "options"), [("date", []), ("label", ["--within-blocks"]), ("block", []), ("day", [])]
)
def test_certify_refuses_a_day_that_was_delivered_twice(call: Calls, column: str, options: list[str]) -> None:
    monday = ["mon,A,100,4", "mon,B,101,9"]
    lines = [f"{column},arm,pulls,successes", *monday, "tue,A,90,3", "tue,B,95,8"]
    file = call.write("days.csv", "\n".join([*lines, *monday]))
    done = call("certify", file, "--epsilon", "0.05", *options)
    assert done.status == 2
    said = " ".join(done.err.split())
    assert "there are two rows of A with the label 'mon': line 2 and line 6." in said
    assert "If the file contains a day twice, remove one of the two rows." in said
    file = call.write("days.csv", "\n".join(lines))
    assert call("certify", file, "--epsilon", "0.05", *options).status in (0, 3)


# --- stopping early ---------------------------------------------------------------------------------

SLOWLY = SIMULATED.replace("epsilon = 0.5", "epsilon = 0.03").replace(
    'kind = "simulated"\nmeans = [0.0, 1.0, 2.0]',
    'kind = "command"\ncommand = ["awk", "BEGIN { srand({seed} % 1000003); for (i = 0; i < {count}; i++) '
    'print 3.4 * (rand() - 0.5) }"]',
)
RACE = ("--strategy", "race", "--name", "trial", "--pulls-per-call", "20")


def test_a_deadline_ends_with_what_is_certified_and_how_to_resume(call: Calls) -> None:
    call.write("trial.toml", SLOWLY)
    done = call("run", "trial.toml", "--deadline", "1.5s", *RACE)
    assert done.status == 3
    assert "With probability at least 90 %, the true mean of the selected arm is at most" in done.words
    assert "The deadline passed before the strategy ended." in done.words
    assert "To resume, without a deadline" in done.err
    assert "--deadline" not in done.err.partition("shortlist run")[2]
    assert "Best certified so far: arm-" in call("status", "trial").words


def test_stop_ends_a_run_that_is_under_way(call: Calls) -> None:
    call.write("trial.toml", SLOWLY)
    stopped: list[str] = []

    def stop() -> None:
        for _ in range(200):
            time.sleep(0.1)
            try:
                with Session.resume(call.folder / "shortlist.db", "trial") as session:
                    if session.n_pulls > 100:
                        session.stop("good enough", by="ann")
                        stopped.append("yes")
                        return
            except (NoSuchRun, StoreTrouble):  # it has not begun
                continue

    thread = threading.Thread(target=stop)
    thread.start()
    done = call("run", "trial.toml", *RACE)
    thread.join()
    assert stopped
    assert done.status == 3
    assert "The run was stopped before the strategy ended." in done.words
    assert "To resume:" in done.err
    data = call("status", "trial", "--json").data
    assert data["result"] is None
    before = data["n_pulls"]
    assert call("run", "trial.toml", *RACE, "--budget", str(before + 900)).status == 3
    assert call("status", "trial", "--json").data["n_pulls"] > before


def test_the_command_stop_says_what_is_certified(call: Calls) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    assert "Nothing is certified yet." in call("stop", "page").words
    sheet(call, "mon", {"control": (3000, 120), "short": (3000, 130), "video": (3000, 170)})
    call("feed", "page", "mon.csv")
    done = call("stop", "page", "--why", "enough", "--json")
    assert done.status == 0
    assert done.data["certificate"]["selected"] == ["video"]
    assert call("stop", "other").status == 2


def test_withdraw_takes_an_answer_back(call: Calls) -> None:
    call.write("trial.toml", QUESTION)
    call("begin", "trial.toml")
    rows = call.sheet()
    assert call.tell([row | {"mean": 1.0} for row in rows[:2]]).status == 0
    ticket = rows[0]["ticket"]
    done = call("withdraw", "trial", ticket, "--why", "wrong scale")
    assert done.status == 0
    assert "Withdrawn: the answer for north." in done.words
    other = call("withdraw", "trial", rows[1]["ticket"], "--why", "also", "--json").data
    assert other["name"] == "south"
    assert call.tell([row | {"mean": 0.0} for row in rows]).status == 0
    late = call("withdraw", "trial", ticket, "--why", "wrong scale")
    assert late.status == 2
    assert "was decided" in late.err
    found = call("report", "trial", "--json").data["findings"]
    (said,) = [
        one["words"] for one in found if "2 answers withdrawn: 1 of north in round 0, by " in one["words"]
    ]
    assert ", because: wrong scale; 1 of south in round 0, by " in said
    assert call("withdraw", "trial", "nonsense", "--why", "x").status == 2


def test_a_smaller_epsilon_in_the_file_goes_on_with_the_run(call: Calls) -> None:
    close = SIMULATED.replace("[0.0, 1.0, 2.0]", "[0.0, 1.9, 2.0]")
    call.write("trial.toml", close)
    first = call("run", "trial.toml", "--strategy", "race", "--name", "trial", "--json").data
    call.write("trial.toml", close.replace("epsilon = 0.5", "epsilon = 0.25"))
    second = call("run", "trial.toml", "--strategy", "race", "--name", "trial", "--json").data
    assert second["n_pulls"] > first["n_pulls"]
    assert second["problem"]["epsilon"] == 0.25
    call.write("trial.toml", close.replace("epsilon = 0.5", "epsilon = 0.4"))
    assert call("run", "trial.toml", "--strategy", "race", "--name", "trial").status == 2


def table_of_scores(call: Calls, n_seen: int | None = None, seed: int = 7) -> str:
    """Write a table of three arms on 60 items: whole, or as far as the first items of an order."""
    rng = np.random.default_rng(2)
    scores = (rng.random((60, 3)) < [0.9, 0.3, 0.2]).astype(int).astype(str)
    if n_seen is not None:
        items = dict.fromkeys(f"q{place}" for place in range(60))
        asked = sl.Problem(1, 0.1, 0.05, names=["a", "b", "c"], rewards=sl.Bernoulli(), items=items)
        scores[asked.order(seed)[n_seen:]] = ""
    lines = [",".join([f"q{place}", *row]) for place, row in enumerate(scores)]
    return call.write("scores.csv", "\n".join(["item,a,b,c", *lines, ""]))


def test_simulate_replays_a_table_of_scores(call: Calls) -> None:
    table_of_scores(call)
    found = call(
        "simulate", "--scores", "scores.csv", "-m", "1", "--epsilon", "0.1", "--replications", "5", "--json"
    )
    assert [one["strategy"] for one in found.data] == ["shared-items"]


def test_certify_says_what_a_table_of_scores_proves(call: Calls) -> None:
    table_of_scores(call)
    whole = call("certify", "scores.csv", "--scores", "--epsilon", "0.1")
    assert whole.status == 0
    assert whole.words.startswith("Best certified so far: a With probability at least 95 %")
    assert "a true mean is the average over these 60 items" in whole.words
    table_of_scores(call, 30)
    found = call("certify", "scores.csv", "--scores", "--epsilon", "0.1", "--seed", "7", "--json")
    assert found.status == 0
    assert json.loads(found.out)["statuses"] == {"a": "in", "b": "out", "c": "out"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "Give the `seed` of that order, or complete the rows. If Shortlist ran this evaluation"),
        (["--seed", "8"], "not the first ones of the order that seed 8 gives for this question"),
        (["--seed", "7", "--variance", "1"], "--variance is for means"),
        (["--seed", "7", "--bounds", "2", "3"], "refused"),
    ],
)
def test_certify_refuses_tables_that_prove_nothing(call: Calls, options: list[str], said: str) -> None:
    table_of_scores(call, 30)
    found = call("certify", "scores.csv", "--scores", "--epsilon", "0.1", *options)
    assert found.status == 2
    assert said in " ".join(found.err.split())


def test_a_seed_is_for_tables_of_scores_only(call: Calls) -> None:
    sheet(call, "mon", {"a": (10, 1), "b": (10, 2)})
    found = call("certify", "mon.csv", "--epsilon", "0.1", "--seed", "7")
    assert found.status == 2
    assert "--seed is for a table of --scores" in found.err


def test_days_of_changing_rates_are_compared_within_days(call: Calls) -> None:
    call.write("page.toml", PAGE)
    header = "day,variant,visitors,conversions\n"
    mon, sun = "mon,control,1204,49\nmon,short,1190,55\nmon,video,1223,74\n", "sun,control,2310,250\n"
    rest = "sun,short,2262,257\nsun,video,2287,383\n"
    call.write("mon.csv", header.removeprefix("day,") + mon.replace("mon,", ""))
    call.write("sun.csv", header + sun + rest)
    call.write("week.csv", header + mon + sun + rest)
    call.write("blocks.csv", (header + mon + sun).replace("day", "block"))
    assert call("begin", "page.toml", "--strategy", "block-race", "--name", "page").status == 0
    assert call("feed", "page", "mon.csv", "--block", "mon").status == 0
    data = call("feed", "page", "sun.csv", "--json").data
    assert "This does no harm" in data["drift"]
    alone = call("certify", "week.csv", "--epsilon", "0.01", "--within-blocks", "--json")
    assert alone.status == 0
    assert data["certificate"]["epsilon"] == alone.data["epsilon"]
    assert "at least one block" in alone.data["sentence"]
    assert alone.data["notes"] == [data["drift"]]
    assert data["drift"] in call("feed", "page", "sun.csv").words
    constant = call("certify", "week.csv", "--epsilon", "0.01")
    assert constant.words.startswith("The mean of video changes between blocks by more than chance explains")
    assert (
        "begin another run with the strategy block-race, before you look at the data of that run: "
        "see docs/ab-test.md." in constant.words
    )
    assert (
        "seen over 2 blocks; later blocks may differ."
        in call("certify", "week.csv", *EPSILON, "--within-blocks").words
    )
    assert "seen over" not in constant.words
    assert "between blocks" in call("certify", "week.csv", *EPSILON, "--json").data["notes"][0]
    assert "at least one block" not in constant.words
    lacking = call("certify", "blocks.csv", "--epsilon", "0.01")
    assert "at least one block" in lacking.words
    assert "Block sun lacks short, video, and is not used to compare them with others." in lacking.words


def test_blocks_that_are_not_there_are_asked_for(call: Calls) -> None:
    call.write("page.toml", PAGE)
    call.write("a.csv", "variant,visitors,conversions\ncontrol,1204,49\nshort,1190,55\n")
    call.write("b.csv", "block,variant,visitors,conversions\nx,control,1204,49\n,short,1190,55\n")
    call.write("c.csv", "block,arm,pulls,mean\nx,control,1204,49\nx,short,1190,55\n")
    for words, said in (
        (("certify", "a.csv", "--epsilon", "0.01", "--within-blocks"), "no column `block` (or day)"),
        (("certify", "b.csv", "--epsilon", "0.01"), "line 3 has no block"),
        (("certify", "c.csv", "--epsilon", "0.01", "--variance", "1"), "rewards of 0 or 1"),
    ):
        done = call(*words)
        assert done.status == 2
        assert said in " ".join(done.err.split())


def test_that_rates_change_is_said_before_what_is_certified(call: Calls) -> None:
    call.write("page.toml", PAGE)
    call("begin", "page.toml")
    sheet(call, "mon", {"control": (12040, 490), "short": (11900, 550), "video": (12230, 1040)})
    sheet(call, "sun", {"control": (12100, 610), "short": (12620, 640), "video": (12870, 1190)})
    call("feed", "page", "mon.csv")
    said = call("feed", "page", "sun.csv", "--yes").words
    assert call("status", "page", "--json").data["state"] == "certified"
    for words in (said, call("status", "page").words):
        warning = words.index("changes between blocks by more than chance explains")
        verdict = (
            words.find("Best certified so far"),
            words.find("Selected 1 of 3 arms"),
            words.find("Ended on"),
        )
        assert warning < min(place for place in verdict if place >= 0)
        assert words.count("mean of each arm is constant") == 1
        assert "does not depend" not in words
