"""What others would do, written for the benchmark with exact accounting. Simulated noise: never use these on real data.

| peer | tuned |
|---|---|
| AdaSSP (Wang 2018) on per-curve sufficient statistics | nothing to tune |
| ridge regression in every curve, clipped, averaged, one Gaussian release | ridge and clip norm, by oracle |
| full-batch gradient descent with clipped gradients, uniform budget | clip norm, steps, step size, by oracle |

By oracle: the settings with the smallest TRUE error, averaged over the repetitions, are the ones reported. No user could
run that. Several silos: every silo adds its own noise, and weights are inverse public variances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpfda.basis.basis import Basis
from dpfda.curves.curves import Curves
from dpfda.silo.prepared import mean_per_curve

Floats = NDArray[np.float64]

_FAILURE = 0.05  # AdaSSP: probability that its ridge is too small
_PRODUCT_SHARE = 0.2  # of mu^2 for E[G G^T], where per-curve ridge needs it
_CLIPS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.5)  # times the median length of what is clipped
_STEPS = (4, 7, 12, 20, 40)
_SIZES = (0.1, 0.2, 0.4, 0.7, 1.0)
_RIDGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Statistics:
    """Per curve: mean of Phi Phi^T, mean of Phi y, design; per silo: number of curves and mu."""

    gram: Floats
    score: Floats
    design: Floats
    owner: NDArray[np.int64]
    n: Floats
    mu: Floats
    centre: float
    half: float
    longest: float

    @property
    def weights(self) -> Floats:
        """Silos by inverse public variance: about 1/n for sampling, 4 (d+1) r / (n mu)^2 for noise."""
        size = self.score.shape[1] * self.design.shape[1]
        inverse = 1 / (1 / self.n + 4 * size / (self.n * self.mu) ** 2)
        return np.asarray(inverse / inverse.sum())

    @property
    def per_curve(self) -> Floats:
        """What every curve counts in a weighted mean over silos."""
        return np.asarray((self.weights / self.n)[self.owner])

    def noise(self, sensitivity: float | Floats, share: float = 1.0) -> Floats:
        """Noise sd of a weighted mean, where replacing a curve changes a silo's SUM by `sensitivity`."""
        own = self.weights / (self.n * self.mu * math.sqrt(share))
        return np.asarray(sensitivity * math.sqrt(float((own**2).sum())))


def statistics(
    curves: Curves, basis: Basis, sizes: Sequence[int], mu: Sequence[float], y_bounds: tuple[float, float]
) -> Statistics:
    """Everything that the peers need of the data; y is clamped to its bounds and kept in its units."""
    features = basis.evaluate_unit(curves.x)
    y = np.clip(curves.y, *y_bounds)
    r = basis.size
    squares = (features[:, :, None] * features[:, None, :]).reshape(len(features), -1)
    low, high = y_bounds
    return Statistics(
        mean_per_curve(squares, curves.offsets).reshape(-1, r, r),
        mean_per_curve(features * y[:, None], curves.offsets),
        curves.design,
        np.repeat(np.arange(len(sizes)), sizes),
        np.asarray(sizes, dtype=np.float64),
        np.asarray(mu),
        (low + high) / 2,
        (high - low) / 2,
        basis.leverage(),  # largest |Phi|^2
    )


def adassp(data: Statistics, rng: np.random.Generator) -> Floats:
    """AdaSSP with a third of mu^2 each for the smallest eigenvalue, the normal matrix and the moment vector."""
    columns, r = data.design.shape[1], data.score.shape[1]
    size = columns * r
    x_squared = columns * data.longest  # |G (x) Phi|^2, entries of G being within [-1, 1]
    weight = data.per_curve
    centred = data.score - data.centre * data.gram[:, :, 0]
    normal = np.einsum("i,ia,ib,ilk->albk", weight, data.design, data.design, data.gram, optimize=True)
    normal = normal.reshape(size, size)
    moment = np.einsum("i,ia,il->al", weight, data.design, centred, optimize=True).ravel()
    sd_matrix = float(data.noise(math.sqrt(2) * x_squared, 1 / 3))
    sd_eigen = float(data.noise(x_squared, 1 / 3))
    sd_moment = float(data.noise(2 * math.sqrt(x_squared) * data.half, 1 / 3))
    smallest = np.linalg.eigvalsh(normal)[0] + sd_eigen * rng.standard_normal() - 1.645 * sd_eigen
    ridge = max(0.0, math.sqrt(size * math.log(2 * size**2 / _FAILURE)) * sd_matrix - max(smallest, 0.0))
    upper = np.triu(rng.standard_normal((size, size)), 1) * sd_matrix / math.sqrt(2)
    noisy = normal + upper + upper.T + np.diag(sd_matrix * rng.standard_normal(size))
    solution = np.linalg.lstsq(
        noisy + ridge * np.eye(size), moment + sd_moment * rng.standard_normal(size), rcond=None
    )[0]
    result: Floats = solution.reshape(columns, r)
    result[0, 0] += data.centre
    return result


RidgeSetting = tuple[float, float]  # ridge, clip norm
DescentSetting = tuple[float, int, float]  # clip norm, steps, step size


