"""Private against non-private on real, public data: `python -m benchmarks.real_data [--quick]`.

Writes docs/real-data.md and its pictures. The data are public and the noise is seeded so that the page repeats; with private
data nobody may print a seeded fit, nor the least squares fit next to it.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from benchmarks.stamp import stamp
from dpfda import PrivateMean, PrivateVaryingCoefficients
from dpfda.curves.curves import Curves
from dpfda.curves.dataset_list import DatasetInfo
from dpfda.curves.datasets import get_dataset_info, load_dataset

Floats = NDArray[np.float64]

DOCS = Path(__file__).resolve().parents[1] / "docs"
EPSILONS, DELTA = (0.5, 1.0, 4.0), 1e-5
STUDIES: dict[str, tuple[str, ...]] = {"nafld-lipid": (), "nlswork": ("black", "grade"), "pbcseq": ()}
_POINTS = 201


@dataclass(frozen=True)
class Fits:
    """Functions on the grid, one column each: least squares, and private ones for one epsilon, one per seed."""

    epsilon: float
    private: Floats
    low: Floats
    high: Floats
    expected: float


@dataclass(frozen=True)
class Comparison:
    """Everything that page and picture show of one data set."""

    info: DatasetInfo
    labels: tuple[str, ...]
    grid: Floats
    weights: Floats
    reference: Floats
    fits: tuple[Fits, ...]


def compare(name: str, covariates: tuple[str, ...], seeds: int) -> Comparison:
    """Fit one data set without privacy and, for every epsilon, privately with several seeds."""
    info, curves = get_dataset_info(name), load_dataset(name, covariates)
    terms: dict[str, Any] = {"domain": info.domain, "y_bounds": info.y_bounds}
    if covariates:
        terms["design_bounds"] = [(0.0, 1.0)] * len(covariates)
    make = PrivateVaryingCoefficients if covariates else PrivateMean
    grid = np.linspace(*info.domain, _POINTS)
    reference = make(**terms, method="nonprivate").fit(curves)
    fits = []
    for epsilon in EPSILONS:
        runs = [make(epsilon, DELTA, **terms, random_state=seed).fit(curves) for seed in range(seeds)]
        bands = [run.band(x=grid) for run in runs]
        expected = runs[0].forecast(n=info.subjects, m=info.rows / info.subjects).total
        fits.append(
            Fits(
                epsilon,
                np.stack([_values(run, grid) for run in runs]),
                np.stack([_columns(low) for low, _ in bands]),
                np.stack([_columns(high) for _, high in bands]),
                expected,
            )
        )
    labels = (info.y,) if not covariates else ("intercept", *covariates)
    return Comparison(info, labels, grid, _density(curves, grid), _values(reference, grid), tuple(fits))


def _values(run: Any, grid: Floats) -> Floats:
    return _columns(run.predict_coefficients(grid) if hasattr(run, "predict_coefficients") else run.predict(grid))


def _columns(values: Floats) -> Floats:
    return values.reshape(len(values), -1)


def _density(curves: Curves, grid: Floats) -> Floats:
    """Share of all points nearest to each grid point, every curve counting the same."""
    counts = curves.counts
    weight = np.repeat(1 / np.maximum(counts, 1), counts)
    nearest = np.clip(np.round((curves.x - grid[0]) / (grid[-1] - grid[0]) * (_POINTS - 1)).astype(int), 0, _POINTS - 1)
    shares = np.bincount(nearest, weights=weight, minlength=_POINTS)
    return np.asarray(shares / shares.sum())


def table(found: Comparison) -> list[str]:
    """Rows of the page's table: distances to the non-private fit, mean over seeds."""
    lines = []
    even = np.full(_POINTS, 1 / _POINTS)
    for fits in found.fits:
        difference = fits.private - found.reference
        inside = (fits.low <= found.reference) & (found.reference <= fits.high)
        for column, label in enumerate(found.labels):
            data, whole = (_distance(difference[..., column], weights) for weights in (found.weights, even))
            width = float(((fits.high - fits.low)[..., column] @ found.weights).mean())
            held = float((inside[..., column] @ found.weights).mean())
            range_ = float(np.ptp(found.reference[_busy(found), column]))
            cells = [found.info.name, label, f"{fits.epsilon:g}", f"{data:.3g}", f"{whole:.3g}", f"{range_:.3g}"]
            cells += [f"{width:.3g}", f"{100 * held:.0f}%"]
            cells.append(f"{math.sqrt(fits.expected):.2g}" if column == 0 else "")
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def _busy(found: Comparison) -> NDArray[np.bool_]:
    """Grid points between the 1% and the 99% quantile of the design."""
    below = np.cumsum(found.weights)
    return np.asarray((below >= 0.01) & (below <= 0.99))


