"""How covariates are distributed, go together, and change along x: E[g g^T | x] as a polynomial in x.

Covariates are standardised by released centres and scales, so that the first function is the curve of average covariates
and the others are effects of one standard deviation; `Units` takes coefficients and gradients there and back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.design import Design
from dpfda.methods.adaptive.matrices import raise_eigenvalues
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.protocol.statistics import COVARIATE_CELLS, DEGREES


@dataclass(frozen=True)
class Units:
    """g = (G - centre) / scale; the intercept, where there is one, stays 1."""

    centre: Floats
    scale: Floats
    intercept: bool

    @property
    def matrix(self) -> Floats:
        """theta* = matrix theta: what coefficient functions become in these units."""
        matrix = np.diag(self.scale)
        if self.intercept:
            matrix[0, 1:] = self.centre[1:]
        return matrix

    @property
    def back(self) -> Floats:
        """theta = back theta*."""
        return np.asarray(np.linalg.inv(self.matrix))

    def standardise_gradients(self, size: int) -> Floats:
        """What takes gradients with respect to theta to those with respect to theta*, `size` functions a column."""
        return np.asarray(np.kron(self.back.T, np.eye(size)))

    def restore(self, coefficients: Floats) -> Floats:
        """Coefficients theta from theta*, one row a column."""
        return np.asarray(self.back @ coefficients)


@dataclass(frozen=True)
class CovariateLaw:
    """E[g g^T | x] = sum_q products[q] T_q(1 - 2u), the variances of these numbers, and the units of g.

    `longest` is how far a column can be from its centre, in its scale, where it looks two-valued; 0 for the others.
    """

    products: Floats  # (DEGREES, d, d)
    variances: Floats  # the same shape
    units: Units
    longest: Floats

    @property
    def columns(self) -> int:
        return int(self.products.shape[1])

    @property
    def average(self) -> Floats:
        """The constant part."""
        return np.asarray(self.products[0])

    @property
    def query_scale(self) -> Floats:
        """Scales in which products are asked for: a small group is not cut off."""
        return np.asarray(self.units.scale * np.maximum(self.longest / constants.ASKED_LENGTH, 1.0))


def assume_no_covariates() -> CovariateLaw:
    """The law of the constant 1."""
    products = np.zeros((DEGREES, 1, 1))
    products[0, 0, 0] = 1.0
    units = Units(np.zeros(1), np.ones(1), True)
    return CovariateLaw(products, np.zeros((DEGREES, 1, 1)), units, np.zeros(1))


def fit_units(histograms: Pooled | None, filled: float, columns: int, *, intercept: bool) -> CovariateLaw:
    """Centres and scales from the histograms; covariates are taken to be uncorrelated and not to depend on x."""
    if histograms is None:
        return assume_no_covariates()
    centre, scale, longest = np.zeros(columns), np.ones(columns), np.zeros(columns)
    sd = float(histograms.sd[0]) / filled
    for k, shares in enumerate(histograms.values.reshape(-1, COVARIATE_CELLS) / filled, start=int(intercept)):
        mean, spread, two_valued = _fit_column(shares, sd)
        if not intercept:
            mean, spread = 0.0, math.hypot(mean, spread)
        centre[k], scale[k] = mean, spread
        longest[k] = (1 + abs(mean)) / spread if two_valued else 0.0
    products, variances = np.zeros((DEGREES, columns, columns)), np.zeros((DEGREES, columns, columns))
    products[0] = np.eye(columns)
    degrees = np.maximum(np.arange(DEGREES), 1)
    variances[:] = (constants.WAVE_SD / degrees[:, None, None]) ** 2
    variances[0] = constants.CORRELATION_SD**2
    if intercept:
        variances[:, 0, 0] = 0.0
    return CovariateLaw(products, variances, Units(centre, scale, intercept), longest)


def _fit_column(shares: Floats, sd: float) -> tuple[float, float, bool]:
    """Centre, scale and whether there are two values: from the ends' shares, or from those of all bins."""
    low, high = float(shares[0]), float(shares[-1])
    inside = float(shares[1:-1].sum())
    noise = sd * math.sqrt(COVARIATE_CELLS - 2)
    if inside < constants.TWO_VALUED_SDS * noise and inside < constants.MOST_INSIDE:
        share = min(max((high + 1 - low) / 2, constants.LEAST_GROUP), 1 - constants.LEAST_GROUP)
        return 2 * share - 1, 2 * math.sqrt(share * (1 - share)), True
    bins = COVARIATE_CELLS - 2
    places = np.concatenate([[-1.0], (np.arange(bins) + 0.5) * (2 / bins) - 1, [1.0]])
    clear = np.maximum(shares - constants.CLEAR_BINS * sd, 0.0)  # noise in empty bins would widen everything
    clear = clear if clear.sum() > 0 else np.maximum(shares, constants.LEAST_BIN)
    weights = clear / clear.sum()
    mean = float(weights @ places)
    spread = math.sqrt(float(weights @ (places - mean) ** 2) + (constants.WITHIN_BIN / bins) ** 2)
    return mean, max(spread, constants.LEAST_SCALE), False


