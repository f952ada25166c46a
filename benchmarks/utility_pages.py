"""From measured cells to docs/utility.md, and both pages to their places."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from benchmarks.stamp import stamp_oldest
from benchmarks.utility_covariate_page import write_covariates
from benchmarks.utility_families import EPSILONS, FAMILIES, Family
from benchmarks.utility_verdicts import (
    Cell,
    Cells,
    bound_coverage,
    check_coverage,
    check_error,
    describe_run,
    make_table,
    mark,
    show,
    show_share,
)  # fmt: skip


def _row(cell: Cell, family: Family, cells: Cells) -> str:
    new, ls, old = cell["new"], cell["ls"], cell.get("old")
    limit, fine = check_error(cell, family, cells)
    wrong = ([] if fine in (True, None) else ["error"]) + check_coverage(cell, family.coverage)
    wrong += ["peer better"] if is_beaten(cell) else []
    declared = cell.get("declared")
    oracles = [show(cell[key] / ls) if cell[key] else "" for key in ("oracle", "least_oracle")]
    extra = [*oracles, f"{cell['bins'] / ls:.3g}"]
    before = ["", ""] if old is None else [show(old["mse"] / ls), show_share(old, cell)]
    fields = [
        cell["problem"], str(cell["n"]), f"{cell['eps']:g}", str(cell["reps"]), f"**{new['mse'] / ls:.2f}**",
        show(new["se"] / ls), show(new["median"] / ls), show(new["mse"] / cell["ls7"]), limit, show_share(new, cell),
        show(new["width"]), show(new["told"]), *extra, *before,
        "" if declared is None else f"{declared['mse'] / ls:.2f}, {show_share(declared, cell)}", mark(wrong),
    ]  # fmt: skip
    return "| " + " | ".join(fields) + " |"


_HEAD = (
    "problem", "n", "eps", "reps", "ratio", "its se", "median", "to 7 functions", "limit", "coverage", "half width / RMSE",
    "expected / achieved", "oracle radius", "and size", "binned means", "0.1", "0.1 coverage", "assume_symmetric", "verdict",
)  # fmt: skip


_MEAN_TEXT = """
delta = 1e-5, all settings at their defaults, the same data for every method, seeds fixed before.

* "Ratio": mean squared error where the design is, over that of non-private least squares with the same basis (16 functions,
  no penalty: private fits shrink, so ratios below 1 are possible). "To 7 functions": over that of least squares with 7.
* "Limit": what the ratio may be.
* "Coverage": how often the simultaneous 95% band holds the whole true curve where 98% of the design lies (for scheduled
  visits: within 0.03 of a visit).
* "Expected / achieved": `expected_error_.total` over the squared error on the whole domain.
* "Oracle radius": an estimate that starts at the true curve, spends everything on one release of 7 functions and has the
  best single radius, chosen by the true error. "And size": the number of functions is chosen by the true error too. Limits
  are taken against the first, since only the radius was to be the oracle's. This was decided after trial runs on these
  problems, in which the second was the harder one to meet, so both are shown and counted.
* "Binned means": the peer with 8 bins, clipping at the bounds, nothing tuned.
* "0.1": version 0.1 (commit b5b9421) in the same run. The truth of the symmetric rows, of the designs and of the wide bounds
  is two cosines and a slight slope, which suits the cosines of version 0.1; those under "free ends" do not.

