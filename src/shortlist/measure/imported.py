"""Imports a measure function that a problem file names, also in other processes."""

import hashlib
import importlib
import importlib.util
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from shortlist.errors import InvalidProblem


@dataclass(frozen=True, eq=False)
class ImportedFunction:
    """The function named by "module:function" or "file.py:function", relative to a folder.

    It is pickled by its name, so another process imports it again.
    """

    reference: str
    folder: Path

    def __post_init__(self) -> None:
        found = _imported(self.reference, self.folder)
        if not callable(found):
            raise InvalidProblem(
                f"{self.reference} is {found!r}; it must be a function measure(arm, count, rng)."
            )
        if inspect.iscoroutinefunction(found):
            raise InvalidProblem(
                f"{self.reference} is async; a problem file takes plain functions only. Let it call "
                f"asyncio.run, or give the async function to shortlist.select in Python."
            )
        object.__setattr__(self, "_function", found)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return vars(self)["_function"](*arguments)

    def __reduce__(self) -> tuple[type["ImportedFunction"], tuple[str, Path]]:
        return ImportedFunction, (self.reference, self.folder)


def _imported(reference: str, folder: Path) -> Any:
    where, colon, name = reference.rpartition(":")
    if not (where and colon and name.isidentifier()):
        raise InvalidProblem(
            f'`function` is {reference!r}; write "module:function" or "file.py:function", '
            f'such as "score.py:measure".'
        )
    module = _from_file(folder / where) if where.endswith(".py") else _module(where, folder)
    if not hasattr(module, name):
        raise InvalidProblem(f"there is no {name!r} in {where}; check the name after the colon.")
    return getattr(module, name)


def _module(name: str, folder: Path) -> ModuleType:
    _make_importable(folder)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise _not_imported(
            name, error, f"It was searched for in {folder} and among the installed packages."
        ) from error


def _from_file(path: Path) -> ModuleType:
    """Import a file as a module, under a unique name."""
    if not path.is_file():
        raise InvalidProblem(f"there is no file {path}; check the path before the colon.")
    path = path.resolve()
    name = f"_shortlist_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    _make_importable(path.parent)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidProblem(f"{path} cannot be imported; it must be a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        advice = 'Put code that should run only as a program under `if __name__ == "__main__":`.'
        raise _not_imported(str(path), error, advice) from error
    return module


def _make_importable(folder: Path) -> None:
    """Make modules in the folder of a file importable, as if the file were run."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _not_imported(what: str, error: BaseException, advice: str) -> InvalidProblem:
    return InvalidProblem(f"importing {what} raised {type(error).__name__}: {error}. {advice}")
