"""The arithmetic behind `planning`: a plan and guesses in, expected squared errors out. No data anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.basis.moments import moment_bounds, uniform_moments
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.design import fit_density
from dpfda.methods.adaptive.geometry import least_noise_shape, random_curve_variances
from dpfda.methods.adaptive.matrices import inverse, kron, power, raise_eigenvalues
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.methods.adaptive.posterior import list_sizes, log_odds, sobolev_decay
from dpfda.protocol.length_filter import chi_below, squared_chi_median
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import DesignMoments, WhitenedGradient

Function = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Guesses:
    """Public guesses in the units of the algorithm (y in [-1, 1]); `functions` are in the user's."""

    spread: float
    noise_sd: float
    signal: float
    functions: tuple[Function, ...] | None
    density: Function | None
    design_moments: Floats


def forecast(plan: Plan, m: float, guesses: Guesses) -> tuple[float, float, float, float]:
    """Bias, sampling, privacy, and the variance of the signal around its level, in the user's units."""
    setting = _Setting(plan, guesses)
    covariance = setting.gradient_covariance(m)
    coefficients = setting.inverse @ covariance @ setting.inverse
    sampling = [coefficients / terms.n for terms in plan.silos]
    units = {
        factor: setting.unit_noise(factor, covariance, coefficients)
        for factor in {terms.clip_factor for terms in plan.silos}
    }
    privacy = [units[terms.clip_factor] * 4 / (terms.n**2 * setting.budget(terms.name)) for terms in plan.silos]
    precisions = [inverse(few + noise) for few, noise in zip(sampling, privacy, strict=True)]
    pooled = inverse(np.add.reduce(precisions))
    doubt = np.zeros_like(pooled)
    for _ in range(
        constants.FORECAST_PASSES
    ):  # what is left open decides what a wrong design does, and that what is left
        prior = setting.prior(pooled + doubt, m)
        precision = inverse(pooled + doubt)
        posterior = inverse(precision + np.diag(1 / prior))
        lost = np.eye(len(prior)) - posterior @ precision
        left = lost @ setting.second_moment(prior) @ lost.T
        gain, doubt = posterior @ precision, setting.design_doubt(posterior + left)
    gains = [gain @ pooled @ silo_precision for silo_precision in precisions]

    def carry(covariances: Sequence[Floats]) -> float:
        return sum(
            setting.size_of(by_silo @ part @ by_silo.T) for by_silo, part in zip(gains, covariances, strict=True)
        )

    bias = setting.size_of(left) + setting.truncation
    return bias, carry(sampling), carry(privacy) + setting.size_of(gain @ doubt @ gain.T), setting.signal


