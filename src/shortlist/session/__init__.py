"""A run as a log of events: asking, telling, leases, and the state that the log leads to."""

from shortlist.session.session import Session
from shortlist.store.events import Scored
from shortlist.tickets import Ticket, Tickets

__all__ = ["Scored", "Session", "Ticket", "Tickets"]
