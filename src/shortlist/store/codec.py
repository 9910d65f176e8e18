"""Encoding and decoding of events as bytes, for persistent stores.

A body starts with one byte, its form, so that later versions can use other encodings.

- *Whole*: the length of a JSON text, the text with the plain fields, then the arrays (`packing`).
- *One ticket*: the frequent events of workers, in a fixed layout that takes a microsecond or two to read.

Reading executes no code: there is no pickle.
"""

import json
import struct
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import CorruptLog, InvalidProblem
from shortlist.items import Blocks, Items, Known
from shortlist.problem import Problem
from shortlist.rewards import BOUNDED, Gaussian, bounded_rewards, rewards_of
from shortlist.store.events import (
    Answered,
    Arranged,
    Asked,
    Began,
    Bounded,
    Conflict,
    Ended,
    Event,
    Fed,
    Leased,
    Limited,
    Narrowed,
    Released,
    Scored,
    Stopped,
    Suspended,
    Told,
    Withdrawn,
)
from shortlist.store.packing import packed, packed_text, unpacked, unpacked_text
from shortlist.tickets import Ticket

_WHOLE, _ONE_TICKET, _ONE_OF_PILOT = 1, 2, 3
_LENGTH = struct.Struct("<BI")  # form, length of the JSON text

# Form, round, arm, then mean, mean and variance, deadline, or nothing; the worker's name fills the rest.
_BARE = struct.Struct("<BII")
_NUMBER = struct.Struct("<BIId")
_TWO_NUMBERS = struct.Struct("<BIIdd")
_MOST = 2**32  # larger rounds and arms use the other form

_KINDS: dict[str, tuple[type[Event], tuple[str, ...], tuple[str, ...]]] = {
    "bounded": (Bounded, ("bounds", "rewards"), ()),
    "arranged": (Arranged, ("settings",), ()),
    "asked": (Asked, ("round", "needs_variances"), ("arms", "counts")),
    "leased": (Leased, ("round", "worker", "until"), ("arms",)),
    "released": (Released, ("round", "worker"), ("arms",)),
    "answered": (
        Answered,
        ("round", "worker"),
        ("arms", "first_pulls", "counts", "means", "variances"),
    ),
    "told": (Told, ("round", "worker"), ("arms", "means", "variances")),
    "conflict": (Conflict, ("round", "arm", "kept", "refused", "worker"), ()),
    "suspended": (Suspended, ("reason", "worker"), ()),
    "stopped": (Stopped, ("by", "why"), ()),
    "narrowed": (Narrowed, ("epsilon",), ()),
    "limited": (Limited, ("left",), ()),
    "fed": (Fed, ("labels", "block", "worker"), ("arms", "counts", "means", "variances")),
    "withdrawn": (Withdrawn, ("round", "arm", "mean", "why", "by"), ()),
    "ended": (Ended, (), ("selected",)),
}
"""The plain fields and the arrays of each kind of event. Two more kinds are encoded separately."""

_LATER: dict[str, dict[str, Any]] = {
    "began": {"reissue": True, "entropy": None},
    "released": {"by": ""},
    "suspended": {"until": None},
    "answered": {"again": ()},
    "told": {"again": ()},
    "fed": {"why": "", "blocks": ()},
}
"""Fields that were added to events later, with their defaults; a default is not written."""

_LATER_ARRAYS = {"answered": ("scores",), "told": ("scores",)}
"""The same for arrays, which follow all others; one that is None is not written."""

_KIND_OF: dict[type[Event], str] = {event: kind for kind, (event, _, _) in _KINDS.items()}

_PROBLEM_WORDS = ("m", "epsilon", "delta", "noise", "guarantee", "goal")
_BOUNDS = ("bounds", "rewards")  # stored only if declared
_UNKNOWN_WORDS = ("m", "epsilon", "delta", "n", "pilot", "guarantee", "goal")
_BEGAN_WORDS = ("strategy", "seed", "asked_for", "code", "version")
_TICKET_WORDS = ("round", "arm", "name", "count", "first_pull")
_SCORED_WORDS = ("score", "reason")