def fit_products(law: CovariateLaw, moments: Pooled, filled: float, design: Design) -> CovariateLaw:
    """Correlations and how they change along x: the posterior of every product's coefficients under weak priors."""
    columns, intercept = law.columns, law.units.intercept
    first, second = np.triu_indices(columns)
    first, second = first[int(intercept) :], second[int(intercept) :]
    degrees = evaluate_degrees(design.nodes.u)
    mass = design.mass / design.mass.sum()
    gram = (degrees * mass[:, None]).T @ degrees
    stretch = law.query_scale / law.units.scale
    products, variances = law.products.copy(), law.variances.copy()
    values, sds = moments.values.reshape(-1, DEGREES) / filled, moments.sd.reshape(-1, DEGREES) / filled
    for j, k, value, sd in zip(first, second, values, sds, strict=True):
        factor = stretch[j] * stretch[k]
        noise = (factor * sd) ** 2 + constants.SAMPLING_VARIANCE * max(factor, 1.0) / moments.n
        prior = law.variances[:, j, k].copy()
        if j == k:
            prior[0] = constants.SQUARE_SD**2
        covariance = np.linalg.inv(np.diag(1 / prior) + gram.T @ (gram / noise[:, None]))
        centre = law.products[:, j, k]
        found = centre + covariance @ gram.T @ ((factor * value - gram @ centre) / noise)
        products[:, j, k] = products[:, k, j] = found
        variances[:, j, k] = variances[:, k, j] = np.diag(covariance)
    return replace(law, products=_keep_definite(products, design), variances=variances)


def evaluate_degrees(u: Floats) -> Floats:
    """T_0 ... T_3 at 1 - 2u."""
    t = 1 - 2 * u
    return np.column_stack([np.ones_like(t), t, 2 * t * t - 1, t * (4 * t * t - 3)])


def _keep_definite(products: Floats, design: Design) -> Floats:
    """Shrink what depends on x until E[g g^T | x] is positive definite where there are data."""
    found = products.copy()
    sizes = np.sqrt(np.clip(np.diag(found[0]), constants.LEAST_SQUARE, None))
    correlation = raise_eigenvalues(found[0] / np.outer(sizes, sizes), constants.MIN_COVARIATE_EIGENVALUE)
    found[0] = correlation * np.outer(sizes, sizes)
    here = design.mass > constants.SEEN_MASS * design.nodes.uniform
    degrees = evaluate_degrees(design.nodes.u[here])[:, 1:]
    for _ in range(constants.DEFINITE_PASSES):
        waves = np.tensordot(degrees, found[1:], 1)
        values = np.linalg.eigvalsh((found[0] + waves) / np.outer(sizes, sizes))
        if values.size == 0 or values.min() > constants.MIN_COVARIATE_EIGENVALUE / 2:
            return found
        found[1:] *= constants.DEFINITE_STEP
    return found
