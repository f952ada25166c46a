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

    Examples
    --------
    >>> from dpfda import PrivateMean
    >>> PrivateMean(epsilon=1, delta=1e-5, domain=(80, 20), y_bounds=(0, 150)).forecast(n=100, m=5)
    Traceback (most recent call last):
        ...
    dpfda.errors.InvalidInput: domain must ...
    """


class BudgetExceeded(DpfdaError):
    """A release would take a ledger beyond its total budget; nothing was spent.

    Examples
    --------
    >>> from dpfda import Ledger
    >>> from dpfda.privacy.accounting import GaussianEvent
    >>> Ledger.in_memory(epsilon=1, delta=1e-5).check([GaussianEvent(mu=2)], "a-study")
    Traceback (most recent call last):
        ...
    dpfda.errors.BudgetExceeded: This would bring what is spent to epsilon = 9.99..., but the budget allows epsilon = 1 ...
    """


class ProtocolError(DpfdaError):
    """A query breaks the protocol (unknown run, wrong round, changed iterate, bad values); nothing was spent.

    Examples
    --------
    >>> from dpfda import Silo
    >>> from dpfda.curves.simulated import simulate_mean
    >>> from dpfda.protocol.messages import Query
    >>> Silo(simulate_mean(100, 5, rng=1), epsilon=1, delta=1e-5).release(Query("a-study", 0, {}))
    Traceback (most recent call last):
        ...
    dpfda.errors.ProtocolError: This silo has not joined that study.
    """


class LedgerError(DpfdaError):
    """The ledger cannot be read or written safely (missing, locked, read-only, damaged).

    Examples
    --------
    >>> from dpfda import Ledger
    >>> Ledger.open("nowhere.ledger")
    Traceback (most recent call last):
        ...
    dpfda.errors.LedgerError: ...
    """


class SourceError(DpfdaError):
    """Data cannot be read for a reason outside the request (no permission, unreachable database); nothing was spent.

    Examples
    --------
    >>> from dpfda.errors import DpfdaError, SourceError
    >>> issubclass(SourceError, DpfdaError)
    True
    """


class TransportError(DpfdaError):
    """Too few silos answered, or a message could not be delivered.

    Examples
    --------
    >>> from dpfda import Silo
    >>> from dpfda.curves.simulated import simulate_mean
    >>> from dpfda.protocol.terms import StudyTerms
    >>> from dpfda.transports.in_process import InProcessTransport
    >>> north = Silo(simulate_mean(100, 5, rng=1), epsilon=1, delta=1e-5, name="north").terms()
    >>> InProcessTransport([]).open(StudyTerms("adaptive", (0, 1), (-4, 4), (north,)), "a-study")
    Traceback (most recent call last):
        ...
    dpfda.errors.TransportError: The terms name silos that are not connected: north.
    """


class NotPrivateWarning(UserWarning):
    """The result was produced without a privacy guarantee (a seed, or a non-private reference).

    Examples
    --------
    >>> import warnings
    >>> from dpfda import NotPrivateWarning, PrivateMean
    >>> from dpfda.curves.simulated import simulate_mean
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     fit = PrivateMean(method="nonprivate", domain=(0, 1), y_bounds=(-4, 4)).fit(simulate_mean(100, 5, rng=1))
    >>> [warning.category.__name__ for warning in caught]
    ['NotPrivateWarning']
    >>> fit.privacy_.private
    False
    """


class LargeDeltaWarning(UserWarning):
    """delta is not small for the number of subjects: such a promise would permit publishing a whole record.

    Examples
    --------
    >>> import warnings
    >>> from dpfda import PrivateMean
    >>> from dpfda.curves.simulated import simulate_mean
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     fit = PrivateMean(epsilon=1, delta=0.1, domain=(0, 1), y_bounds=(-4, 4)).fit(simulate_mean(100, 5, rng=1))
    >>> "LargeDeltaWarning" in [warning.category.__name__ for warning in caught]
    True
    """


class OwnerWarning(UserWarning):
    """A fact about real subjects, for the owner of the data only: NOT PRIVATE, never to be published.

    Examples
    --------
    >>> import warnings
    >>> from dpfda import PrivateMean
    >>> from dpfda.curves.simulated import simulate_mean
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     fit = PrivateMean(epsilon=1, delta=1e-5, domain=(0, 0.9), y_bounds=(-4, 4)).fit(simulate_mean(100, 5, rng=1))
    >>> [str(warning.message)[:11] for warning in caught if warning.category.__name__ == "OwnerWarning"]
    ['NOT PRIVATE']
    """


class InsufficientBudgetWarning(UserWarning):
    """The budget is too small for the data: expect an error of the order of the signal.

    Examples
    --------
    >>> from dpfda import PrivateMean
    >>> PrivateMean(epsilon=0.01, delta=1e-5, domain=(0, 1), y_bounds=(-4, 4)).forecast(n=100, m=5).insufficient
    True
    """
