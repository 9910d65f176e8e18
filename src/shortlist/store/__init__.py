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
    Leased,
    Record,
    Released,
    Scored,
    Suspended,
    Told,
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
    "Leased",
    "MemoryStore",
    "Record",
    "Released",
    "Scored",
    "Store",
    "Suspended",
    "Told",
    "Where",
    "copy_run",
    "open_store",
    "verify_copy",
]
