"""A result in a terminal: a few values, the promise, the budget."""

from __future__ import annotations

import re

import numpy as np

from dpfda.cli.terminal import Terminal
from dpfda.report.chart import x_name
from dpfda.report.document import Document, has_outcomes
from dpfda.report.formatting import (
    count_subjects,
    describe_contributing,
    describe_error,
    format_number,
    name_error_unit,
    typical_half_width,
)

_ROWS, _SIDE_BY_SIDE = 9, 3


def print_summary(document: Document, terminal: Terminal) -> None:
    """The table on stdout; of several outcomes one for each, and the promise once."""
    each = list(document["outcomes"].values()) if has_outcomes(document) else [document]
    for one in each:
        _print_table(one, terminal)
    for one in each:
        of = f" ({one['study']['y']})" if len(each) > 1 else ""
        for sentence in one["warnings"]:
            terminal.out.print(f"Warning{of}: {write_for_the_command_line(sentence)}", markup=False)
    terminal.out.print(_promise(each))


def _print_table(document: Document, terminal: Terminal) -> None:
    from rich.table import Table

    study, functions, out = document["study"], document["functions"], terminal.out
    for first in range(0, len(functions), _SIDE_BY_SIDE):
        shown, title = functions[first : first + _SIDE_BY_SIDE], study["title"] if first == 0 else None
        table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
        table.add_column(study["x_label"], justify="right")
        for function in shown:
            name = study["y_label"] if study["model"] == "mean" else function["name"]
            table.add_column(name, justify="right")
            if function["low"] is not None:
                table.add_column(f"{study['level']:.0%} band", justify="left", style="dim")
        for place in np.linspace(0, len(document["grid"]) - 1, _ROWS).round().astype(int):
            table.add_row(*_row(document, shown, int(place)))
        out.print(table)
    if "weight" in document["privacy"]["public_inputs"]:
        out.print(document["estimand"], markup=False)


def write_for_the_command_line(sentence: str) -> str:
    """A sentence of the library in the terms of the command line."""
    said = sentence.replace("estimator.forecast(n=..., m=...)", "dpfda plan")
    said = said.replace("assume_symmetric=True", "--assume-symmetric").replace("outcome='binary'", "--outcome binary")
    said = said.replace("transform='log'", "--transform log").replace("visit_cap", "--visit-cap")
    return re.sub(r"points_per_curve=(\S+)", r"--points-per-curve \1", said)


def _row(document: Document, functions: list[Document], place: int) -> list[str]:
    cells = [x_name(document["grid"][place], document["study"]["x_origin"])]
    for function in functions:
        cells.append(format_number(function["values"][place]))
        if function["low"] is not None:
            cells.append(f"{format_number(function['low'][place])} to {format_number(function['high'][place])}")
    return cells


def _room(budget: Document) -> str:
    left = budget.get("epsilon_left")
    return "" if left is None else f", room for one more study of epsilon {left:.4g}"


def _promise(each: list[Document]) -> str:
    """Who is protected at which price, how precise every outcome is, and the budget."""
    first = each[0]
    privacy, budget = first["privacy"], first["budget"]
    promise = f"epsilon = {privacy['epsilon']:g}, delta = {privacy['delta']:g}"
    contributing = describe_contributing(first)
    who = f"{count_subjects(first):,} subjects, {f'{contributing}, ' if contributing else ''}each protected as a whole"
    together = ", all outcomes together" if len(each) > 1 else ""
    lines = [f"\n{who}: {promise}{together}."]
    for document in each:
        of = f"{document['study']['y']}: " if len(each) > 1 else ""
        lines += [of + line for line in _describe_precision(document)]
    if budget is not None:
        lines.append(
            f"Budget of {budget['ledger']}: epsilon {budget['epsilon_before']:.3g} -> {budget['epsilon_after']:.3g} of "
            f"{budget['total_epsilon']:g} spent (at delta = {budget['delta']:g}){_room(budget)}."
        )
    return "\n".join(lines)


def _describe_precision(document: Document) -> list[str]:
    lines, functions, achieved = [], document["functions"], document["error"]["achieved"]
    if len(functions) > 1 and functions[0]["low"] is not None:
        typical = ", ".join(
            f"{function['name']} {format_number(typical_half_width(function), 2)}" for function in functions
        )
        lines.append(f"Half the width of each band, median over the domain: {typical}.")
    if achieved is not None:
        lines.append(describe_error(achieved, name_error_unit(document), len(functions)))
    return lines