def _distance(differences: Floats, weights: Floats) -> float:
    """Root of the weighted mean square, mean over seeds."""
    return float(np.sqrt((differences**2) @ weights).mean())


def draw(found: Comparison, path: Path) -> None:
    """One panel for each epsilon and coefficient function."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rows, columns = len(found.labels), len(found.fits)
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.9 * columns, 2.9 * rows), squeeze=False, sharex=True, sharey="row"
    )
    busy = _busy(found)
    for column, fits in enumerate(found.fits):
        for row, label in enumerate(found.labels):
            axis = axes[row][column]
            axis.fill_between(
                found.grid,
                fits.low[0, :, row],
                fits.high[0, :, row],
                color="#9ecae1",
                alpha=0.6,
                lw=0,
                label="95% band",
            )
            for other in fits.private[1:6, :, row]:
                axis.plot(found.grid, other, color="#3182bd", lw=0.6, alpha=0.35)
            axis.plot(found.grid, fits.private[0, :, row], color="#08519c", lw=1.8, label="private")
            axis.plot(found.grid, found.reference[:, row], color="black", lw=1.3, ls="--", label="least squares")
            edges = found.grid[busy][[0, -1]]
            for left, right in ((found.grid[0], edges[0]), (edges[1], found.grid[-1])):
                axis.axvspan(left, right, color="grey", alpha=0.12, lw=0)
            low, high = _limits(found, row)
            axis.set_ylim(low, high)
            if row == 0:
                axis.set_title(f"eps = {fits.epsilon:g}, delta = {DELTA:g}", fontsize=10)
            if row == rows - 1:
                axis.set_xlabel(found.info.x)
            if column == 0:
                axis.set_ylabel(label)
    axes[0][-1].legend(fontsize=8, frameon=False)
    figure.suptitle(f"{found.info.title} ({found.info.subjects:,} subjects)", fontsize=11)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _limits(found: Comparison, row: int) -> tuple[float, float]:
    """Room for every curve where the data are, and half as much again."""
    busy = _busy(found)
    shown = [found.reference[busy, row], *(fits.private[:, busy, row].ravel() for fits in found.fits)]
    low, high = float(min(map(np.min, shown))), float(max(map(np.max, shown)))
    return low - 0.5 * (high - low), high + 0.5 * (high - low)


_PAGE = """# Real data: private against non-private

Written by `python -m benchmarks.real_data` ({seeds} seeds for every row, {minutes:.0f} minutes); do not edit.

All settings are the defaults: cosine basis, number of functions chosen from public numbers, public domain and bounds
from `dpfda.curves.datasets`; delta = 1e-5. "Least squares" is the non-private fit with 7 cosines. Distances are roots of
mean squared differences between the private and the non-private curve, in units of y, mean over seeds: "where the data are"
weighs x by the density of the design, "whole domain" weighs all x alike. "Range" is how much the non-private curve varies
between the 1% and the 99% quantile of the design. "Band" is the mean width of the simultaneous 95% band where the data are,
"held" the share of the design over which it contains the non-private curve. "Expected" is the root of the squared error
that `forecast` gives before anything is spent, from y_bounds alone (all coefficient functions together).

In the pictures the thick line is the first seed, with its band; thin lines are five others; each grey end holds 1% of the
design.

| data | function | eps | distance where the data are | whole domain | range | band | held | expected |
|---|---|---|---|---|---|---|---|---|
{rows}

{pictures}
"""


def main(arguments: list[str] | None = None) -> int:
    """Fit, draw, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_data", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 seeds")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--docs", type=Path, default=DOCS, help="where page and images/ go")
    chosen = parser.parse_args(arguments)
    seeds = 3 if chosen.quick else chosen.seeds
    warnings.simplefilter("ignore")
    started, rows, pictures = time.perf_counter(), [], []
    (chosen.docs / "images").mkdir(parents=True, exist_ok=True)
    for name, covariates in STUDIES.items():
        found = compare(name, covariates, seeds)
        draw(found, chosen.docs / "images" / f"real-{name}.png")
        rows += table(found)
        pictures.append(f"![{found.info.title}](images/real-{name}.png)\n\nSource: {found.info.source}.")
        print("\n".join(table(found)), flush=True)
    minutes = (time.perf_counter() - started) / 60
    page = _PAGE.format(seeds=seeds, minutes=minutes, rows="\n".join(rows), pictures="\n\n".join(pictures))
    (chosen.docs / "real-data.md").write_text(page, encoding="utf-8")
    stamp(chosen.docs / "real-data.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
