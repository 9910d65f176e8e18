"""`import shortlist`, and a run that is kept in memory, need only NumPy, SciPy and the sources."""

import subprocess
import sys

CODE = """
import importlib.metadata
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"sqlalchemy", "sqlite3", "psycopg", "click", "rich", "jinja2"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def not_installed(name):
    raise importlib.metadata.PackageNotFoundError(name)

sys.meta_path.insert(0, Missing())
importlib.metadata.version = not_installed
import shortlist as sl

problem = sl.Problem(m=1, epsilon=1.0, delta=0.1, variances=[1.0] * 3)
print(sl.select(lambda arm, count, rng: rng.normal(3 * arm, 1.0, count), problem).selected)
session = sl.Session(problem)
while tickets := session.ask():
    session.tell(tickets, means=[3.0 * ticket.arm for ticket in tickets])
print(session.result.selected)
"""


def test_a_run_in_memory_needs_few_packages_and_no_installation() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("('arm-2',)\n('arm-2',)\n", "")
