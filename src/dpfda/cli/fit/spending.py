"""The price of a fit: whether the ledger allows it, and what the ledger shows afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpfda.errors import BudgetExceeded, InvalidInput
from dpfda.report.document import BudgetChange

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    if delta > ledger.delta and mu_for(epsilon, ledger.delta) ** 2 <= left:
        raise BudgetExceeded(
            f"--delta {delta:g} is above the delta = {ledger.delta:g} of {choice.shown}, and with it epsilon = {epsilon:g} "
            f"costs more than is left; give --delta {ledger.delta:g} or less, far below one over the number of subjects; no "
            "data were read and nothing was spent."
        )
    room = gaussian_epsilon(left**0.5, delta) if left > 0 else 0.0
    advice = f"ask for --epsilon {_round_down(room)} or less" if _round_down(room) != "0" else "the budget is used up"
    raise BudgetExceeded(
        f"This would spend epsilon = {epsilon:g} at delta = {delta:g}, but {choice.shown} (total epsilon = "
        f"{ledger.epsilon:g}, delta = {ledger.delta:g}) has room for {_round_down(room)}: {advice}; no data were read and "
        "nothing was spent."
    )


def describe_large_delta(delta: float, n: int) -> str | None:
    """What is wrong with a delta that is not small for `n` subjects; None if it is small."""
    if delta * n < 1:
        return None
    return (
        f"--delta {delta:g} is large for {n:,} subjects: this promise would permit publishing a whole record; choose it "
        f"far below one over the number of subjects, for instance {_round_down(min(1e-5, 0.01 / n))}"
    )


def confirm_large_delta(delta: float, n: int, terminal: Terminal, *, yes: bool = False) -> None:
    """Ask whether a large delta is meant; refuse it where nobody can be asked. The number of subjects is public."""
    wrong = describe_large_delta(delta, n)
    if wrong is None:
        return
    if yes:
        terminal.say(f"Warning: {wrong}.")
    elif terminal.can_ask:
        terminal.say(f"Warning: {wrong}.")
        terminal.confirm("Spend it anyway?")
    else:
        raise InvalidInput(f"{wrong}, or add --yes to spend it anyway; nothing was spent.")


def confirm_doubts(doubts: Sequence[str], terminal: Terminal, *, yes: bool = False) -> None:
    """Ask the owner, at a terminal, about facts that make bounds or levels look plainly wrong.

    Where nobody can be asked the fit goes on: whether a script ends must not depend on such facts.
    """
    terminal.owner_notes(doubts)
    if doubts and not yes and terminal.can_ask:
        terminal.confirm("This may be a mistake in a unit, a column, a level or a code. Spend the budget anyway?")


def make_budget_change(choice: LedgerChoice, before: Spent, after: Spent) -> BudgetChange:
    """The two states of the ledger for the report."""
    from dpfda.privacy.accounting import gaussian_epsilon

    left = max(after.budget_mu_squared - after.mu_squared, 0.0)
    return BudgetChange(
        ledger=choice.shown if choice.is_url else choice.location.rsplit("/", 1)[-1],
        delta=after.delta,
        total_epsilon=after.total_epsilon,
        epsilon_before=before.epsilon,
        epsilon_after=after.epsilon,
        total_mu_squared=after.budget_mu_squared,
        mu_squared_before=before.mu_squared,
        mu_squared_after=after.mu_squared,
        epsilon_left=gaussian_epsilon(left**0.5, after.delta),
    )


def _round_down(value: float) -> str:
    """Three significant digits, rounded down, so that what is advised is allowed."""
    from math import floor, log10

    if value <= 0:
        return "0"
    unit = 10.0 ** (floor(log10(value)) - 2)
    return f"{floor(value / unit * (1 + 1e-9)) * unit:.3g}"
