"""A finished study for people: its public description, and what every site promised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpfda.cli.terminal import Terminal

if TYPE_CHECKING:
    from dpfda.federation.workspace import StudyFolder
    from dpfda.protocol.terms import StudyTerms


def describe_study(terms: StudyTerms, level: float = 0.95) -> Any:
    """The study's public description for the report."""
    from dpfda.report.document import StudyDescription

    covariates = tuple({"name": each.name, "bounds": each.bounds, "levels": each.levels} for each in terms.covariates)
    return StudyDescription(
        source=f"{len(terms.silos)} sites",
        x=terms.x,
        y=terms.y,
        functions=terms.functions,
        title=f"{terms.name}: {terms.y} over {terms.x}, {len(terms.silos)} sites",
        x_label=terms.x,
        y_label=terms.y,
        level=level,
        covariates=covariates,
    )


def print_cards(folder: StudyFolder, privacy: Any, terminal: Terminal) -> None:
    """One privacy card per site: what its patients were promised, and how often it answered."""
    from rich.table import Table

    from dpfda.protocol.plans.registry import make_plan
    from dpfda.transports.checkpoint import Transcript

    answers = Transcript(folder.transcript).answers()
    table = Table(title="What every site promised its patients", title_justify="left", box=None, header_style="bold")
    for name in ("site", "subjects", "epsilon", "delta", "exact cost at most", "rounds answered"):
        table.add_column(name, justify="left" if name == "site" else "right")
    rounds = len(make_plan(folder.terms()).rounds)
    for silo in privacy.silos:
        table.add_row(
            silo.name, f"{silo.n:,}", f"{silo.epsilon:g}", f"{silo.delta:g}", f"epsilon = {silo.epsilon_spent:.4g}",
            f"{answers.get(silo.name, 0)} of {rounds}",
        )  # fmt: skip
    terminal.out.print(table)
    if not privacy.private:
        terminal.out.print("[bold red]NOT PRIVATE[/bold red]: at least one site used a seed; this is a simulation.")
