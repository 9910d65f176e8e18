"""The `[items]` section of a problem file: the items that all arms share, and scores that are known."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from shortlist.checks import encodable, listed, shortened
from shortlist.errors import InvalidProblem
from shortlist.files.measure_section import check_keys
from shortlist.items import Blocks, Items
from shortlist.measure.csv_columns import Columns, text_of
from shortlist.measure.result_files import read_scores
from shortlist.problem import Problem

ITEM_KEYS = ("step", "blocks", "lockstep", "n_items", "item_ids", "item_digest", "known", "target")
"""Entries of a question about items where there are no files."""

_KEYS = {"n", "file", "id", "known", "target", "blocks", "lockstep"}


def items_of(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a problem about items, given without files."""
    found: dict[str, Any] = {key: asked[key] for key in ("known", "target") if key in asked}
    if "blocks" in asked or "lockstep" in asked:
        return _blocks({key: asked[key] for key in ITEM_KEYS if key in asked and key != "step"})
    if "n_items" not in asked:
        return found
    number = Items.of(asked["n_items"])
    if "item_ids" not in asked:
        return found | {"items": Items(number.n, None, None, str(asked.get("item_digest", "")))}
    ids = listed(asked["item_ids"])
    if len(ids) != number.n or not all(isinstance(one, str) for one in ids) or len(set(ids)) < len(ids):
        raise InvalidProblem(f"`item_ids` must be {number.n:,} different texts, one for each item.")
    for place, one in enumerate(ids):
        encodable(one, f"`item_ids[{place}]`")
    return found | {"items": Items(number.n, ids, None, str(asked.get("item_digest", "")))}


def items_entries(problem: Problem) -> dict[str, Any]:
    """Return the entries from which `items_of` makes the same parts again."""
    found: dict[str, Any] = {"step": problem.step} if problem.has_own_step else {}
    if problem.items is None:
        return found
    if problem.has_blocks:
        return found | {"blocks": True} | ({"lockstep": True} if problem.is_lockstep else {})
    found |= {"n_items": problem.n_items, "target": problem.target}
    if problem.items.ids is not None:
        found["item_ids"] = list(problem.items.ids)
    if problem.items.content:
        found["item_digest"] = problem.items.content
    if problem.known is not None:
        rows = zip(problem.known.arms.tolist(), problem.known.scores.tolist(), strict=True)
        found["known"] = {problem.name(arm): row for arm, row in rows}
    return found


def items_section(given: Any, folder: Path, names: Any) -> dict[str, Any]:
    """Return the parts of a problem that the section describes."""
    if not isinstance(given, dict):
        raise InvalidProblem('[items] must be a section, such as [items] with file = "questions.jsonl".')
    check_keys(given, _KEYS, "[items]")
    if "blocks" in given or "lockstep" in given:
        return _blocks(given)
    if ("n" in given) == ("file" in given):
        raise InvalidProblem(
            '[items] must have one of: `n`; `file`, such as file = "questions.jsonl"; `blocks = true`.'
        )
    items = Items.of(given["n"] if "n" in given else _read(folder / str(given["file"]), given.get("id")))
    found: dict[str, Any] = {"items": items}
    if "target" in given:
        found["target"] = given["target"]
    if "known" in given:
        path = folder / str(given["known"])
        table = read_scores(path)
        if table.arms is None or table.items is None:
            raise InvalidProblem(f"{path} has no names of arms and ids of items; use CSV or JSON lines.")
        ids = [items.id(place) for place in range(items.n)]
        if extra := [name for name in table.arms if name not in (names or ())]:
            raise InvalidProblem(f"{path} has scores of {extra[0]!r}, which is not an arm.")
        found["known"] = dict(zip(table.arms, table.rows(table.arms, ids), strict=True))
    return found


def _blocks(given: dict[str, Any]) -> dict[str, Any]:
    """Return endless blocks, if nothing else is said about items."""
    if given.get("blocks") is not True:
        raise InvalidProblem("[items] must have `blocks = true`, or neither `blocks` nor `lockstep`.")
    if other := [key for key in given if key not in {"blocks", "lockstep"}]:
        raise InvalidProblem(f"blocks are endless, and the same for all arms; omit `{other[0]}`.")
    return {"items": Blocks(given.get("lockstep", False))}


def _read(path: Path, id_key: Any) -> Any:
    """Return the items in a file of JSON lines, or of CSV with one line per item."""
    if id_key is not None and not isinstance(id_key, str):
        raise InvalidProblem(f"`id` is {id_key!r}; it must be the name of the field with the items' ids.")
    if path.suffix.lower() == ".csv":
        columns = Columns.read(path, "item")
        rows: list[Any] = [
            dict(zip(columns.entries, row, strict=True))
            for row in zip(*columns.entries.values(), strict=True)
        ]
    elif path.suffix.lower() in {".jsonl", ".ndjson"}:
        rows = [
            _item(path, number, line)
            for number, line in enumerate(text_of(path).split("\n"), 1)
            if line.strip()
        ]
    else:
        raise InvalidProblem(f"{path} must be a .jsonl or .csv file, with one item per line.")
    if id_key is None:
        return rows
    ids = [str(row[id_key]) if isinstance(row, dict) and id_key in row else None for row in rows]
    if None in ids:
        raise InvalidProblem(f"{path}: item number {ids.index(None)} has no `{id_key}`.")
    found = dict(zip(ids, rows, strict=True))
    if len(found) < len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise InvalidProblem(f"{path}: two items have the id {shortened(twice)}.")
    return found


def _item(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise InvalidProblem(f"{path}, line {number} is not JSON: {error}.") from None
    except RecursionError:
        raise InvalidProblem(f"{path}, line {number}: its brackets are too deep.") from None
