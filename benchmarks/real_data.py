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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from benchmarks.real_studies import COVARIATES, MEANS, SITES, Study
from benchmarks.stamp import stamp
from dpfda import PrivateMean, PrivateVaryingCoefficients, Silo
from dpfda.basis.basis import make_basis
from dpfda.curves.curves import Curves

Floats = NDArray[np.float64]

DOCS = Path(__file__).resolve().parents[1] / "docs"
EPSILONS, DELTA, LEVEL = (0.5, 1.0, 2.0), 1e-5, 0.95
_POINTS = 201
_SHOWN = 1.0  # the epsilon of the pictures of means


@dataclass(frozen=True)
class Fits:
    """Functions on the grid, one column each, and their bands for one epsilon, one fit for each seed."""

    epsilon: float
    private: Floats
    low: Floats
    high: Floats
    expected: float


@dataclass(frozen=True)
class Comparison:
    """Everything that page and picture show of one study."""

    study: Study
    subjects: int
    labels: tuple[str, ...]
    grid: Floats
    weights: Floats
    reference: Floats
    sampling: Floats
    fits: tuple[Fits, ...]


def compare(study: Study, seeds: int) -> Comparison:
    """Fit one study without privacy and, for every epsilon, privately with several seeds."""
    curves = study.read()
    grid = np.linspace(*study.domain, _POINTS)
    terms: dict[str, Any] = {"domain": study.domain, "y_bounds": study.y_bounds}
    if study.covariates:
        terms["design_bounds"] = [(1.0, 1.0), *study.covariates.values()]
    make = PrivateVaryingCoefficients if study.covariates else PrivateMean
    public: dict[str, Any] = {"n": curves.n, "m": curves.n_points / curves.n}
    if study.covariates:
        public["d"] = len(study.covariates)
    fits = []
    for epsilon in EPSILONS:
        runs = [make(epsilon, DELTA, **terms, random_state=seed).fit(curves) for seed in range(seeds)]
        expected = runs[0].forecast(**public).total
        fits.append(_collect(epsilon, [_read(run, grid) for run in runs], expected))
    reference, sampling = fit_least_squares(study, curves, grid)
    labels = ("at zero", *study.covariates) if study.covariates else (study.name,)
    return Comparison(study, curves.n, labels, grid, _density(curves, grid), reference, sampling, tuple(fits))


def compare_sites(study: Study, seeds: int) -> tuple[Comparison, list[str]]:
    """The mean over the subjects of all sites; and rows about the sites' own curves."""
    sites, whole = study.split(), study.read()
    grid = np.linspace(*study.domain, _POINTS)
    own = {name: fit_least_squares(study, curves, grid) for name, curves in sites.items()}
    fits, lines = [], []
    for epsilon in EPSILONS:
        runs = []
        for seed in range(seeds):
            silos = [Silo(curves, epsilon=epsilon, delta=DELTA, name=name) for name, curves in sites.items()]
            runs.append(PrivateMean(domain=study.domain, y_bounds=study.y_bounds, random_state=seed).fit(silos))
        means = [run.sites_.mean("subjects") for run in runs]
        expected = runs[0].expected_error_.total
        fits.append(_collect(epsilon, [(_columns(mean(grid)), *_band(mean, grid)) for mean in means], expected))
        lines.append(
            _describe_sites(epsilon, runs, own, grid, {name: _density(each, grid) for name, each in sites.items()})
        )
    reference, sampling = fit_least_squares(study, whole, grid)
    found = Comparison(study, whole.n, (study.name,), grid, _density(whole, grid), reference, sampling, tuple(fits))
    return found, lines


