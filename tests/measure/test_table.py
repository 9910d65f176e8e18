"""Tables of recorded rewards: how they are read, and how their rows are dealt out."""

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

import shortlist as sl
from shortlist.arrays import FloatArray
from shortlist.errors import FinalFailure
from shortlist.measure import Call, TableSource
from shortlist.measure.table_file import read_csv, read_long, read_npy, read_npz, read_wide

PROBLEM = sl.Problem(m=1, epsilon=0.5, delta=0.1, variances=[0.25, 0.25], names=["a", "b"])
ROWS = [np.arange(5.0), 10 + np.arange(8.0)]


def table(order: str = "next") -> TableSource:
    return TableSource.of(PROBLEM, ROWS, order)


def pulled(source: TableSource, seed: int, arm: int, count: int, first_pull: int = 0) -> list[float]:
    (answer,) = source.answers([Call(seed, arm, count, first_pull)])
    return [float(reward) for reward in answer]


def lists(rewards: list[FloatArray]) -> list[list[float]]:
    return [one.tolist() for one in rewards]


# --- how rows are dealt out -----------------------------------------------------------------------


def test_rows_come_in_order_each_once() -> None:
    assert pulled(table(), 0, 0, 2) == [0.0, 1.0]
    assert pulled(table(), 9, 0, 3, first_pull=2) == [2.0, 3.0, 4.0]
    assert pulled(table(), 0, 1, 1, first_pull=7) == [17.0]


@pytest.mark.parametrize("cuts", [[8], [3, 5], [1, 2, 5], [1] * 8])
def test_random_order_uses_every_row_once_however_the_pulls_are_cut(cuts: list[int]) -> None:
    found: list[float] = []
    for count in cuts:
        found += pulled(table("random"), 3, 1, count, first_pull=len(found))
    assert sorted(found) == ROWS[1].tolist()
    assert found == pulled(table("random"), 3, 1, 8)
    assert found != ROWS[1].tolist()


def test_the_order_is_the_arms_own_and_the_seeds() -> None:
    same = TableSource.of(PROBLEM, [np.arange(20.0)] * 2, "random")
    orders = [pulled(same, seed, arm, 20) for seed in (0, 1) for arm in (0, 1)]
    assert len({tuple(order) for order in orders}) == 4


def test_every_order_is_equally_likely() -> None:
    source = TableSource.of(PROBLEM, [np.arange(3.0), np.arange(3.0)], "random")
    orders = [tuple(pulled(source, seed, 1, 3)) for seed in range(600)]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6
    assert min(counts) > 60  # 100 are expected, with a deviation of 9


def test_drawn_rows_are_independent_of_each_other_and_of_other_arms() -> None:
    source = TableSource.of(PROBLEM, [np.arange(4.0), np.arange(4.0)], "draw")
    first, second = pulled(source, 3, 0, 4000), pulled(source, 3, 1, 4000)
    assert first == pulled(source, 3, 0, 4000)
    assert first != second
    for one, other in ((first, second), (first[:-1], first[1:])):
        counts = np.histogram2d(one, other, bins=4, range=[[0, 4], [0, 4]])[0]
        assert np.abs(counts - 250).max() < 5 * np.sqrt(250)  # also the same row again, and by another arm


@pytest.mark.slow
@pytest.mark.parametrize(("order", "is_kept"), [("next", False), ("draw", True)])
def test_the_promise_on_rows_that_arms_share(order: str, is_kept: bool) -> None:
    """Arm b has 1 less the reward of a: read in turn, level-race errs far more often than delta."""
    problem = sl.Problem(m=1, epsilon=0.1, delta=0.05, variances=[0.25, 0.25], rewards="bernoulli")
    wrong, runs = 0, 200
    lead = np.arange(4000) < 2201  # by 0.1005
    for seed in range(runs):
        rows = np.random.default_rng(seed).permutation(lead).astype(float)
        source = TableSource.of(problem, [rows, 1 - rows], order)
        wrong += int(sl.select(source, problem, "level-race", seed=seed).indices[0] == 1)
    if is_kept:
        assert binomtest(wrong, runs, 0.05, alternative="greater").pvalue > 1e-3
    else:
        assert binomtest(wrong, runs, 0.05, alternative="greater").pvalue < 1e-6


