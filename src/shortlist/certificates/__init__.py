"""What proves a result: the promise made, and the ledger of failure probability behind it."""

from shortlist.certificates.guarantee import Guarantee, Scope
from shortlist.certificates.ledger import Ledger, Share

__all__ = ["Guarantee", "Ledger", "Scope", "Share"]
