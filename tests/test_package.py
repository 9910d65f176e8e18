"""The wheel and the source archive: built, installed away from the sources, and used there.

The installed package finds its dependencies in the environment of the tests, but not the package there.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

import shortlist as sl
from shortlist.report.citations import references, software
from tests.docs.pages import all_pages, text_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGES = [
    page for page in all_pages() if "/" in page and page not in {"docs/changelog.md", "docs/contributing.md"}
]
slow = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    """Return what a command prints that must succeed."""
    environment = os.environ | {"COLUMNS": "80", "PYTHONPATH": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(source: Path, target: str, folder: Path) -> Path:
    """Build a wheel or a source archive, and return its path."""
    run(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder, cwd=source)
    (found,) = folder.iterdir()
    return found


class Installed(NamedTuple):
    """A wheel, and the programs of an environment in which it is installed."""

    wheel: Path
    programs: Path
    folder: Path

    def __call__(self, program: str, *arguments: str) -> str:
        """Return what a program of the environment prints in an empty folder."""
        return run(self.programs / program, *arguments, cwd=self.folder)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("package")
    wheel = built(ROOT, "wheel", folder / "wheel")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "environment", cwd=folder)
    python = folder / "environment" / "bin" / "python"
    packages = sysconfig.get_path("purelib", vars={"base": str(folder / "environment")})
    paths = [path for path in sys.path if path.endswith("-packages")]
    Path(packages, "dependencies.pth").write_text("\n".join(paths), encoding="utf-8")
    own = sys.executable if find_spec("pip") else shutil.which("python3") or ""
    run(own, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel, cwd=folder)
    (folder / "away").mkdir()
    return Installed(wheel, python.parent, folder / "away")


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as files:
        return sorted(files.namelist())


# --- the files ------------------------------------------------------------------------------------


@slow
def test_the_source_archive_gives_the_same_wheel(installed: Installed, tmp_path: Path) -> None:
    archive = built(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    again = built(tmp_path / archive.name.removesuffix(".tar.gz"), "wheel", tmp_path / "wheel")
    assert names_in(again) == names_in(installed.wheel)
    assert (tmp_path / archive.name.removesuffix(".tar.gz") / "CITATION.cff").is_file()


@slow
def test_the_wheel_has_all_files_of_the_package_the_pages_and_the_examples(installed: Installed) -> None:
    found = set(names_in(installed.wheel))
    kinds = {".py", ".typed", ".bib", ".css", ".js", ".svg", ".html"}
    source = (path for path in (ROOT / "src/shortlist").rglob("*") if path.suffix in kinds)
    expected = {path.relative_to(ROOT / "src").as_posix() for path in source}
    expected |= {f"shortlist/share/{page}" for page in PAGES}
    examples = (path for path in (ROOT / "examples").iterdir() if path.is_file())
    expected |= {f"shortlist/share/examples/{path.name}" for path in examples}
    assert {"shortlist/py.typed", "shortlist/server/templates/run.html"} <= expected
    assert expected - found == set()
    own = {name for name in found - expected if "dist-info" not in name}
    rest = {name for name in own if not name.startswith("shortlist/share/benchmarks/results/")}
    assert rest == {"shortlist/share/docs/references.bib"}
    assert all(name.endswith(".md") for name in own - rest)


# --- what is installed ----------------------------------------------------------------------------


@slow
def test_it_is_the_installed_package_that_is_tried(installed: Installed) -> None:
    where = installed("python", "-c", "import shortlist; print(shortlist.__file__, shortlist.__version__)")
    assert where.split() == [where.split()[0], PROJECT["version"]]
    assert Path(where.split()[0]).is_relative_to(installed.programs.parent)
    assert installed("shortlist", "--version") == f"shortlist, version {PROJECT['version']}\n"


@slow
def test_an_example_is_copied_and_run(installed: Installed) -> None:
    assert "\ndrilling " in installed("shortlist", "examples")
    assert "shortlist run drilling.toml" in installed("shortlist", "examples", "drilling")
    out = installed("shortlist", "run", "drilling.toml")
    assert "5 of 200 arms selected" in out
    assert "With probability at least 95 %" in out
    installed("shortlist", "report", "drilling", "-o", "drilling.html")  # it has a style sheet and references
    page = (installed.folder / "drilling.html").read_text(encoding="utf-8")
    assert "@inproceedings{ZT22," in page
    assert f"by Shortlist {PROJECT['version']}" in page


@slow
def test_every_page_can_be_read(installed: Installed) -> None:
    assert installed("shortlist", "docs", "docs/theory.md,", "section", "33").startswith("## 33. The race\n")
    every = "from shortlist.cli import docs; print(*[docs.page(name) for name in docs._names()])"
    assert len(installed("python", "-c", every)) > sum(len(text_of(page)) for page in PAGES)


@slow
def test_the_server_has_its_pages(installed: Installed) -> None:
    code = """
from starlette.testclient import TestClient
from shortlist.server.app import create_app
from shortlist.server.settings import Settings
from shortlist.store import open_store
client = TestClient(create_app(open_store("runs.db"), Settings()), base_url="http://127.0.0.1")
for page in ("/", "/static/app.css", "/static/run.js"):
    print(client.get(page).status_code)
"""
    assert installed("python", "-c", code).split() == ["200"] * 3


# --- what is said of it ---------------------------------------------------------------------------


def test_there_is_one_version() -> None:
    """It is that of the last release, or a later one that is being developed: changes depend on it."""
    assert sl.__version__ == PROJECT["version"]
    headings = [line for line in text_of("CHANGELOG.md").splitlines() if line.startswith("## ")]
    assert headings[0] == "## Unreleased"
    released = headings[1].split()[1]
    assert sl.__version__ == released or sl.__version__.endswith(".dev0")
    assert sl.__version__ >= released


def test_the_citation_is_complete() -> None:
    about = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    heading = next(line for line in text_of("CHANGELOG.md").splitlines() if line.startswith("## 0."))
    assert heading == f"## {about['version']} - {about['date-released']}"
    assert {"cff-version", "message", "title", "abstract", "type"} <= about.keys()
    assert about["license"] == PROJECT["license"]
    assert set(PROJECT["keywords"]) <= set(about["keywords"])
    assert [author["name"] for author in about["authors"]] == [one["name"] for one in PROJECT["authors"]]
    for entry in (software().replace(sl.__version__, about["version"]), references()["ZT22"]):
        assert entry in text_of("docs/citation.md")
    assert f"year    = {{{about['date-released'].year}}}" in software()
    (paper,) = about["references"]
    assert paper["title"] == "Approximate Top-m Arm Identification with Heterogeneous Reward Variances"
    assert [f"{one['given-names']} {one['family-names']}" for one in paper["authors"]] == [
        "Ruida Zhou",
        "Chao Tian",
    ]
    assert paper["year"] == 2022
