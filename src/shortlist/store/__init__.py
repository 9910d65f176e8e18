"""Stores: an append-only log of events for every run."""

from shortlist.store.address import Where, open_store
from shortlist.store.copying import copy_run, verify_copy
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
    Record,
    Released,
    Scored,
    Stopped,
    Suspended,
    Told,
    Withdrawn,
)
from shortlist.store.memory import MemoryStore
from shortlist.store.protocol import Decide, Store

__all__ = [
    "Answered",
    "Arranged",
    "Asked",
    "Began",
    "Bounded",
    "Conflict",
    "Decide",
    "Ended",
    "Event",
    "Fed",
    "Leased",
    "Limited",
    "MemoryStore",
    "Narrowed",
    "Record",
    "Released",
    "Scored",
    "Stopped",
    "Store",
    "Suspended",
    "Told",
    "Where",
    "Withdrawn",
    "copy_run",
    "open_store",
    "verify_copy",
]