def encoded(event: Event) -> tuple[str, bytes]:
    """Return the kind of an event, and its body."""
    match event:
        case Told() if (
            len(event.arms) == len(event.means) == _pilots(event) == 1
            and not event.again
            and event.scores is None
            and _fits(event)
        ):
            return "told", _told_one(event)
        case Leased() if len(event.arms) == 1 and _fits(event):
            head = _NUMBER.pack(_ONE_TICKET, event.round, event.arms[0], event.until)
            return "leased", head + _bytes(event.worker)
        case Released() if len(event.arms) == 1 and not event.by and _fits(event):
            return "released", _BARE.pack(_ONE_TICKET, event.round, event.arms[0]) + _bytes(event.worker)
        case Began():
            return "began", _began(event)
        case Scored():
            return "scored", _whole(_words(event.ticket, _TICKET_WORDS) | _words(event, _SCORED_WORDS), [])
    kind = _KIND_OF[type(event)]
    _, words, arrays = _KINDS[kind]
    plain = _words(event, words) | _later(kind, event)
    values = [getattr(event, name) for name in arrays]
    values += [value for name in _LATER_ARRAYS.get(kind, ()) if (value := getattr(event, name)) is not None]
    return kind, _whole(plain, [packed(value) for value in values])


def decoded(kind: str, body: bytes) -> Event:
    """Return the event with this body; raise CorruptLog with the reason if it is invalid."""
    try:
        form = body[0]
        if form == _WHOLE:
            return _event(kind, body)
        return _SHORT[kind, form](body)
    except (KeyError, IndexError):
        raise _too_new(
            f"it is an event of kind {kind!r} in form {[*body[:1]]}, which is not known here"
        ) from None
    except (ValueError, TypeError, struct.error, zlib.error) as problem:
        raise _too_new(f"its body cannot be read as an event of kind {kind!r} ({problem})") from None


def _event(kind: str, body: bytes) -> Event:
    _, length = _LENGTH.unpack_from(body)
    start = _LENGTH.size + length
    if start > len(body):
        raise ValueError("it is cut short")
    head = json.loads(body[_LENGTH.size : start])
    if kind == "began":
        return _read_began(head, body, start)
    if kind == "scored":
        score, reason = head.pop("score"), head.pop("reason")
        return Scored(Ticket(**head), score, reason)
    if kind == "bounded":
        head["bounds"] = tuple(head["bounds"])
    event, _, names = _KINDS[kind]
    for name in names:
        head[name], start = unpacked(body, start)
    for name in _LATER_ARRAYS.get(kind, ()) if start < len(body) else ():
        head[name], start = unpacked(body, start)
    head |= {name: tuple(head[name]) for name in ("again", "labels", "blocks") if name in head}
    return event(**head)


def _whole(head: dict[str, Any], arrays: list[bytes]) -> bytes:
    text = json.dumps(head, separators=(",", ":")).encode()
    return b"".join([_LENGTH.pack(_WHOLE, len(text)), text, *arrays])


def _words(thing: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: _plain(getattr(thing, name)) for name in names}


def _later(kind: str, event: Event) -> dict[str, Any]:
    """Return the fields that were added to this kind of event later, unless they have their defaults."""
    defaults = _LATER.get(kind, {})
    return _words(event, tuple(name for name in defaults if getattr(event, name) != defaults[name]))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


# Events of one ticket.


def _fits(event: Told | Leased | Released) -> bool:
    return 0 <= event.round < _MOST and 0 <= int(event.arms[0]) < _MOST


def _pilots(event: Told) -> int:
    return 1 if event.variances is None else len(event.variances)


def _told_one(event: Told) -> bytes:
    start, worker = (event.round, event.arms[0], event.means[0]), _bytes(event.worker)
    if event.variances is None:
        return _NUMBER.pack(_ONE_TICKET, *start) + worker
    return _TWO_NUMBERS.pack(_ONE_OF_PILOT, *start, event.variances[0]) + worker


def _read_told(body: bytes) -> Told:
    _, number, arm, mean = _NUMBER.unpack_from(body)
    return Told(number, _one(arm), np.array([mean]), None, _text(body[17:]))


def _read_told_of_pilot(body: bytes) -> Told:
    _, number, arm, mean, variance = _TWO_NUMBERS.unpack_from(body)
    return Told(number, _one(arm), np.array([mean]), np.array([variance]), _text(body[25:]))


def _read_leased(body: bytes) -> Leased:
    _, number, arm, until = _NUMBER.unpack_from(body)
    return Leased(number, _one(arm), _text(body[17:]), until)


