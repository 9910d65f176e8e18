"""Imports point one way, and what decides does no input or output."""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent / "src" / "shortlist"
LAYERS = [
    "errors",
    "input_files",
    "arrays",
    "checks",
    "escaping",
    "noise",
    "rewards",
    "items",
    "problem",
    "tickets",
    "store",
    "variance_groups",
    "bounds",
    "instances",
    "certificates",
    "strategies",
    "planning",
    "result",
    "measure",
    "totals",
    "drift",
    "session",
    "execution",
    "files",
    "simulation",
    "usual_cost",
    "doctor",
    "timings",
    "report",
    "plot",
    "run_urls",
    "client",
    "server",
    "adapters",
    "cli",
]
OUTSIDE = {"__init__", "__main__", "_deprecated"}
PURE = ["variance_groups", "bounds", "certificates", "strategies"]
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


@functools.cache
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


def own_layer(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_a_module_imports_only_from_layers_before_its_own() -> None:
    places = {layer: place for place, layer in enumerate(LAYERS)}
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in FILES
        if own_layer(path) not in OUTSIDE
        for module in imports(path)
        if module.startswith("shortlist.") and places[layer_of(module)] > places[own_layer(path)]
    ]
    assert wrong == []


def test_what_decides_does_no_input_or_output() -> None:
    pure = [path for path in FILES if own_layer(path) in PURE]
    assert len(pure) > 30
    for path in pure:
        assert not {module.split(".")[0] for module in imports(path)} & IMPURE_MODULES, path
        text = path.read_text(encoding="utf-8")
        assert not [word for word in ("np.random", "print(", "open(") if word in text], path


def test_every_layer_exists() -> None:
    present = {own_layer(path) for path in FILES}
    assert present - OUTSIDE == set(LAYERS)