class _Setting:
    """What plan and guesses say of basis, design, signal and curves."""

    def __init__(self, plan: Plan, guesses: Guesses) -> None:
        self.plan, self.guesses, basis = plan, guesses, plan.basis
        self.points, self.weights = _make_quadrature()
        self.features = basis.evaluate_unit(self.points)
        self.gram = (self.features.T * self.weights) @ self.features
        self.design_gram = raise_eigenvalues(self._design_gram(), constants.MIN_GUESSED_GRAM)
        self.information = kron(guesses.design_moments, self.design_gram)
        self.inverse = inverse(self.information)
        self.mixing = plan.scaling.mixing()
        self.metric = kron(self.mixing.T @ self.mixing, self.gram)
        self.decay = np.tile(sobolev_decay(basis, plan.alpha), plan.n_coefficients)
        everything = sobolev_decay(basis.resize(constants.ALL_FUNCTIONS), plan.alpha)
        self._harmonics = float((everything[1:] ** 2).sum())
        if guesses.functions is None:
            self._from_size(float((everything[basis.size :] ** 2).sum()))
        else:
            self._from_functions(guesses.functions)

    @cached_property
    def _density(self) -> Floats | None:
        density = self.guesses.density
        return None if density is None else np.maximum(np.asarray(density(self.points), dtype=np.float64), 0.0)

    def _design_gram(self) -> Floats:
        if self._density is None:
            return self.gram
        weights = self.weights * self._density
        result: Floats = (self.features.T * (weights / weights.sum())) @ self.features
        return result

    def _from_size(self, beyond: float) -> None:
        """Coefficients are random, falling like k^-alpha; what lies beyond the basis is lost."""
        size = self.guesses.signal / math.sqrt(self._harmonics)
        scale = float((self.mixing**2).sum())
        self.size: float | None = size
        self.truncation = size**2 * beyond * scale
        self.signal = self.guesses.signal**2 * scale
        self.truth = np.zeros(len(self.decay))

    def _from_functions(self, functions: Sequence[Function]) -> None:
        """Coefficients are those of the guessed functions in the basis, the level of the first being known."""
        values = np.stack([np.broadcast_to(function(self.points), self.points.shape) for function in functions])
        fitted = np.linalg.solve(self.gram, self.features.T @ (values * self.weights).T).T
        missing = values - fitted @ self.features.T
        self.truncation = float((missing**2 @ self.weights).sum())
        levels = np.zeros(len(values))
        levels[0] = values[0] @ self.weights
        self.signal = float(((values - levels[:, None]) ** 2 @ self.weights).sum())
        fitted[0, 0] -= self.plan.scaling.y_shift
        truth = np.asarray(np.linalg.solve(self.mixing, fitted), dtype=np.float64).ravel()
        truth[0] = 0.0
        self.truth, self.size = truth, None

    def size_of(self, covariance: Floats) -> float:
        """Expected squared L2 length, in the user's units, of a deviation of the coefficients."""
        return float((self.metric * covariance).sum())

    def gradient_covariance(self, m: float) -> Floats:
        """Covariance of one curve's gradient at the truth: independent noise at m points, and a smooth random curve."""
        guesses, gram = self.guesses, self.design_gram
        misfit = self.truncation / self.plan.scaling.y_scale**2
        alone = (guesses.spread**2 + guesses.noise_sd**2 + misfit) / m + constants.MIN_GUESSED_VARIANCE
        smooth = guesses.spread**2 * (1 - 1 / m) * _share_variance(self.plan.basis)
        per_curve = alone * gram + gram @ np.diag(smooth) @ gram
        return kron(guesses.design_moments, per_curve)

    def unit_noise(self, clip_factor: float, covariance: Floats, coefficients: Floats) -> Floats:
        """Covariance, in the coefficients, of noise with the sd of the clipping radius in the method's coordinates."""
        shape = least_noise_shape(self.information, coefficients)
        whitener = power(shape, -0.5)
        whitened = whitener @ covariance @ whitener
        trace = float(np.trace(whitened))
        freedom = trace**2 / float((whitened**2).sum())  # lengths are about a multiple of chi
        radius = clip_factor * math.sqrt(float(squared_chi_median(freedom)))
        kept, inside = attenuate_chi(radius, freedom)
        slope = kept * np.eye(len(covariance)) - (kept - inside) * whitened / trace
        restore = self.inverse @ power(shape, 0.5) @ inverse(raise_eigenvalues(slope, constants.MIN_JACOBIAN))
        return np.asarray(radius**2 * trace / freedom * restore @ restore.T, dtype=np.float64)

    def budget(self, silo: str) -> float:
        """The mu^2 of the gradient rounds; the first only finds the way."""
        spent = []
        for index, planned in enumerate(self.plan.rounds):
            mus = self.plan.statistic_mus(silo, index)
            spent += [
                mu**2 for mu, kind in zip(mus, planned.statistics, strict=True) if isinstance(kind, WhitenedGradient)
            ]
        return sum(spent[1:])

    def design_doubt(self, second_moments: Floats) -> Floats:
        """What the noise of the design's moments does to the coefficients, if they are this far from the last iterate."""
        if self._slopes is None:
            return np.zeros_like(second_moments)
        slopes = self.inverse @ self._slopes
        return np.asarray((slopes @ second_moments @ slopes.swapaxes(-1, -2)).sum(axis=0))

    @cached_property
    def _slopes(self) -> Floats | None:
        """How the design's part of the information may be wrong by one standard deviation, for each way in which it may."""
        weights, radius = moment_bounds(self.plan.basis)
        precision = 0.0
        for terms in self.plan.silos:
            for mu, kind in zip(self.plan.statistic_mus(terms.name, 0), self.plan.rounds[0].statistics, strict=True):
                precision += (terms.n * mu) ** 2 if isinstance(kind, DesignMoments) else 0.0
        if precision == 0.0:
            return None
        sd = 2 * radius * np.sqrt(weights / precision)
        seen = self.weights if self._density is None else self.weights * self._density
        values = seen @ self.plan.basis.moment_features(self.points) / seen.sum() - uniform_moments(self.plan.basis)
        found = fit_density(self.plan.basis, Pooled(values, sd, math.inf))
        return kron(self.guesses.design_moments, found.slopes)

    def prior(self, noise: Floats, m: float) -> Floats:
        """Prior variances of the coefficients; their size is guessed or, for given functions, what the method will find."""
        guesses, share = self.guesses, _share_variance(self.plan.basis)[0]
        means = guesses.spread**2 * share + (guesses.spread**2 + guesses.noise_sd**2) / m
        level = (2 * math.sqrt(means) + constants.LEVEL_MARGIN) ** 2
        sizes = list_sizes(constants.FORECAST_SIZES)
        if self.size is not None:
            sizes = np.array([max(self.size, constants.MIN_GUESSED_SIZE)])
        candidates = [np.concatenate([[level], (size * self.decay[1:]) ** 2]) for size in sizes]
        scores = [self._expect_evidence(variances, noise) for variances in candidates] + log_odds(sizes)
        return candidates[int(np.argmax(scores))]

    def _expect_evidence(self, variances: Floats, noise: Floats) -> float:
        """Expected log evidence of a prior when the truth is seen through this noise."""
        precision = inverse(np.diag(variances) + noise)
        fit = float(self.truth @ precision @ self.truth) + float((precision * noise).sum())
        return 0.5 * (float(np.linalg.slogdet(precision)[1]) - fit)

    def second_moment(self, prior: Floats) -> Floats:
        """E of the true coefficients' outer product: of the guessed functions, or of the prior."""
        if self.size is None:
            return np.outer(self.truth, self.truth)
        return np.diag(prior)


@lru_cache(maxsize=1)
def _make_quadrature() -> tuple[Floats, Floats]:
    roots, weights = np.polynomial.legendre.leggauss(constants.QUADRATURE_POINTS)
    return (roots + 1) / 2, weights / 2


def _share_variance(basis: Basis) -> Floats:
    """How a smooth random curve's variance is shared by the functions, those beyond the basis included."""
    shares = random_curve_variances(basis.resize(constants.ALL_FUNCTIONS))
    return np.asarray((shares / shares.sum())[: basis.size])


def attenuate_chi(radius: float, freedom: float) -> tuple[float, float]:
    """E min(1, radius/L) and P(L <= radius) for L = chi with these degrees of freedom, any number of them.

    `LengthFilter.attenuation` has the same for the few shapes that it knows, from tables.
    """
    inside = float(chi_below(freedom, radius**2))
    grid = np.linspace(radius, radius + constants.LENGTH_REACH, constants.LENGTH_POINTS)
    outside = np.diff(chi_below(freedom, grid**2))
    return inside + float((outside * radius / ((grid[1:] + grid[:-1]) / 2)).sum()), inside
