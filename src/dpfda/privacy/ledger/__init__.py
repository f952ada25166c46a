"""The ledger: what was promised, what was spent, and every answer that was ever given."""

from dpfda.privacy.ledger.ledger import Ledger, LogEntry, Spent

__all__ = ["Ledger", "LogEntry", "Spent"]
