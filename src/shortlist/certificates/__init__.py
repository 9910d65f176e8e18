"""The proof of a result: its guarantee, and the ledger of failure probabilities behind it."""

from shortlist.certificates.certificate import Certificate
from shortlist.certificates.guarantee import Guarantee, Scope
from shortlist.certificates.ledger import Ledger, Share

__all__ = ["Certificate", "Guarantee", "Ledger", "Scope", "Share"]
