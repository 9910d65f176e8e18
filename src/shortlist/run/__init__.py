"""How it runs: the session that asks and is told, and the loop that measures."""

from shortlist.run.drive import drive, select
from shortlist.run.session import Session
from shortlist.run.tickets import Ticket, Tickets

__all__ = ["Session", "Ticket", "Tickets", "drive", "select"]
