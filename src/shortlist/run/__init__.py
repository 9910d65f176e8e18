"""How it runs: the session that asks and is told, and the loop that measures."""

from shortlist.run.drive import drive, select
from shortlist.run.retries import Retries
from shortlist.run.session import Session
from shortlist.run.workers import Processes
from shortlist.store.events import Scored
from shortlist.tickets import Ticket, Tickets

__all__ = ["Processes", "Retries", "Scored", "Session", "Ticket", "Tickets", "drive", "select"]