def _read_released(body: bytes) -> Released:
    _, number, arm = _BARE.unpack_from(body)
    return Released(number, _one(arm), _text(body[9:]))


_SHORT: dict[tuple[str, int], Callable[[bytes], Event]] = {
    ("told", _ONE_TICKET): _read_told,
    ("told", _ONE_OF_PILOT): _read_told_of_pilot,
    ("leased", _ONE_TICKET): _read_leased,
    ("released", _ONE_TICKET): _read_released,
}


@lru_cache(maxsize=1 << 14)  # events of one ticket are very frequent; they share these arrays
def _one(arm: int) -> IntArray:
    array = np.array([arm])
    array.flags.writeable = False
    return array


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@lru_cache(maxsize=4096)  # a log has few workers, and repeats their names often
def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


# The question.


def _began(event: Began) -> bytes:
    problem = event.problem
    head = _words(event, _BEGAN_WORDS) | _later("began", event)
    head["known"] = problem.knows_variances
    head["problem"] = _words(problem, _PROBLEM_WORDS if problem.knows_variances else _UNKNOWN_WORDS)
    if problem.bounds is not None:
        head["problem"] |= {"bounds": problem.bounds, "rewards": problem.declared_rewards}
    if problem.own_bounds is not None:
        head["problem"]["own_bounds"] = problem.own_bounds
    if problem.has_own_step:
        head["problem"]["step"] = problem.step
    if problem.costs is not None:
        head["problem"]["costs"] = problem.costs.tolist()
    names = None if problem.names is None else json.dumps(list(problem.names))
    variances = problem.variances if problem.knows_variances else None
    arrays = [packed_text(names), packed(variances)]
    if (items := problem.items) is not None:
        head["items"] = {"n": items.n, "content": items.content, "target": problem.target}
        if problem.has_blocks:
            head["items"]["blocks"] = True
            head["items"] |= {"lockstep": True} if problem.is_lockstep else {}
        rows = problem.known
        arrays.append(packed_text(None if items.ids is None else json.dumps(items.ids)))
        known = (None, None) if rows is None else (rows.arms, rows.scores.ravel())
        arrays += [packed(array) for array in known]
    return _whole(head, arrays)


def _read_began(head: dict[str, Any], body: bytes, start: int) -> Began:
    names, start = unpacked_text(body, start)
    variances, start = unpacked(body, start)
    parts, known = head.pop("problem"), head.pop("known")
    parts["names"] = None if names is None else json.loads(names)
    if (items := head.pop("items", None)) is not None:
        parts |= _items(items, body, start)
    try:
        problem = _known(parts, variances) if known else _unknown(parts)
    except InvalidProblem as refusal:
        raise ValueError(f"its problem is refused: {refusal}") from None
    return Began(problem, **head)


def _known(parts: dict[str, Any], variances: FloatArray | None) -> Problem:
    if variances is None:
        raise ValueError("it has no variances")
    noise, declared = parts.pop("noise"), parts.pop("rewards", None)
    if noise in BOUNDED:
        own = parts.pop("own_bounds", None)
        rewards = bounded_rewards(noise, own or parts["bounds"], parts.pop("step", None))
        return Problem(**parts, n=len(variances), rewards=rewards)
    if declared is not None:
        return Problem(**parts, variances=variances, rewards=declared)
    return Problem(**parts, rewards=rewards_of(noise, variances))


def _items(head: dict[str, Any], body: bytes, start: int) -> dict[str, Any]:
    """Return the parts of a problem about its items; a run stores their ids, not the items themselves."""
    ids, start = unpacked_text(body, start)
    arms, start = unpacked(body, start)
    scores, start = unpacked(body, start)
    named = None if ids is None else tuple(json.loads(ids))
    known = None if arms is None or scores is None else Known(arms, scores.reshape(len(arms), -1))
    lockstep = head.get("lockstep", False)
    items = Blocks(lockstep) if head.get("blocks") else Items(head["n"], named, None, head["content"])
    return {"items": items, "known": known, "target": head["target"]}


def _unknown(parts: dict[str, Any]) -> Problem:
    pilot = parts.pop("pilot")
    return Problem(**parts, rewards=Gaussian(pilot=pilot))


def _too_new(what: str) -> CorruptLog:
    return CorruptLog(f"{what}. It was probably written by a newer version: upgrade Shortlist and try again")