@pytest.mark.parametrize("order", ["next", "random"])
def test_a_table_that_ends_says_what_to_do(order: str) -> None:
    with pytest.raises(FinalFailure) as caught:
        pulled(table(order), 0, 0, 3, first_pull=3)
    message = str(caught.value)
    assert "5 rows of a, but 6 are needed" in message
    assert "larger epsilon or delta" in message
    assert "would make rewards dependent and void the guarantee" in message


def test_it_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(table("random")))
    assert pulled(again, 1, 1, 4) == pulled(table("random"), 1, 1, 4)


def test_a_whole_run() -> None:
    rng = np.random.default_rng(1)
    source = TableSource.of(PROBLEM, [rng.uniform(0, 1, 4000), rng.uniform(0, 0.1, 4000)], "random")
    result = sl.select(source, PROBLEM)
    assert result.selected == ("a",)
    assert result.is_answer


def test_every_arm_has_rows() -> None:
    with pytest.raises(sl.InvalidProblem, match="no rows of b"):
        TableSource.of(PROBLEM, [np.ones(2), np.ones(0)])
    with pytest.raises(sl.InvalidProblem, match="3 arms but the problem has 2"):
        TableSource.of(PROBLEM, [np.ones(2)] * 3)
    with pytest.raises(sl.InvalidProblem, match="one of: next, random, draw"):
        TableSource.of(PROBLEM, ROWS, "last")


# --- CSV ------------------------------------------------------------------------------------------


def csv_file(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text)
    return path


def test_long_rows_keep_their_order_within_an_arm(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "arm,day,reward\nb,1,5\na,1,1\nb,2,4.5\na,2,2\nb,3,6\n")
    assert lists(read_long(path, PROBLEM)) == [[1.0, 2.0], [5.0, 4.5, 6.0]]


def test_long_columns_may_have_other_names(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "model,score\nb,5\na,1\n")
    assert lists(read_csv(path, PROBLEM, "long", arm="model", reward="score")) == [[1.0], [5.0]]


def test_arms_without_names_go_by_their_numbers(tmp_path: Path) -> None:
    nameless = sl.Problem(1, 0.5, 0.1, [1.0, 1.0])
    assert lists(read_long(csv_file(tmp_path, "arm,reward\narm-1,5\narm-0,1\n"), nameless)) == [[1.0], [5.0]]


def test_wide_columns_may_have_blanks_and_others_are_ignored(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "question,b,a\nwhat?,1,0\nwhy?,,1\nwho?,0.5, \n")
    assert lists(read_csv(path, PROBLEM, "wide")) == [[0.0, 1.0], [1.0, 0.5]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("arm,reward\na,1\nc,2\n", "line 3: there is no arm 'c'"),
        ("arm,reward\na,1\nb,\n", "line 3: column 'reward' has '', which is not a number"),
        ("arm,reward\na,1\nb,good\n", "line 3: column 'reward' has 'good', which is not a number"),
        ("arm,reward\na,nan\nb,1\n", "line 2: column 'reward' has 'nan'; NaN and infinity"),
        ("arm,reward\na,1\nb,-inf\n", "line 3: column 'reward' has '-inf'"),
        ("arm,reward\na,1_0\nb,1\n", "'1_0', which is not a number"),
        ("arm,score\na,1\nb,1\n", "no column 'reward'"),
        ("model,reward\na,1\nb,1\n", "no column 'arm'"),
        ("arm,reward\n", "one line per reward"),
    ],
)
def test_what_is_no_reward_is_placed_in_long_tables(tmp_path: Path, text: str, said: str) -> None:
    path = csv_file(tmp_path, text)
    with pytest.raises(sl.InvalidProblem) as caught:
        read_long(path, PROBLEM)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,c\n1,2\n", "no column 'b'"),
        ("a,b\n1,2\n3,x\n", "line 3: column 'b' has 'x', which is not a number"),
        ("a,b\n1,NaN\n", "line 2: column 'b' has 'NaN'"),
        ("a,b\n1\n", "line 2: 1 fields where the header has 2"),
    ],
)
def test_what_is_no_reward_is_placed_in_wide_tables(tmp_path: Path, text: str, said: str) -> None:
    path = csv_file(tmp_path, text)
    with pytest.raises(sl.InvalidProblem) as caught:
        read_wide(path, PROBLEM)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


