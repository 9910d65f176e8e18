"""Imports point one way, and what decides does no input or output."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent / "src" / "shortlist"
LAYERS = [
    "errors",
    "input_files",
    "arrays",
    "checks",
    "noise",
    "problem",
    "unknown",
    "tickets",
    "store",
    "heterogeneity",
    "bounds",
    "instances",
    "certificates",
    "strategies",
    "plan",
    "budget",
    "result",
    "measure",
    "run",
    "doctor",
    "simulate",
    "report",
    "plot",
    "client",
    "server",
    "cli",
]
PURE = ["heterogeneity", "bounds", "certificates", "strategies"]
IMPURE_MODULES = {
    "os",
    "io",
    "sys",
    "time",
    "random",
    "logging",
    "pathlib",
    "subprocess",
    "socket",
    "sqlite3",
}
FILES = sorted(ROOT.rglob("*.py"))


def layer_of(module: str) -> str:
    return module.split(".")[1]


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            base = node.module or ""
            names = [alias.name for alias in node.names]
            found |= {f"shortlist.{name}" for name in names} if base == "shortlist" else {base}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_layers_before_its_own(path: Path) -> None:
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if own in {"__init__", "__main__"}:
        return
    for module in imports(path):
        if module.startswith("shortlist."):
            assert LAYERS.index(layer_of(module)) <= LAYERS.index(own), f"{own} imports {module}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_decides_does_no_input_or_output(path: Path) -> None:
    if path.relative_to(ROOT).parts[0].removesuffix(".py") not in PURE:
        return
    assert not {module.split(".")[0] for module in imports(path)} & IMPURE_MODULES
    text = path.read_text(encoding="utf-8")
    assert "np.random" not in text
    assert "print(" not in text
    assert "open(" not in text


def test_every_layer_exists() -> None:
    present = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in FILES}
    assert present - {"__init__", "__main__"} == set(LAYERS)
