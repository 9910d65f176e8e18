"""Measuring: the loop that answers a session's tickets, with one worker or many."""

from shortlist.execution.drive import drive, select, select_async
from shortlist.execution.retries import Retries
from shortlist.execution.worker_pool import Processes

__all__ = ["Processes", "Retries", "drive", "select", "select_async"]
