"""The first fit of a data set, at a terminal: its owner sets the total budget on the spot, knowing what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from dpfda import _validate
from dpfda.cli.ledger_choice import describe_new_ledger
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    from dpfda.cli.fit.request import FitRequest
    from dpfda.cli.terminal import Terminal


def set_first_budget(request: FitRequest, terminal: Terminal) -> None:
    """Ask for the total, say what it means, and make the ledger; no total is suggested."""
    from dpfda.estimators.promises import refuse_absurd_delta
    from dpfda.privacy.accounting import mu_for
    from dpfda.privacy.ledger.ledger import Ledger

    choice = request.ledger
    terminal.say(
        f"There is no ledger {choice.shown}, so it is not set how much all studies of these data together may spend. The "
        "total is set once and cannot be raised. If there was a ledger, press Ctrl-C and find it: a new one would forget "
        "what was spent."
    )
    epsilon = _validate.positive("The total epsilon", _ask("Total epsilon of all studies"))
    delta = refuse_absurd_delta("The total delta", _ask("Total delta of all studies", default=request.delta))
    if mu_for(epsilon, delta) < mu_for(request.epsilon, request.delta):
        raise InvalidInput(
            f"A total of epsilon = {epsilon:g} at delta = {delta:g} cannot cover this study, which asks for epsilon = "
            f"{request.epsilon:g} at delta = {request.delta:g}; nothing was created or spent."
        )
    Ledger.create(choice.location, epsilon, delta, "set at the first fit").close()
    terminal.say(describe_new_ledger(choice, epsilon, delta))


def _ask(question: str, default: float | None = None) -> float:
    answer: float = typer.prompt(question, type=float, default=default, err=True)
    return answer
