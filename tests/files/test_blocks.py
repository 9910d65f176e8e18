"""Problem files about blocks: every kind of measurement, and what is refused."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist as sl
from shortlist.files.problem_file import question_of, read_problem, read_problem_file
from shortlist.items import Blocks

QUESTION = """
[problem]
m = 1
epsilon = 0.4
delta = 0.05
names = ["a", "b", "c"]
noise = "gaussian-unknown"

[items]
blocks = true
"""
PROGRAM = """
import json, random, sys

def reward(arm, seed):
    return random.Random(seed).gauss(0, 10) + 0.5 * arm + random.Random(10 * seed + arm).gauss(0, 0.5)

def measure(arm, blocks):
    return [reward(arm, block) for block in blocks]

def table(arms, blocks):
    return [measure(int(arm), blocks) for arm in arms]

if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(reward(int(sys.argv[1]), int(sys.argv[2])))
    elif len(sys.argv) == 2:
        for line in sys.stdin:
            print(reward(int(sys.argv[1]), json.loads(line)))
    else:
        for line in sys.stdin:
            asked = json.loads(line)
            score = reward(asked["arm"], asked["seed"])
            print(json.dumps({"id": asked["id"], "score": score}), flush=True)
"""
PYTHON = sys.executable
SIMULATED = 'kind = "simulated"\nmeans = [0, 0, 1]\nvariances = [4, 4, 4]\ncorrelation = 0.9'
KINDS = {
    "function": 'kind = "function"\nfunction = "program.py:measure"',
    "vectorised": 'kind = "function"\nfunction = "program.py:table"\nvectorised = true',
    "seed": f'kind = "command"\ncommand = ["{PYTHON}", "program.py", "{{arm}}", "{{seed}}"]',
    "stdin": f'kind = "command"\ncommand = ["{PYTHON}", "program.py", "{{arm}}"]',
    "persistent": f'kind = "command"\npersistent = true\ncommand = ["{PYTHON}", "program.py"]',
}


def written(folder: Path, measure: str, question: str = QUESTION) -> Path:
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    file = folder / "trial.toml"
    file.write_text(f"{question}\n[measure]\n{measure}\n", encoding="utf-8")
    return file


def found(file: Path, **options: Any) -> sl.Result:
    asked = read_problem_file(file)
    return sl.select(asked.source, asked.problem, seed=7, **options)


def recorded(folder: Path, n_blocks: int = 60) -> Path:
    rng = np.random.default_rng(1)
    rewards = 10 * rng.standard_normal((n_blocks, 1)) + [0, 0, 1] + rng.standard_normal((n_blocks, 3))
    np.save(folder / "rewards.npy", rewards)
    np.save(folder / "turned.npy", rewards.T)
    lines = [f"{place},{','.join(map(repr, row.tolist()))}" for place, row in enumerate(rewards)]
    (folder / "rewards.csv").write_text("\n".join(["day,a,b,c", *lines]), encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_program_gets_the_same_blocks(tmp_path: Path, kind: str) -> None:
    scope: dict[str, Any] = {"__name__": "program"}
    exec(PROGRAM, scope)
    file = written(tmp_path, KINDS[kind])
    alone = sl.select(scope["measure"], read_problem(file), seed=7)
    result = found(file, budget=2 * alone.n_pulls)
    assert result.is_answer
    assert result.selected == ("c",)
    assert result.arms.means.tolist() == alone.arms.means.tolist()
    assert result.arms.pulls.tolist() == alone.arms.pulls.tolist()


def test_rows_of_a_table_are_blocks_in_recorded_order(tmp_path: Path) -> None:
    recorded(tmp_path)
    results = [found(written(tmp_path, 'kind = "table"\nfile = "rewards.csv"'))]
    results += [
        found(written(tmp_path, f'kind = "table"\nfile = "{name}"\naxis = {axis}'))
        for name, axis in (("rewards.npy", 1), ("turned.npy", 0))
    ]
    assert {(one.selected, one.n_pulls) for one in results} == {(("c",), results[0].n_pulls)}
    table = np.load(tmp_path / "rewards.npy")
    longest = int(results[0].arms.pulls.argmax())
    mean = table[: results[0].arms.pulls[longest], longest].mean()
    assert results[0].arms.means[longest] == pytest.approx(mean, abs=1e-9)


def test_a_table_that_is_too_short_keeps_what_it_certifies(tmp_path: Path) -> None:
    recorded(tmp_path, 9)
    asked = read_problem_file(written(tmp_path, 'kind = "table"\nfile = "rewards.csv"'))
    session = sl.Session(asked.problem, seed=7)
    with pytest.raises(sl.MeasurementFailed, match="has 9 rows of"):
        sl.drive(session, asked.source)
    assert session.result.n_pulls >= 24
    assert np.isfinite(session.result.certified_epsilon)


def test_blocks_can_be_in_lockstep(tmp_path: Path) -> None:
    text = QUESTION.replace("blocks = true", "blocks = true\nlockstep = true")
    asked = read_problem_file(written(tmp_path, SIMULATED, text)).problem
    assert asked.is_lockstep
    assert not read_problem_file(written(tmp_path, SIMULATED)).problem.is_lockstep


def test_simulated_arms_share_their_blocks(tmp_path: Path) -> None:
    asked = read_problem_file(written(tmp_path, SIMULATED))
    assert asked.correlation == 0.9
    measure = asked.source.measure  # type: ignore[attr-defined]
    blocks = Blocks().values_at(0, 0, 4000)
    rewards = np.array([measure(arm, blocks) for arm in range(3)])
    assert np.corrcoef(rewards)[np.triu_indices(3, 1)] == pytest.approx([0.9] * 3, abs=0.02)
    assert rewards.mean(axis=1) == pytest.approx([0, 0, 1], abs=0.12)
    assert rewards.var(axis=1) == pytest.approx([4, 4, 4], rel=0.1)
    assert found(written(tmp_path, SIMULATED)).selected == ("c",)
    coins = QUESTION.replace('noise = "gaussian-unknown"', 'rewards = "bernoulli"')
    plain = 'kind = "simulated"\nmeans = [0.1, 0.1, 0.9]\ncorrelation = 0.5'
    file = written(tmp_path, plain, coins)
    assert found(file).selected == ("c",)
    measure = read_problem_file(file).source.measure  # type: ignore[attr-defined]
    assert np.mean(measure(2, blocks)) == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize(
    ("measure", "changes", "said"),
    [
        (SIMULATED, ("blocks = true", "blocks = false"), "must have `blocks = true`"),
        (SIMULATED, ("blocks = true", "lockstep = true"), "must have `blocks = true`"),
        (SIMULATED, ("blocks = true", "blocks = true\nlockstep = 1"), "True or False"),
        (SIMULATED, ("blocks = true", "blocks = true\nn = 5"), "omit `n`"),
        (SIMULATED, ("blocks = true", 'blocks = true\ntarget = "pool"'), "omit `target`"),
        (SIMULATED, ("blocks = true", 'file = "x.jsonl"\nn = 3'), "blocks = true"),
        (SIMULATED, ('noise = "gaussian-unknown"', "scales = [1, 1, 1]"), "only differences within blocks"),
        (SIMULATED, ('noise = "gaussian-unknown"', 'noise = "gaussian-unknown"\npilot = 9'), "no pilot"),
        (SIMULATED, ("blocks = true", "n = 5"), "scores must have bounds"),
        (SIMULATED.replace("0.9", "1.9"), ("", ""), "between 0 and 1"),
        (SIMULATED + '\nrewards = "uniform"', ("", ""), "unknown entry 'rewards'"),
        (SIMULATED, ("[items]\nblocks = true", ""), "blocks = true"),
        (KINDS["seed"].replace("{seed}", "{seed}{count}"), ("", ""), "every block has its own seed"),
        ('kind = "table"\nfile = "rewards.csv"\norder = "draw"', ("", ""), "unknown entry 'order'"),
        ('kind = "table"\nfile = "rewards.csv"\nlayout = "long"', ("", ""), "each row of a table"),
        ('kind = "table"\nfile = "rewards.npz"', ("", ""), "each row of a table"),
    ],
)
def test_what_is_wrong_is_refused(tmp_path: Path, measure: str, changes: tuple[str, str], said: str) -> None:
    recorded(tmp_path)
    with pytest.raises(sl.InvalidProblem, match=said):
        read_problem_file(written(tmp_path, measure, QUESTION.replace(*changes) if changes[0] else QUESTION))


def test_rewards_of_other_blocks_are_never_put_into_one_row(tmp_path: Path) -> None:
    lines = ["day,a,b,c", "0,,1,2", "1,1,,2", "2,1,1,"]
    (tmp_path / "rewards.csv").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(sl.InvalidProblem, match="line 2: column 'a' has ''"):
        read_problem_file(written(tmp_path, 'kind = "table"\nfile = "rewards.csv"'))


def test_a_question_about_blocks_needs_no_files() -> None:
    entries = {"m": 1, "epsilon": 0.4, "delta": 0.05, "n": 3, "noise": "gaussian-unknown", "blocks": True}
    expected = sl.Problem(m=1, epsilon=0.4, delta=0.05, n=3, rewards=sl.Gaussian(), items=sl.Blocks())
    assert question_of(entries) == expected
    assert question_of(entries | {"lockstep": True}) == expected.changed(items=sl.Blocks(lockstep=True))
    with pytest.raises(sl.InvalidProblem, match="omit `n_items`"):
        question_of(entries | {"n_items": 5})
