"""Sections and entries of a problem file: there, known, and of the right kind."""

from collections.abc import Set
from typing import Any

from shortlist.errors import InvalidProblem

_INSTEAD = {"measure": " If people are to measure, use `shortlist begin`, then `ask` and `tell`."}


def section(text: dict[str, Any], name: str, allowed: Set[str] | None) -> dict[str, Any]:
    """Return a section of the file; with `allowed`, refuse entries of other names."""
    found = text.get(name)
    if not isinstance(found, dict):
        instead = _INSTEAD.get(name, "")
        raise InvalidProblem(
            f"there is no section [{name}]; add one (docs/problem-files.md shows how).{instead}"
        )
    if allowed is not None:
        check_keys(found, allowed, f"[{name}]")
    return found


def check_keys(given: dict[str, Any], allowed: Set[str], where: str) -> None:
    """Refuse entries that mean nothing."""
    for key in given:
        if key not in allowed:
            known = ", ".join(sorted(allowed))
            raise InvalidProblem(f"{where} has the unknown entry {key!r}; known are: {known}.")


def word(given: dict[str, Any], key: str, default: str | None = None) -> str:
    """Return an entry that must be text."""
    value = given.get(key, default)
    if value is None:
        raise InvalidProblem(f"[measure] lacks `{key}`; add it (docs/problem-files.md shows how).")
    if not isinstance(value, str) or not value:
        raise InvalidProblem(f'`{key}` is {value!r}; it must be text, in quotes: {key} = "...".')
    return value


def flag(given: dict[str, Any], key: str) -> bool:
    """Return an entry that must be true or false; it is false if it is not there."""
    value = given.get(key, False)
    if not isinstance(value, bool):
        raise InvalidProblem(f"`{key}` is {value!r}; it must be true or false.")
    return value
