"""Whether a cell of the utility benchmark holds its limits, and the small parts of its pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from scipy.stats import beta

from benchmarks.utility_families import EPSILONS, Family

Cell = dict[str, Any]
Cells = dict[tuple[str, int, float], Cell]
FULL = 200
MOST_WIDTH = 4.0
LEAST_EVER = 0.88
MOST_COMBINED = 1.3  # times the error of the best linear combination of sites' releases
_LARGE = 260.0  # n mu from which privacy should cost a symmetric mean no more than it did in version 0.1
_SMALL = 40.0


def bound_coverage(held: int, repetitions: int) -> float:
    """The upper end of the 99% binomial interval."""
    return 1.0 if held == repetitions else float(beta.ppf(0.995, held + 1, repetitions - held))


def check_coverage(cell: Cell, least: float) -> list[str]:
    """What is wrong with the band of a cell."""
    new, wrong = cell["new"], []
    if bound_coverage(new["held"], cell["reps"]) < least:
        wrong.append("coverage")
    elif new["held"] < LEAST_EVER * cell["reps"]:
        wrong.append("coverage below 88%, within chance")
    if new["width"] > MOST_WIDTH:
        wrong.append("width")
    return wrong


def check_error(cell: Cell, family: Family, cells: Cells) -> tuple[str, bool | None]:
    """The limit of a cell's error in words and whether it holds; None where there is none."""
    at, ratio = EPSILONS.index(cell["eps"]), cell["new"]["mse"] / cell["ls"]
    if family.oracle is not None:
        oracle, factor = cell["oracle"] / cell["ls"], family.oracle[at]
        return f"{factor * oracle:.2f} ({factor:g} x oracle)", ratio <= factor * oracle
    if family.name == "wide":
        usual = cells.get(("symmetric", cell["n"], cell["eps"]))
        return ("1.3 x usual bounds", ratio * cell["ls"] <= 1.3 * usual["new"]["mse"]) if usual else ("", None)
    if family.name == "sites" and cell["problem"] != "alike":
        return _compare_with_combination(cell)
    if family.ratio is not None:
        return f"{family.ratio[at]:g}", ratio <= family.ratio[at]
    return _compare_with_01(cell, family)


def _compare_with_combination(cell: Cell) -> tuple[str, bool | None]:
    """Sites that differ: against the best linear combination of the same releases."""
    if "combined" not in cell:
        return "", None
    most = MOST_COMBINED * cell["combined"]
    return f"{most / cell['ls']:.2f} ({MOST_COMBINED:g} x combination)", cell["new"]["mse"] <= most


def _compare_with_01(cell: Cell, family: Family) -> tuple[str, bool | None]:
    if "old" not in cell:
        return "", None
    mse, old = cell["new"]["mse"], cell["old"]["mse"]
    if family.name == "ends":
        return "RMSE 0.8 x 0.1's", mse <= 0.64 * old
    if cell["nmu"] < _SMALL:
        return "none (n mu < 40)", None
    factor = 1.15 if cell["nmu"] >= _LARGE else 4.0
    return f"{factor:g} x 0.1's", mse <= factor * old


def mark(wrong: list[str]) -> str:
    """The verdict in words."""
    return f"**fails: {', '.join(wrong)}**" if wrong else "holds"


def show_share(found: Cell, cell: Cell) -> str:
    """How often the band held."""
    return f"{100 * found['held'] / cell['reps']:.0f}%"


def show(value: float | None) -> str:
    """A figure, or nothing where there is none."""
    return "" if value is None or math.isnan(value) else f"{value:.2f}"


def make_table(head: Sequence[str], rows: list[str]) -> str:
    """A table of a page."""
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *rows])


def describe_run(cells: list[Cell]) -> str:
    """Command, commit, date and repetitions."""
    commits, dates = sorted({cell["commit"] for cell in cells}), sorted({cell["date"] for cell in cells})
    counts = sorted({cell["reps"] for cell in cells})
    minutes = sum(cell["seconds"] for cell in cells) / 60
    few = (
        ""
        if counts[0] >= FULL
        else f" **Fewer than the {FULL} that the limits are meant for**: small shortfalls are not seen."
    )
    again = ", ".join(f"{cell['problem']} at eps {cell['eps']:g}" for cell in cells if cell.get("again"))
    repeated = (
        f" Measured again after the others (with more repetitions, or since the method had changed): {again}."
        if again
        else ""
    )
    span = str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    return (
        f"Written by `python -m benchmarks.utility`; do not edit. Commit {', '.join(commits)}, {', '.join(dates)}, "
        f"{span} repetitions a cell ({minutes:.0f} minutes).{few}{repeated}"
    )