A cell fails by "coverage" if its 99% binomial interval lies below 93%, by "width" if the mean half width is more than 4
times the RMSE, by "peer better" if binned means err less by more than 10%.
"""


def write_pages(cells: list[Cell], docs: Path) -> None:
    """Both pages, of whatever was measured."""
    means = [cell for cell in cells if FAMILIES[cell["family"]].kind in ("mean", "obesity", "promised")]
    others = [cell for cell in cells if FAMILIES[cell["family"]].kind in ("covariates", "sites")]
    if means:
        (docs / "utility.md").write_text(_write_means(means), encoding="utf-8")
        stamp_oldest(docs / "utility.md", (cell["commit"] for cell in means))
    if others:
        (docs / "utility-covariates.md").write_text(write_covariates(others), encoding="utf-8")
        stamp_oldest(docs / "utility-covariates.md", (cell["commit"] for cell in others))


def _write_means(cells: list[Cell]) -> str:
    by_key = {(cell["problem"], cell["n"], cell["eps"]): cell for cell in cells}
    parts = ["# Utility: how much error privacy costs\n", describe_run(cells), _MEAN_TEXT]
    for family in FAMILIES.values():
        own = sorted(
            (c for c in cells if c["family"] == family.name),
            key=lambda c: (c["n"], family.problems.index(c["problem"]), c["eps"]),
        )
        if own and family.kind == "obesity":
            parts.append(_describe_obesity(own[0]))
        elif own and family.kind == "promised":
            parts.append(_describe_promised(own, family))
        elif own:
            rows = [_row(cell, family, by_key) for cell in own]
            parts.append(f"## {family.title}\n\nLimit: {family.rule}.\n\n{make_table(_HEAD, rows)}\n")
        if own and family.name == "ends":
            parts.append(_describe_slopes(own))
    return "\n".join([*parts, _summarise([cell for cell in cells if "new" in cell], by_key)]) + "\n"


def _describe_slopes(cells: list[Cell]) -> str:
    rows = []
    for cell in cells:
        new, old = cell["new"], cell.get("old")
        ratio = math.nan if old is None else math.sqrt(new["ends"] / old["ends"])
        wrong = (["error"] if ratio > 0.35 else []) + (
            ["coverage"] if bound_coverage(new["slopes_held"], cell["reps"]) < 0.93 else []
        )
        rows.append(
            f"| {cell['problem']} | {math.sqrt(new['ends']):.2f} | {show(ratio)} | "
            f"{100 * new['slopes_held'] / cell['reps']:.0f}% | {mark(wrong)} |"
        )
    head = ("truth", "RMSE of the slope at both ends", "over 0.1's", "coverage of the slope's band", "verdict")
    return f"{make_table(head, rows)}\n"


def _describe_obesity(cell: Cell) -> str:
    errors = np.abs(cell["level_errors"]) * 100
    level = float(np.mean(cell["level_errors"])) * 100
    fine = cell["held"] >= 0.85 * cell["reps"] and abs(level) <= 3
    return (
        f"## Obesity of children\n\n`geepack::muscatine`, {cell['n']} children, eps {cell['eps']:g}, domain (5, 19), bounds "
        f"(0, 1), defaults: least squares (7 functions) says {100 * cell['level']:.1f}% on average over the ages seen. In "
        f"{cell['held']} of {cell['reps']} runs its whole curve is inside the band (limit: 17 of 20); mean half width "
        f"{100 * cell['half']:.1f} points. The private level is off by {level:+.2f} points on average, by "
        f"{errors.mean():.2f} in a typical run and by {errors.max():.2f} at most (limit: 3); root mean squared distance "
        f"{100 * cell['distance']:.2f} points. {mark([] if fine else ['limit']).capitalize()}.\n"
    )


def _describe_promised(cells: list[Cell], family: Family) -> str:
    """Rows that version 0.1 was measured in."""
    rows = []
    for cell in cells:
        ls, target = cell["ls_mse"], math.inf if cell["target"] is None else cell["target"]
        fine = cell["new_mse"] <= target * ls
        wrong = [] if fine else ["error"]
        wrong += ["but not with assume_symmetric"] if not fine and cell["declared_mse"] <= target * ls else []
        wrong += ["peer better"] if cell["peers"].get("AdaSSP", math.inf) * 1.1 < cell["new_mse"] else []
        figures = [cell["new_mse"], cell["declared_mse"], *cell["peers"].values()]
        shown = " | ".join(f"{figure / ls:.3g}" for figure in figures)
        last = "" if cell["target"] is None else f" {mark(wrong)} |"
        limit = "" if cell["target"] is None else f" {target:g} |"
        rows.append(f"| {cell['problem']} | {cell['reps']} |{limit} {shown} |{last}")
    head: tuple[str, ...] = ("problem", "reps", "default", "assume_symmetric")
    if family.name == "promised":
        head = ("problem", "reps", "limit", "default", "assume_symmetric", *cells[0]["peers"], "verdict")
    text = "Ratios to least squares with the same basis and number of functions (7 where it is None). Peers marked (oracle) "
    return f"## {family.title}\n\n{text}are tuned on the true error.\n\n{make_table(head, rows)}\n"


def _summarise(cells: list[Cell], by_key: Cells) -> str:
    lines, count = [], 0
    stricter = sum(_exceeds_strict_oracle(cell) for cell in cells)
    for cell in cells:
        family = FAMILIES[cell["family"]]
        _, fine = check_error(cell, family, by_key)
        wrong = (["error"] if fine is False else []) + check_coverage(cell, family.coverage)
        wrong += ["peer better"] if is_beaten(cell) else []
        if wrong:
            lines.append(f"* {cell['problem']}, n = {cell['n']}, eps = {cell['eps']:g}: {', '.join(wrong)}")
        count += not wrong
    text = f"{count} of {len(cells)} cells hold their limits. Against the oracle of radius and size, {stricter} cells would "
    text += "exceed the limit of their error. Those that fail:\n"
    return "\n".join(["## Verdict\n", text, *lines])


def _exceeds_strict_oracle(cell: Cell) -> bool:
    limits = FAMILIES[cell["family"]].oracle
    return limits is not None and cell["new"]["mse"] > limits[EPSILONS.index(cell["eps"])] * cell["least_oracle"]


def is_beaten(cell: Cell) -> bool:
    """Whether the untuned peer errs less by more than 10%."""
    return bool(cell["bins"] * 1.1 < cell["new"]["mse"])