def _describe_sites(
    epsilon: float, runs: Sequence[Any], own: dict[str, tuple[Floats, Floats]], grid: Floats, weights: dict[str, Floats]
) -> str:
    """Distances of the sites' own curves, shrunk towards the others, and of the common one, to least squares of the site."""
    shrunk, common, held = [], [], []
    for run in runs:
        mean = run.sites_.mean("subjects")(grid)
        for name, (reference, _) in own.items():
            curve = run.sites_.curve(name)
            (low, high), target = _band(curve, grid), reference
            shrunk.append(_measure(curve(grid) - target[:, 0], weights[name]))
            common.append(_measure(mean - target[:, 0], weights[name]))
            held.append(float(((low <= target) & (target <= high))[:, 0] @ weights[name]))
    typical = float(np.mean([_measure(sampling[:, 0], weights[name]) for name, (_, sampling) in own.items()]))
    cells = [f"{epsilon:g}", *(f"{np.mean(each):.3g}" for each in (shrunk, common)), f"{typical:.3g}"]
    return "| " + " | ".join([*cells, f"{100 * np.mean(held):.0f}%"]) + " |"


def _collect(epsilon: float, runs: Sequence[tuple[Floats, Floats, Floats]], expected: float) -> Fits:
    curve, low, high = (np.stack(each) for each in zip(*runs, strict=True))
    return Fits(epsilon, curve, low, high, expected)


def _read(run: Any, grid: Floats) -> tuple[Floats, Floats, Floats]:
    values = run.predict_coefficients(grid) if hasattr(run, "predict_coefficients") else run.predict(grid)
    return (_columns(values), *_band(run, grid))


def _band(curve: Any, grid: Floats) -> tuple[Floats, Floats]:
    low, high = curve.band(LEVEL, x=grid)
    return _columns(low), _columns(high)


def _columns(values: Floats) -> Floats:
    return values.reshape(len(values), -1)


def fit_least_squares(study: Study, curves: Curves, grid: Floats) -> tuple[Floats, Floats]:
    """Every subject weighing the same: functions on the grid and their standard errors, subjects being independent."""
    counts = curves.counts
    owner = np.repeat(np.arange(curves.n), counts)
    weights = 1 / counts[owner]
    rows = np.repeat(curves.design, counts, axis=0) if curves.rows is None else curves.rows
    scale = np.abs(rows).max(axis=0)
    basis = make_basis("free-ends", study.functions, study.domain)
    table = ((rows / scale)[:, :, None] * basis.evaluate(curves.x)[:, None, :]).reshape(len(owner), -1)
    y = np.clip(curves.y, *study.y_bounds)
    inverse = np.linalg.pinv(table.T @ (table * weights[:, None]), rcond=1e-10, hermitian=True)
    found = inverse @ (table.T @ (y * weights))
    scores = table * ((y - table @ found) * weights)[:, None]
    by_subject = np.stack([np.bincount(owner, column, curves.n) for column in scores.T], axis=1)
    covariance = inverse @ (by_subject.T @ by_subject) @ inverse
    on_grid, d = basis.evaluate(grid), rows.shape[1]
    functions = on_grid @ (found.reshape(d, -1) / scale[:, None]).T
    blocks = covariance.reshape(d, basis.size, d, basis.size)
    errors = [np.sqrt(np.einsum("gi,ij,gj->g", on_grid, blocks[k, :, k], on_grid)) / scale[k] for k in range(d)]
    return functions, np.stack(errors, axis=1)


def _density(curves: Curves, grid: Floats) -> Floats:
    """Share of all points nearest to each grid point, every curve counting the same."""
    counts = curves.counts
    weight = np.repeat(1 / np.maximum(counts, 1), counts)
    nearest = np.clip(np.round((curves.x - grid[0]) / (grid[-1] - grid[0]) * (_POINTS - 1)).astype(int), 0, _POINTS - 1)
    shares = np.bincount(nearest, weights=weight, minlength=_POINTS)
    return np.asarray(shares / shares.sum())


