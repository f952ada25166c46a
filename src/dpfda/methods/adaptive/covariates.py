"""How covariates are distributed, go together, and change along x: E[g g^T | x] as a polynomial in x.

Covariates are standardised by released centres and scales (`covariate_units.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.covariate_units import Units, fit_column
from dpfda.methods.adaptive.design import Design
from dpfda.methods.adaptive.matrices import power, raise_eigenvalues
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.methods.adaptive.prior import normalise
from dpfda.protocol.statistics import COVARIATE_CELLS, DEGREES


@dataclass(frozen=True)
class CovariateLaw:
    """E[g g^T | x] = m(x) m(x)^T + V(x): means and what is left around them, both polynomials in x; and the units of g.

    Coefficients are those of T_q(1 - 2u). Without an intercept means are not measured: they are zero, and V is all.
    Columns of roots are one-sd errors of coefficients; those of V have average 0 over the points. `average` is E[g g^T]
    over the points, and the truth is root (1 + E) root^T for `root` of `find_root`, E with sds `loose`.
    `longest` is how far a column can be from its centre, in its scale, where it looks two-valued; 0 for the others.
    """

    means: Floats  # (DEGREES, d)
    mean_roots: Floats  # (d, DEGREES, DEGREES)
    within: Floats  # (DEGREES, d, d)
    within_roots: Floats  # (d, d, DEGREES, DEGREES)
    average: Floats  # (d, d)
    loose: Floats  # (d, d)
    units: Units
    longest: Floats

    @property
    def columns(self) -> int:
        return int(self.means.shape[1])

    def find_root(self) -> Floats:
        """C with C C^T = E[g g^T]: its columns are principal directions of the covariates."""
        values, vectors = np.linalg.eigh(self.average)
        return np.asarray(vectors * np.sqrt(np.maximum(values, constants.MIN_COVARIATE_EIGENVALUE / 2)))

    def means_at(self, u: Floats) -> Floats:
        """m(x) for each u: (len(u), d)."""
        return np.asarray(evaluate_degrees(u) @ self.means)

    def moments_at(self, u: Floats) -> Floats:
        """E[g g^T | x] for each u: (len(u), d, d), positive definite."""
        means, first = self.means_at(u), int(self.units.intercept)
        found = means[:, :, None] * means[:, None, :]
        found[:, first:, first:] += _within_at(self.within[:, first:, first:], u)
        return np.asarray(found)

    @property
    def query_scale(self) -> Floats:
        """Scales in which products are asked for: a small group is not cut off."""
        return np.asarray(self.units.scale * np.maximum(self.longest / constants.ASKED_LENGTH, 1.0))


def assume_no_covariates() -> CovariateLaw:
    """The law of the constant 1."""
    return assume_uncorrelated(Units(np.zeros(1), np.ones(1), True), np.zeros(1))


def assume_uncorrelated(units: Units, longest: Floats) -> CovariateLaw:
    """Covariates of variance 1 that neither go together nor depend on x, with what may be wrong with that."""
    d, first = units.centre.size, int(units.intercept)
    means, within = np.zeros((DEGREES, d)), np.zeros((DEGREES, d, d))
    means[0, :first] = 1.0
    within[0] = np.diag(1.0 - means[0])
    sds = constants.WAVE_SD / np.maximum(np.arange(DEGREES), 1)
    sds[0] = constants.CORRELATION_SD
    mean_roots, within_roots = np.zeros((d, DEGREES, DEGREES)), np.zeros((d, d, DEGREES, DEGREES))
    if units.intercept:
        mean_roots[first:] = np.diag(sds)
    within_roots[first:, first:] = np.diag(sds)
    within_roots[:, :, 0, 0] = 0.0
    loose = np.full((d, d), constants.CORRELATION_SD)
    loose[:first] = loose[:, :first] = 0.0
    return CovariateLaw(means, mean_roots, within, within_roots, np.eye(d), loose, units, longest)


def fit_units(histograms: Pooled | None, filled: float, columns: int, *, intercept: bool) -> CovariateLaw:
    """Centres and scales from the histograms; covariates are taken to be uncorrelated and not to depend on x."""
    if histograms is None:
        return assume_no_covariates()
    centre, scale, longest = np.zeros(columns), np.ones(columns), np.zeros(columns)
    sd = float(histograms.sd[0]) / filled
    for k, shares in enumerate(histograms.values.reshape(-1, COVARIATE_CELLS) / filled, start=int(intercept)):
        mean, spread, two_valued = fit_column(shares, sd)
        if not intercept:
            mean, spread = 0.0, math.hypot(mean, spread)
        centre[k], scale[k] = mean, spread
        longest[k] = (1 + abs(mean)) / spread if two_valued else 0.0
    return assume_uncorrelated(Units(centre, scale, intercept), longest)


def fit_products(law: CovariateLaw, moments: Pooled, weight: float, design: Design) -> CovariateLaw:
    """How covariates change along x and go together: first their means, then what is left of the products.

    `weight` is what a curve weighs on average.
    """
    d, first = law.columns, int(law.units.intercept)
    waves = _Waves.of(design)
    stretch = law.query_scale / law.units.scale
    values, sds = moments.values.reshape(-1, DEGREES) / weight, moments.sd.reshape(-1, DEGREES) / weight
    pairs = [(j, k) for j in range(d) for k in range(j, d)][first:]
    means, mean_roots = law.means.copy(), law.mean_roots.copy()
    within, within_roots, even = law.within.copy(), law.within_roots.copy(), np.zeros((d, d))
    for (j, k), value, sd in zip(pairs, values, sds, strict=True):
        factor = stretch[j] * stretch[k]
        noise = (factor * sd) ** 2 + constants.SAMPLING_VARIANCE * max(factor, 1.0) / moments.n
        if j < first:
            means[:, k], mean_roots[k] = waves.fit(factor * value, noise, _list_guesses(constants.MEAN_SD))
            continue
        known = means if first else np.zeros_like(means)
        explained = waves.degrees @ known[:, j] * (waves.degrees @ known[:, k])
        guesses = guess_products(law, waves.degrees @ known, explained, waves, (j, k))
        found, roots = waves.fit(factor * value - waves.measure(explained), noise, guesses)
        within[:, j, k] = within[:, k, j] = found
        within_roots[j, k] = within_roots[k, j] = waves.leave_average(roots)
        even[j, k] = even[k, j] = math.hypot(*waves.measure_average(roots))
    found_law = replace(law, means=means, mean_roots=mean_roots, within=within, within_roots=within_roots)
    average = np.tensordot(waves.mass, found_law.moments_at(design.nodes.u), 1)
    found_law = replace(found_law, average=average)
    back = np.linalg.inv(found_law.find_root())
    return replace(found_law, loose=np.sqrt((back**2) @ even**2 @ (back**2).T))


@dataclass(frozen=True)
class _Guess:
    """A Gaussian prior of a function of x: coefficients of T_q, sds of level, slope and bends; and log odds."""

    centre: Floats
    level: float
    slope: float
    bend: float
    log_odds: float

    @property
    def variances(self) -> Floats:
        """Of the coefficients of orthonormal polynomials."""
        bends = self.bend / np.arange(1, DEGREES - 1)
        return np.asarray(np.concatenate([[self.level, self.slope], bends]) ** 2)


def _list_guesses(sd: float, centre: float = 0.0) -> list[_Guess]:
    """A level with this sd, slope and bends of any size."""
    level = np.zeros(DEGREES)
    level[0] = centre
    sizes = list(zip(constants.WAVE_SIZES, constants.WAVE_LOG_ODDS, strict=True))
    return [_Guess(level, sd, slope, bend, one + other) for slope, one in sizes for bend, other in sizes]


def guess_products(
    law: CovariateLaw, means: Floats, explained: Floats, waves: _Waves, pair: tuple[int, int]
) -> list[_Guess]:
    """What V_jk may be, given the means at the nodes: for covariates with two values means tell much, or all.

    With G in {-1, 1}, G^2 = 1. And of two such covariates that are never both at their upper bound, as those of a factor's
    levels, (1 + G_j)(1 + G_k) = 0.
    """
    j, k = pair
    centre, scale = law.units.centre, law.units.scale
    if j == k:
        expected = max(1 - float(waves.mass @ explained), constants.LEAST_SQUARE)
        guesses = _list_guesses(constants.SQUARE_SD, expected)
        square = np.ones(len(means))
    else:
        guesses = _list_guesses(constants.CORRELATION_SD)
        square = -1 - (centre[j] + scale[j] * means[:, j]) - (centre[k] + scale[k] * means[:, k])
    if not (law.units.intercept and law.longest[j] > 0 and law.longest[k] > 0):
        return guesses
    upper = [centre[i] + scale[i] * means[:, i] for i in pair]
    product = square - centre[j] * upper[1] - centre[k] * upper[0] + centre[j] * centre[k]
    told = waves.project(product / (scale[j] * scale[k]) - explained)
    odds = constants.TWO_VALUED_TOLD if j == k else 0.0
    return [*guesses, _Guess(told, constants.TOLD_SD, *constants.WAVE_SIZES[:1] * 2, odds)]


@dataclass(frozen=True)
class _Waves:
    """Polynomials over the points: T_q at the nodes, and those that are orthonormal for (about) the design."""

    degrees: Floats  # (nodes, DEGREES)
    mass: Floats
    weights: Floats  # the mass, and a little everywhere
    change: Floats  # T_q @ change are orthonormal for these weights

    @classmethod
    def of(cls, design: Design) -> _Waves:
        degrees, mass = evaluate_degrees(design.nodes.u), design.likely
        part = constants.EVEN_PART
        weights = (1 - part) * mass + part * design.nodes.uniform
        factor = np.linalg.cholesky((degrees * weights[:, None]).T @ degrees)
        return cls(degrees, mass, weights, np.linalg.inv(factor).T)

    def measure(self, values: Floats) -> Floats:
        """E[value T_q] of a function given at the nodes."""
        return np.asarray(self.degrees.T @ (self.mass * values))

    def measure_average(self, coefficients: Floats) -> Floats:
        """Averages over the points of functions given by coefficients of T_q, one column each."""
        return np.asarray(self.mass @ (self.degrees @ coefficients))

    def leave_average(self, coefficients: Floats) -> Floats:
        """The same functions without their averages."""
        found = coefficients.copy()
        found[0] -= self.measure_average(coefficients)
        return found

    def project(self, values: Floats) -> Floats:
        """Coefficients of T_q of the nearest polynomial to a function given at the nodes."""
        return np.asarray(self.change @ (self.change.T @ (self.degrees.T @ (self.weights * values))))

    def fit(self, value: Floats, noise: Floats, guesses: Sequence[_Guess]) -> tuple[Floats, Floats]:
        """Coefficients of T_q of a function with these moments, and roots of their covariance: guesses by evidence."""
        gram = (self.degrees * self.mass[:, None]).T @ self.degrees / np.sqrt(noise)[:, None]
        rows = gram @ self.change
        logs, means, covariances = [], [], []
        for guess in guesses:
            prior = guess.variances
            total = np.eye(DEGREES) + (rows * prior) @ rows.T
            gain = np.linalg.solve(total, rows * prior).T
            y = value / np.sqrt(noise) - gram @ guess.centre
            logs.append(guess.log_odds - 0.5 * (y @ np.linalg.solve(total, y) + np.linalg.slogdet(total)[1]))
            means.append(guess.centre + self.change @ (gain @ y))
            covariances.append(self.change @ (np.diag(prior) - gain @ (rows * prior)) @ self.change.T)
        weights = normalise(np.array(logs))
        mean = weights @ np.array(means)
        apart = np.array(means) - mean
        covariance = np.tensordot(weights, np.array(covariances), 1) + (apart.T * weights) @ apart
        return mean, power(covariance, 0.5)


def evaluate_degrees(u: Floats) -> Floats:
    """T_0 ... T_3 at 1 - 2u."""
    t = 1 - 2 * u
    return np.column_stack([np.ones_like(t), t, 2 * t * t - 1, t * (4 * t * t - 3)])


def _within_at(within: Floats, u: Floats) -> Floats:
    """V(x) for each u, its eigenvalues lifted: first those of the constant part, then those at every x."""
    sizes = np.sqrt(np.clip(np.diag(within[0]), constants.LEAST_SQUARE, None))
    scale = np.outer(sizes, sizes)
    least = constants.MIN_COVARIATE_EIGENVALUE
    even = raise_eigenvalues(within[0] / scale, least)
    found = even + np.tensordot(evaluate_degrees(u)[:, 1:], within[1:] / scale, 1)
    values, vectors = np.linalg.eigh(found)
    lifted = (vectors * np.maximum(values, least / 2)[:, None, :]) @ vectors.transpose(0, 2, 1)
    return np.asarray(lifted * scale)
