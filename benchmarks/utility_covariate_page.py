"""From measured cells to docs/utility-covariates.md."""

from __future__ import annotations

import numpy as np

from benchmarks.utility_combination import PRIOR_SIZES
from benchmarks.utility_families import EPSILONS, FAMILIES
from benchmarks.utility_verdicts import (
    Cell,
    Cells,
    check_coverage,
    check_error,
    describe_run,
    make_table,
    mark,
    show,
    show_share,
)  # fmt: skip

_COVARIATE_TEXT = """
delta = 1e-5, defaults, seeds fixed before. "Ratio": squared error of predictions at the design rows, over that of
non-private least squares with the same basis. "Effects": squared error of each coefficient function but the first, over
least squares'. "Coverage": of the simultaneous 95% bands, the function covered least often; "half width / RMSE": the widest
function. Limits are those of the utility page, with 92% for the coverage. Version 0.1 has no covariates that change within a
subject.
"""
_SIZES = ", ".join(f"{size:g}" for size in PRIOR_SIZES)
_SITE_TEXT = f"""
## Sites

20 sites of 50 to 500 subjects (five for the garbage site, of which the last sends values 100 times too large, clamped
to the bounds), through `estimator.sites_`. "Ratio": squared error of `sites_.mean("subjects")` over pooled non-private
least squares; of the small site's `sites_.curve` over its private fit alone; with the garbage site, over the private
fit without it. "Of predict": the same for `estimator.predict`. "Combination": the same for the best linear combination
of the same releases, which is what sites that differ in some way are measured against (1.3 times its error). Nobody
could compute it: of the estimates of B theta_s that the sites of the study have released it makes the generalised least
squares estimate with the true sds between sites, the true covariance of a curve's gradient, every site's own design as
it is, and no allowance for a bias of clipping, since these outcomes are symmetric; the prior of the common curve is the
one that the study ended with, times that of {_SIZES} which has the least error on average over the repetitions. It is
not a bound: clipped means are taken to have the derivative that the study thought, and weights that suit the truth
rather than its distribution would do better. For a small site it says how much of its error could be borrowed away at
all.
"""


def write_covariates(cells: list[Cell]) -> str:
    """The page."""
    by_key = {(cell["problem"], cell["n"], cell["eps"]): cell for cell in cells}
    parts = ["# Utility with covariates and sites\n", describe_run(cells), _COVARIATE_TEXT]
    order = {name: place for place, name in enumerate(FAMILIES)}
    cells = sorted(
        cells, key=lambda c: (order[c["family"]], FAMILIES[c["family"]].problems.index(c["problem"]), c["eps"])
    )
    models = [_covariate_row(cell, by_key) for cell in cells if FAMILIES[cell["family"]].kind == "covariates"]
    sites = [_site_row(cell, by_key) for cell in cells if FAMILIES[cell["family"]].kind == "sites"]
    head: tuple[str, ...] = ("problem", "n", "eps", "reps", "ratio", "limit", "effects", "limit of effects", "coverage",
            "half width / RMSE", "expected / achieved", "0.1", "0.1 coverage", "verdict")  # fmt: skip
    parts += [make_table(head, models)] if models else []
    head = ("problem", "eps", "reps", "ratio", "limit", "of predict", "combination", "coverage",
            "half width / RMSE", "verdict")  # fmt: skip
    parts += [_SITE_TEXT, make_table(head, sites)] if sites else []
    return "\n".join(parts) + "\n"


def _covariate_row(cell: Cell, by_key: Cells) -> str:
    family, new, old = FAMILIES[cell["family"]], cell["new"], cell.get("old")
    limit, fine = check_error(cell, family, by_key)
    effects = np.array(new["functions"])[1:] / np.array(cell["ls_functions"])[1:]
    wrong = (["error"] if fine is False else []) + check_coverage(cell, family.coverage)
    most = None if family.effect is None else family.effect[EPSILONS.index(cell["eps"])]
    if most is not None and effects.max() > most:
        wrong.append("effect")
    before = ["", ""] if old is None else [show(old["mse"] / cell["ls"]), show_share(old, cell)]
    fields = [
        cell["problem"], str(cell["n"]), f"{cell['eps']:g}", str(cell["reps"]), f"**{new['mse'] / cell['ls']:.2f}**", limit,
        ", ".join(f"{own:.2f}" for own in effects), "" if most is None else f"{most:g}", show_share(new, cell),
        show(new["width"]), show(new["told"]), *before, mark(wrong),
    ]  # fmt: skip
    return "| " + " | ".join(fields) + " |"


def _site_row(cell: Cell, by_key: Cells) -> str:
    family, new = FAMILIES[cell["family"]], cell["new"]
    limit, fine = check_error(cell, family, by_key)
    wrong = [] if fine in (True, None) else ["error"]
    wrong += [] if family.name == "garbage site" else check_coverage(cell, family.coverage)
    verdict = "band holds, error not judged" if not wrong and fine is None else mark(wrong)
    fields = [
        cell["problem"], f"{cell['eps']:g}", str(cell["reps"]), f"**{new['mse'] / cell['ls']:.2f}**", limit,
        show(new["default"] / cell["ls"]), show(cell["combined"] / cell["ls"] if "combined" in cell else None),
        show_share(new, cell), show(new["width"]), verdict,
    ]  # fmt: skip
    return "| " + " | ".join(fields) + " |"