def make_rows(found: Comparison) -> list[str]:
    """Rows of the page's table, mean over seeds."""
    lines, busy = [], find_busy(found)
    for fits in found.fits:
        inside = ((fits.low <= found.reference) & (found.reference <= fits.high))[:, busy]
        for column, label in enumerate(found.labels):
            distance = np.mean(
                [_measure(each, found.weights) for each in (fits.private - found.reference)[..., column]]
            )
            width = float(((fits.high - fits.low)[..., column] @ found.weights).mean()) / 2
            numbers = [
                distance,
                _measure(found.sampling[:, column], found.weights),
                np.ptp(found.reference[busy, column]),
                width,
            ]
            cells = [found.study.name, label] if len(found.labels) > 1 else [found.study.name]
            cells += [f"{fits.epsilon:g}", *(f"{each:.3g}" for each in numbers)]
            cells.append(f"{inside[..., column].all(axis=1).sum()} of {len(inside)}")
            cells.append(f"{math.sqrt(fits.expected):.2g}" if column == 0 else "")
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def find_busy(found: Comparison) -> NDArray[np.bool_]:
    """Grid points between the 1% and the 99% quantile of the design that are nearest to some point of the data."""
    below = np.cumsum(found.weights)
    return np.asarray((below >= 0.01) & (below - found.weights <= 0.99) & (found.weights > 0))


def _measure(differences: Floats, weights: Floats) -> float:
    """Root of the weighted mean square."""
    return float(np.sqrt(differences**2 @ weights))


def draw_means(found: Sequence[Comparison], path: Path) -> None:
    """One panel for each study, at one epsilon."""
    plt = _load_pyplot()
    columns = 3
    rows = math.ceil(len(found) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.9 * columns, 2.6 * rows), squeeze=False)
    for axis in axes.ravel()[len(found) :]:
        axis.set_visible(False)
    for axis, each in zip(axes.ravel(), found, strict=False):
        _draw_panel(axis, each, next(fits for fits in each.fits if fits.epsilon == _SHOWN), 0)
        axis.set_title(f"{each.study.name} (n = {each.subjects:,})", fontsize=9)
    _finish(plt, figure, axes[0][0], path)


def draw_functions(found: Comparison, path: Path) -> None:
    """One panel for each epsilon and coefficient function."""
    plt = _load_pyplot()
    rows, columns = len(found.labels), len(found.fits)
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.9 * columns, 2.6 * rows), squeeze=False, sharex=True, sharey="row"
    )
    for column, fits in enumerate(found.fits):
        for row, label in enumerate(found.labels):
            _draw_panel(axes[row][column], found, fits, row)
            axes[row][0].set_ylabel(label)
        axes[0][column].set_title(f"{found.study.name}, eps = {fits.epsilon:g}", fontsize=9)
    _finish(plt, figure, axes[0][-1], path)