def ridge_settings(data: Statistics) -> list[RidgeSetting]:
    """Clip norms around the median length at every ridge."""
    found = []
    for ridge in _RIDGES:
        lengths = np.linalg.norm(_own_ridge(data, ridge), axis=1) * np.linalg.norm(data.design, axis=1)
        found += [(ridge, float(np.median(lengths)) * factor) for factor in _CLIPS]
    return found


def ridge_release(data: Statistics, settings: Sequence[RidgeSetting], rng: np.random.Generator) -> Floats:
    """Coefficients for every setting: the mean of G_i (x) b_i, clipped, plus noise; over E[G G^T] where G is not 1."""
    columns, r = data.design.shape[1], data.score.shape[1]
    share = 1.0 if columns == 1 else 1 - _PRODUCT_SHARE
    products = np.eye(1)
    if columns > 1:
        sd = float(data.noise(math.sqrt(2) * columns, _PRODUCT_SHARE))
        upper = np.triu(rng.standard_normal((columns, columns)), 1) * sd / math.sqrt(2)
        products = (data.design * data.per_curve[:, None]).T @ data.design + upper + upper.T
        values, vectors = np.linalg.eigh(products + np.diag(sd * rng.standard_normal(columns)))
        products = (vectors * np.maximum(values, max(sd, 0.02))) @ vectors.T
    own = {ridge: _own_ridge(data, ridge) for ridge in {ridge for ridge, _ in settings}}
    design_length, results = np.linalg.norm(data.design, axis=1), []
    for ridge, clip in settings:
        rows = own[ridge]
        length = np.maximum(np.linalg.norm(rows, axis=1) * design_length, 1e-12)
        factor = data.per_curve * np.minimum(1.0, clip / length)
        total = (data.design * factor[:, None]).T @ rows
        total += data.noise(2 * clip, share) * rng.standard_normal((columns, r))
        results.append(np.linalg.solve(products, total))
    return np.stack(results)


def _own_ridge(data: Statistics, ridge: float) -> Floats:
    penalised = data.gram + ridge * np.eye(data.gram.shape[1])
    return np.asarray(np.linalg.solve(penalised, data.score[:, :, None])[:, :, 0])


def descent_settings(data: Statistics, truth: Floats) -> list[DescentSetting]:
    """Clip norms around the median length of gradients AT THE TRUTH, steps and step sizes."""
    residual = np.einsum("ilk,ik->il", data.gram, data.design @ truth) - data.score
    median = float(np.median(np.linalg.norm(residual, axis=1) * np.linalg.norm(data.design, axis=1)))
    return [(median * clip, steps, size) for clip, steps, size in product(_CLIPS, _STEPS, _SIZES)]


def descent(data: Statistics, settings: Sequence[DescentSetting], rng: np.random.Generator) -> Floats:
    """The last iterate for every setting, from zero; settings with equally many steps run side by side."""
    columns, r = data.design.shape[1], data.score.shape[1]
    results = np.zeros((len(settings), columns, r))
    for steps in sorted({setting[1] for setting in settings}):
        chosen = [index for index, setting in enumerate(settings) if setting[1] == steps]
        clips = np.array([settings[index][0] for index in chosen])
        sizes = np.array([settings[index][2] for index in chosen])[:, None, None]
        sd = data.noise(2 * clips, 1 / steps)[:, None, None]
        iterate = np.zeros((len(chosen), columns, r))
        for _ in range(steps):
            noise = rng.standard_normal((columns, r))  # common to the settings: they are compared on equal luck
            iterate = iterate - sizes * (_clipped_mean(data, iterate, clips) + sd * noise)
        results[chosen] = iterate
    return results


def _clipped_mean(data: Statistics, iterates: Floats, clips: Floats) -> Floats:
    """Weighted means of clipped gradients at several iterates at once."""
    count, columns, r = iterates.shape
    if columns == 1 and np.all(data.design == 1):
        return _clipped_mean_of_scores(data, iterates[:, 0], clips)[:, None]
    slopes = (data.design @ iterates.transpose(1, 0, 2).reshape(columns, -1)).reshape(-1, count, r)
    scores = slopes @ data.gram - data.score[:, None, :]
    lengths = np.sqrt(np.einsum("icl,icl->ic", scores, scores)) * np.linalg.norm(data.design, axis=1)[:, None]
    scores *= (data.per_curve[:, None] * np.minimum(1.0, clips / np.maximum(lengths, 1e-12)))[:, :, None]
    total = data.design.T @ scores.reshape(len(scores), -1)
    return np.asarray(total.reshape(columns, count, r).transpose(1, 0, 2))


def _clipped_mean_of_scores(data: Statistics, iterates: Floats, clips: Floats) -> Floats:
    """The same for the design 1, where one matrix product does it."""
    n, r = data.score.shape
    scores = (data.gram.reshape(-1, r) @ iterates.T).reshape(n, r, -1) - data.score[:, :, None]
    lengths = np.sqrt(np.einsum("ilc,ilc->ic", scores, scores))
    factors = data.per_curve[:, None] * np.minimum(1.0, clips / np.maximum(lengths, 1e-12))
    return np.asarray(np.einsum("ilc,ic->cl", scores, factors))