# --- NumPy's files --------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1])
def test_an_array_has_arms_along_either_axis(tmp_path: Path, axis: int) -> None:
    values = np.array([[1, 2, 3], [4, 5, 6]])
    np.save(tmp_path / "t.npy", values if axis == 0 else values.T)
    assert lists(read_npy(tmp_path / "t.npy", PROBLEM, axis)) == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize(
    ("values", "axis", "said"),
    [
        (np.ones((3, 2)), 0, r"has shape (3, 2)"),
        (np.ones((2, 3)), 1, r"has shape (2, 3)"),
        (np.ones(2), 0, "two dimensions"),
        (np.ones((2, 3)), 2, "`axis` is 2"),
        (np.ones((2, 3)), True, "`axis` is True"),
        (np.array([[1.0, 2.0], [np.nan, 1.0]]), 0, "has nan at index (1, 0)"),
        (np.ones((2, 3), dtype=bool), 0, "of type bool"),
        (np.array([["1", "2"], ["3", "4"]]), 0, "rewards must be real numbers"),
        (np.array([[1, None], [2, 3]], dtype=object), 0, "of type object"),
    ],
)
def test_arrays_that_are_no_table_are_refused(
    tmp_path: Path, values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], axis: int, said: str
) -> None:
    np.save(tmp_path / "t.npy", values)
    with pytest.raises(sl.InvalidProblem) as caught:
        read_npy(tmp_path / "t.npy", PROBLEM, axis)
    assert said in str(caught.value)


def test_an_archive_has_an_array_for_every_arm(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", b=np.array([1, 2]), a=np.array([0.5]), other=np.ones((2, 2)))
    assert lists(read_npz(tmp_path / "t.npz", PROBLEM)) == [[0.5], [1.0, 2.0]]


def test_archives_that_are_no_table_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", a=np.ones(2))
    with pytest.raises(sl.InvalidProblem, match="no array 'b'; its arrays: a"):
        read_npz(tmp_path / "t.npz", PROBLEM)
    np.savez(tmp_path / "t.npz", a=np.ones(2), b=np.ones((2, 1)))
    with pytest.raises(sl.InvalidProblem, match=r"'b' has shape \(2, 1\); it must be flat"):
        read_npz(tmp_path / "t.npz", PROBLEM)
    np.savez(tmp_path / "t.npz", a=np.ones(2), b=np.array([1, np.inf]))
    with pytest.raises(sl.InvalidProblem, match=r"'b' has inf at index \(1,\)"):
        read_npz(tmp_path / "t.npz", PROBLEM)


@pytest.mark.parametrize("name", ["t.npy", "t.npz"])
@pytest.mark.parametrize("content", [b"", b"not an array", b"\x93NUMPY"])
def test_files_that_are_broken_or_absent_are_refused(tmp_path: Path, name: str, content: bytes) -> None:
    read = read_npy if name == "t.npy" else read_npz
    with pytest.raises(sl.InvalidProblem, match="there is no file"):
        read(tmp_path / name, PROBLEM)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(sl.InvalidProblem, match="cannot be read"):
        read(tmp_path / name, PROBLEM)


def test_one_kind_of_file_under_the_name_of_the_other_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.ones((2, 3)))
    np.savez(tmp_path / "t.npz", a=np.ones(2), b=np.array([None, 1], dtype=object))
    with pytest.raises(sl.InvalidProblem, match="not an archive of arrays"):
        read_npz(tmp_path / "t.npy", PROBLEM)
    with pytest.raises(sl.InvalidProblem, match="it is an archive"):
        read_npy(tmp_path / "t.npz", PROBLEM)
    with pytest.raises(sl.InvalidProblem, match="array 'b' contains values of type object"):
        read_npz(tmp_path / "t.npz", PROBLEM)


def header(descr: str, shape: str, version: bytes = b"\x01\x00") -> bytes:
    """Return the start of a .npy file with a header of our own."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + version + len(text).to_bytes(2 if version[0] == 1 else 4, "little") + text


def packed(arrays: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive of files."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in arrays.items():
            archive.writestr(name, content)
    return file.getvalue()


def npy(values: object) -> bytes:
    """Return an array as a .npy file."""
    file = io.BytesIO()
    np.save(file, values)  # type: ignore[arg-type]
    return file.getvalue()


class Trap:
    """What must never be unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return pytest.fail, ("it was unpickled",)


