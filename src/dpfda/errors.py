"""Every error dpfda raises on purpose, in one small hierarchy."""

from __future__ import annotations


class DpfdaError(Exception):
    """Root of all errors raised by dpfda.

    Examples
    --------
    >>> from dpfda import Curves, DpfdaError
    >>> try:
    ...     Curves.from_long([], [], [])
    ... except DpfdaError as error:
    ...     print(error)
    ids must hold at least one row.
    """


class InvalidInput(DpfdaError, ValueError):
    """A user's mistake: the message is one sentence that names the argument and the fix.

    Raised before any budget is spent. It is a `ValueError`, too.
    """


class BudgetExceeded(DpfdaError):
    """A release would take a ledger beyond its total budget; nothing was spent."""


class ProtocolError(DpfdaError):
    """A query breaks the protocol (unknown run, wrong round, changed iterate, bad values); nothing was spent."""


class LedgerError(DpfdaError):
    """The ledger cannot be read or written safely (locked, read-only, damaged)."""


class SourceError(DpfdaError):
    """Data cannot be read for a reason outside the request (no permission, unreachable database); nothing was spent."""


class TransportError(DpfdaError):
    """Too few silos answered, or a message could not be delivered."""


class NotPrivateWarning(UserWarning):
    """The result was produced without a privacy guarantee (a seed, or a non-private reference)."""


class InsufficientBudgetWarning(UserWarning):
    """The budget is too small for the data: expect an error of the order of the signal."""
