"""How worker processes get the measurement."""

import subprocess
import sys

PROMPT = """
import sys
sys.modules["cloudpickle"] = None
import shortlist as sl
def measure(arm, count, rng):
    return rng.normal(arm, 1.0, count)
problem = sl.Problem(m=1, epsilon=0.5, delta=0.05, variances=[1.0] * 3)
try:
    sl.select(measure, problem, executor=sl.Processes(2))
except sl.MeasurementFailed as error:
    print(error)
"""


def test_a_function_of_a_prompt_is_refused_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROMPT], capture_output=True, text=True, timeout=60, check=True
    )
    assert "worker processes cannot load the measurement" in done.stdout
    assert "concurrency=4" in done.stdout
    assert "Trying again" not in done.stderr
