"""A run as a log of events: sessions, leases, answers, and the state that the log implies."""

from shortlist.session.session import Session
from shortlist.store.events import Scored
from shortlist.tickets import Ticket, Tickets

__all__ = ["Scored", "Session", "Ticket", "Tickets"]
