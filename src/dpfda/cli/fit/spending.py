"""The price of a fit: whether the ledger allows it, and what the ledger shows afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpfda.errors import BudgetExceeded
from dpfda.report.document import BudgetChange

if TYPE_CHECKING:
    from dpfda.cli.ledger_choice import LedgerChoice
    from dpfda.cli.terminal import Terminal
    from dpfda.privacy.ledger.ledger import Ledger, Spent

_TOLERANCE = 1e-12


def refuse_overspending(ledger: Ledger, choice: LedgerChoice, epsilon: float, delta: float) -> None:
    """Raise before data are read if (epsilon, delta) does not fit: a study costs at most mu_for(epsilon, delta)^2."""
    from dpfda.privacy.accounting import gaussian_epsilon, mu_for

    left = ledger.remaining()
    if mu_for(epsilon, delta) ** 2 <= left + ledger.budget_mu_squared * _TOLERANCE:
        return
    room = gaussian_epsilon(left**0.5, delta) if left > 0 else 0.0
    advice = f"ask for --epsilon {_round_down(room)} or less" if _round_down(room) != "0" else "the budget is used up"
    raise BudgetExceeded(
        f"This would spend epsilon = {epsilon:g} at delta = {delta:g}, but {choice.shown} (total epsilon = "
        f"{ledger.epsilon:g}, delta = {ledger.delta:g}) has room for {_round_down(room)}: {advice}; no data were read and "
        "nothing was spent."
    )


def warn_of_large_delta(delta: float, n: int, terminal: Terminal) -> None:
    """Warn if delta is not small for `n` subjects: such a promise would permit publishing one of their records."""
    if delta * n < 1:
        return
    terminal.say(
        f"Warning: --delta {delta:g} is large for {n:,} subjects: this promise would permit publishing a whole record. "
        f"Choose it far below one over the number of subjects, for instance {_round_down(min(1e-5, 0.01 / n))}."
    )


def make_budget_change(choice: LedgerChoice, before: Spent, after: Spent) -> BudgetChange:
    """The two states of the ledger for the report."""
    return BudgetChange(
        ledger=choice.shown if choice.is_url else choice.location.rsplit("/", 1)[-1],
        delta=after.delta,
        total_epsilon=after.total_epsilon,
        epsilon_before=before.epsilon,
        epsilon_after=after.epsilon,
        total_mu_squared=after.budget_mu_squared,
        mu_squared_before=before.mu_squared,
        mu_squared_after=after.mu_squared,
    )


def _round_down(value: float) -> str:
    """Three significant digits, rounded down, so that what is advised is allowed."""
    from math import floor, log10

    if value <= 0:
        return "0"
    unit = 10.0 ** (floor(log10(value)) - 2)
    return f"{floor(value / unit * (1 + 1e-9)) * unit:.3g}"