def overwritten(data: bytes, start: int, junk: bytes) -> bytes:
    """Return a file with some bytes overwritten."""
    return data[:start] + junk + data[start + len(junk) :]


TABLE, FLAT = npy(np.ones((2, 100))), npy(np.arange(1000.0))
DAMAGED = {
    "empty.npy": b"",
    "magic.npy": TABLE[:6],
    "cut short.npy": TABLE[:500],
    "another version.npy": header("'<f8'", "(2, 3)", b"\x09\x00"),
    "a petabyte.npy": header("'<f8'", "(2, 100000000000000)"),
    "beyond 64 bits.npy": header("'<f8'", "(2, 10000000000000000000000)"),
    "negative.npy": header("'<f8'", "(-1, -1)") + b"0" * 64,
    "boolean.npy": header("'<f8'", "(True, 2)") + b"0" * 64,
    "words.npy": header("'<f8'", "('a', 2)"),
    "brackets.npy": header("(" * 5000, "(2, 3)"),
    "code.npy": header("__import__('os')", "(2, 3)"),
    "long header.npy": b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b"x" * 100,
    "objects.npy": npy(np.array([[Trap()] * 3] * 2, dtype=object)),
    "pickle.npy": pickle.dumps(Trap()),
    "empty.npz": b"",
    "cut short.npz": packed({"a.npy": FLAT, "b.npy": FLAT})[:300],
    "objects.npz": packed({"a.npy": npy(np.array([Trap()], dtype=object)), "b.npy": FLAT}),
    "gigabytes.npz": packed({"a.npy": header("'<f8'", "(1250000000,)"), "b.npy": FLAT}),
    "no arrays.npz": packed({"a.npy": b"hello", "b": b"hello"}),
    "checksum.npz": overwritten(packed({"a.npy": FLAT, "b.npy": FLAT}), 1000, b"junk"),
    "locked.npz": overwritten(packed({"a.npy": FLAT, "b.npy": FLAT}), 6, b"\x01").replace(
        b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01", 1
    ),
    **{
        f"method {method}.npz": overwritten(packed({"a.npy": FLAT, "b.npy": FLAT}, method), 80, b"\xff" * 99)
        for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    },
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_tables_are_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(DAMAGED[name])
    with pytest.raises(sl.InvalidProblem, match=f"{name}.* (cannot be read|of type object)") as caught:
        (read_npy if name.endswith(".npy") else read_npz)(tmp_path / name, PROBLEM)
    assert len(str(caught.value)) < 400


def test_an_archive_that_unpacks_to_gigabytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shortlist.measure.table_file._MOST_UNPACKED", 10_000)
    small = packed({"a.npy": npy(np.zeros(500)), "b.npy": npy(np.zeros(500))}, zipfile.ZIP_DEFLATED)
    (tmp_path / "t.npz").write_bytes(small)
    assert [len(one) for one in read_npz(tmp_path / "t.npz", PROBLEM)] == [500, 500]
    large = packed({"a.npy": npy(np.zeros(5000)), "b.npy": npy(np.zeros(500))}, zipfile.ZIP_DEFLATED)
    (tmp_path / "t.npz").write_bytes(large)
    with pytest.raises(sl.InvalidProblem, match="would unpack to 44,256"):
        read_npz(tmp_path / "t.npz", PROBLEM)


def test_a_table_of_any_type_and_order_is_read_as_numpy_reads_it(tmp_path: Path) -> None:
    values = np.arange(12).reshape(2, 6) - 3
    for kind in ("<f8", ">f8", "<f4", "<f2", "|i1", ">i8", "<u2"):
        for table in (values.astype(kind), np.asfortranarray(values.astype(kind))):
            np.save(tmp_path / "t.npy", table)
            found = read_npy(tmp_path / "t.npy", PROBLEM)
            assert np.array_equal(found, np.load(tmp_path / "t.npy").astype(float))
    np.save(tmp_path / "t.npy", np.empty((2, 0)))
    assert [len(one) for one in read_npy(tmp_path / "t.npy", PROBLEM)] == [0, 0]
