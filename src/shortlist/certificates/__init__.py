"""The proof of a result: its guarantee, and the ledger of failure probabilities behind it."""

from shortlist.certificates.certificate import Certificate
from shortlist.certificates.guarantee import Guarantee, Ledger, Scope, Share

__all__ = ["Certificate", "Guarantee", "Ledger", "Scope", "Share"]
