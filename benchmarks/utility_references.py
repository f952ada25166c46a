"""What the private fits of the utility benchmark are compared with: least squares, an oracle radius, binned means.

None of them is private as it stands here: noise comes from numpy's generator, and the oracle knows the truth.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from benchmarks.utility_problems import GRID, Data, Floats, Problem
from dpfda.basis.basis import make_basis
from dpfda.privacy.accounting import mu_for

BINS = 8  # of the peer: untuned
_COUNT_SHARE = 0.2  # of mu^2 for the peer's counts
FIXED = 7  # functions of the oracle, as of method="nonprivate"
SIZES = (2, 3, 4, 5, 6, FIXED, 8, 10, 12, 16)
QUANTILES = (0.3, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99, 0.996, 0.999, 1.0)


def weigh(data: Data) -> Floats:
    """Each subject weighs the same: one over its number of points."""
    return np.asarray(1 / np.bincount(data.ids)[data.ids])


def fit_least_squares(data: Data, size: int) -> Floats:
    """Values on the grid of the non-private fit with `size` functions with free ends, one column for each function."""
    basis = make_basis("free-ends", size, (0.0, 1.0))
    features = basis.evaluate(data.x)
    rows = np.ones((len(data.x), 1)) if data.rows is None else data.rows
    scale = np.abs(rows).max(axis=0)
    table = ((rows / scale)[:, :, None] * features[:, None, :]).reshape(len(data.x), -1)
    weights = weigh(data)[:, None]
    normal, moment = table.T @ (table * weights), (table * weights).T @ data.y
    found = np.linalg.lstsq(normal, moment, rcond=1e-10)[0].reshape(rows.shape[1], size)
    return np.asarray(basis.evaluate(GRID) @ (found / scale[:, None]).T)


def fit_binned_means(data: Data, problem: Problem, mu: float, rng: np.random.Generator) -> Floats:
    """The peer: means in equal bins, clipped at the bounds; noisy sums over noisy shares, joined by straight lines."""
    low, high = problem.y_bounds
    n = int(data.ids.max()) + 1
    owner, weights = np.minimum((data.x * BINS).astype(int), BINS - 1), weigh(data)
    scaled = (np.clip(data.y, low, high) - (low + high) / 2) * 2 / (high - low)
    shares = np.bincount(owner, weights, BINS) / n + math.sqrt(2 / _COUNT_SHARE) / (n * mu) * rng.normal(size=BINS)
    sums = np.bincount(owner, weights * scaled, BINS) / n
    sums += 2 / (n * mu * math.sqrt(1 - _COUNT_SHARE)) * rng.normal(size=BINS)
    means = np.clip(sums / np.maximum(shares, 0.2 / BINS), -1, 1)
    values = np.interp(GRID, (np.arange(BINS) + 0.5) / BINS, means)
    return np.asarray(values * (high - low) / 2 + (low + high) / 2)


class Oracle:
    """The true centre, the whole budget in one release, the radius best on average, with 7 functions or the best number.

    Each curve's score at the truth is whitened by the true design and clipped to the radius; the clipped mean is divided by
    its derivative, or else a radius of zero would return the truth. Errors of all settings are kept until the end.
    """

    def __init__(self, problem: Problem, epsilon: float, delta: float) -> None:
        self._problem = problem
        self._mu = mu_for(epsilon, delta)
        self._errors: list[Floats] = []

    def add(self, data: Data, rng: np.random.Generator) -> None:
        """One repetition."""
        n, weights = int(data.ids.max()) + 1, weigh(data)
        features = make_basis("free-ends", max(SIZES), (0.0, 1.0)).evaluate(data.x)
        on_grid = make_basis("free-ends", max(SIZES), (0.0, 1.0)).evaluate(GRID)
        truth = np.interp(data.x, GRID, self._problem.truth)
        seen, noise = self._problem.seen, rng.normal(size=max(SIZES))
        found = np.zeros((len(SIZES), len(QUANTILES)))
        for row, size in enumerate(SIZES):
            own = features[:, :size]
            gram = own.T @ (own * weights[:, None]) / n
            centre = np.linalg.lstsq(gram, own.T @ (truth * weights) / n, rcond=1e-10)[0]
            values, vectors = np.linalg.eigh(gram)
            root = (vectors / np.sqrt(np.maximum(values, 1e-3 * values[-1]))) @ vectors.T
            scores = sum_by(data.ids, own * ((data.y - own @ centre) * weights)[:, None], n) @ root
            lengths = np.linalg.norm(scores, axis=1)
            for column, radius in enumerate(np.quantile(lengths, QUANTILES)):
                factor = np.minimum(1, radius / np.maximum(lengths, 1e-12))
                kept = float(np.mean(np.where(lengths <= radius, 1.0, factor * (1 - 1 / size))))
                mean = (scores * factor[:, None]).mean(axis=0) + 2 * radius / (n * self._mu) * noise[:size]
                step = root @ mean / kept
                error = on_grid[:, :size] @ (centre + step) - self._problem.truth
                found[row, column] = float(np.mean(error[seen] ** 2))
        self._errors.append(found)

    @property
    def error(self) -> float:
        """The mean squared error of the best radius with 7 functions."""
        return float(np.mean(self._errors, axis=0)[SIZES.index(FIXED)].min())

    @property
    def least_error(self) -> float:
        """The same with the best number of functions too, which takes more knowledge of the truth."""
        return float(np.mean(self._errors, axis=0).min())


def sum_by(ids: NDArray[np.int64], rows: Floats, n: int) -> Floats:
    return np.stack([np.bincount(ids, column, n) for column in rows.T], axis=1)