def _load_pyplot() -> Any:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def _finish(plt: Any, figure: Any, first: Any, path: Path) -> None:
    first.legend(fontsize=7, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _draw_panel(axis: Any, found: Comparison, fits: Fits, column: int) -> None:
    grid, busy = found.grid, find_busy(found)
    axis.fill_between(
        grid, fits.low[0, :, column], fits.high[0, :, column], color="#9ecae1", alpha=0.6, lw=0, label="95% band"
    )
    for other in fits.private[1:6, :, column]:
        axis.plot(grid, other, color="#3182bd", lw=0.6, alpha=0.35)
    axis.plot(grid, fits.private[0, :, column], color="#08519c", lw=1.8, label="private")
    axis.plot(grid, found.reference[:, column], color="black", lw=1.3, ls="--", label="least squares")
    edges = grid[busy][[0, -1]]
    for left, right in ((grid[0], edges[0]), (edges[1], grid[-1])):
        axis.axvspan(left, right, color="grey", alpha=0.12, lw=0)
    shown = [found.reference[busy, column], *(each.private[:, busy, column].ravel() for each in found.fits)]
    low, high = float(min(map(np.min, shown))), float(max(map(np.max, shown)))
    axis.set_ylim(low - 0.5 * (high - low), high + 0.5 * (high - low))


_PAGE = """# Real data: private against non-private

Written by `python -m benchmarks.real_data` ({seeds} seeds for every row, {minutes:.0f} minutes); do not edit.

All settings are the defaults; delta = 1e-5. The data come with R packages ({sources}). Domains and bounds were declared from
what is known of each quantity, as the first table says, and none was set to fit the data;
but summaries of most sets (ranges, quartiles) had been seen by the one who declared them.

{declared}

"Least squares" is the non-private fit with 7 functions with free ends (4 where there are four times) in which every
subject weighs the same; its standard error treats subjects as independent. "Distance" is the root of the mean squared
difference between the private curve and that fit, where the data are (x weighted by the density of the design), mean
over seeds: what privacy and smoothing cost. The curve of all subjects that might have been asked is missed by least
squares too, by its "standard error". "Range" is how much the least squares curve varies between the 1% and the 99%
quantile of the design. "Half width" is that of the simultaneous 95% band where the data are; "held" says in how many
fits the band contains the least squares curve at every place between those quantiles that has data. It is not the
coverage of the truth, which nobody knows here: the band allows for sampling error, too, and least squares has wiggles
and ends of its own. "Expected" is the root of the squared error that `forecast` gives before anything is spent (all
coefficient functions together).

## Means

| study | eps | distance | standard error | range | half width | held | expected |
|---|---|---|---|---|---|---|---|
{means}

![Private means at eps 1](images/real-means.png)

The thick line is the first seed, with its band; thin lines are five others; each grey end holds 1% of the design.

## Covariates

Functions are per unit of the covariate, and "at zero" is the curve of a subject whose covariates are all zero. Union and
marriage are those of the year, a design row for each point; subjects without a covariate count as empty curves.

| study | function | eps | distance | standard error | range | half width | held | expected |
|---|---|---|---|---|---|---|---|---|
{covariates}

{pictures}

## Sites

Every school district is a silo with its own budget and noise ({districts} of them); the curve is `sites_.mean("subjects")`.
"Expected" is the fit's own `expected_error_` here.

| study | eps | distance | standard error | range | half width | held | expected |
|---|---|---|---|---|---|---|---|
{sites}

The districts' own curves, `sites_.curve(name)`, against least squares of the district alone: root mean square distances,
means over districts and seeds; "common": those of the mean over subjects, as if districts did not differ. "Held": over how
much of a district's design the band of its curve contains its least squares curve.

| eps | own curve | common | standard error of least squares | held |
|---|---|---|---|---|
{own}
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
    started = time.perf_counter()
    images = chosen.docs / "images"
    images.mkdir(parents=True, exist_ok=True)
    means = [_show(compare(study, seeds)) for study in MEANS]
    draw_means(means, images / "real-means.png")
    models, pictures = [_show(compare(study, seeds)) for study in COVARIATES], []
    for number, found in enumerate(models):
        draw_functions(found, images / f"real-covariates-{number}.png")
        pictures.append(f"![{found.study.name}](images/real-covariates-{number}.png)")
    together, own = compare_sites(SITES, seeds)
    page = _PAGE.format(
        seeds=seeds, minutes=(time.perf_counter() - started) / 60, declared=_declare(means),
        sources=", ".join(sorted({study.data for study in MEANS})), means=_join(means), covariates=_join(models),
        pictures="\n\n".join(pictures), sites=_join([_show(together)]), districts=len(SITES.split()), own="\n".join(own),
    )  # fmt: skip
    (chosen.docs / "real-data.md").write_text(page, encoding="utf-8")
    stamp(chosen.docs / "real-data.md")
    return 0


def _declare(found: Sequence[Comparison]) -> str:
    """What is public about every study."""
    lines = ["| study | data | outcome | kind | subjects | domain | bounds | why |", "|" + "---|" * 8]
    for each in found:
        study = each.study
        ends = [f"{low:g} to {high:g}" for low, high in (study.domain, study.y_bounds)]
        cells = [study.name, study.data, study.outcome, study.kind, f"{each.subjects:,}", *ends, study.because]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _show(found: Comparison) -> Comparison:
    print("\n".join(make_rows(found)), flush=True)
    return found


def _join(found: Sequence[Comparison]) -> str:
    return "\n".join(line for each in found for line in make_rows(each))


if __name__ == "__main__":
    sys.exit(main())
