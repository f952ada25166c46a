"""The arithmetic behind `planning`: a plan and guesses in, expected squared errors out. No data anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from scipy.special import gammainc, gammaincinv

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.basis.moments import moment_bounds, moment_features, uniform_moments
from dpfda.methods.adaptive.design import fit_density
from dpfda.methods.adaptive.matrices import kron
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.methods.adaptive.posterior import log_odds
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import DesignMoments, WhitenedGradient

Function = Callable[[Floats], Floats]

_SIZES = np.exp(np.linspace(math.log(0.002), math.log(1.5), 28))
_MANY = 400  # functions that stand for all
_PASSES = 3
_THINNEST = 0.02  # least information that is believed in


@dataclass(frozen=True)
class Guesses:
    """Public guesses in the units of the algorithm (y in [-1, 1]); `functions` are in the user's."""

    TYPICAL: ClassVar[float] = 0.12

    spread: float
    noise_sd: float
    signal: float
    functions: tuple[Function, ...] | None
    density: Function | None
    design_moments: Floats


def forecast(plan: Plan, m: float, guesses: Guesses) -> tuple[float, float, float, float]:
    """Bias, sampling, privacy, and the variance of the signal around its level, in the user's units."""
    setting = _Setting(plan, guesses)
    spread = setting.gradient_spread(m)
    coefficients = setting.inverse @ spread @ setting.inverse
    sampling = [coefficients / terms.n for terms in plan.silos]
    units = {factor: setting.unit_noise(factor, spread) for factor in {terms.clip_factor for terms in plan.silos}}
    privacy = [units[terms.clip_factor] * 4 / (terms.n**2 * setting.budget(terms.name)) for terms in plan.silos]
    precisions = [np.linalg.inv(few + noise) for few, noise in zip(sampling, privacy, strict=True)]
    pooled: Floats = np.linalg.inv(np.add.reduce(precisions))
    doubt = np.zeros_like(pooled)
    for _ in range(_PASSES):  # what is left open decides what a wrong design does, and that what is left open
        prior = setting.prior(pooled + doubt, m)
        told = np.linalg.inv(pooled + doubt)
        posterior = np.linalg.inv(told + np.diag(1 / prior))
        lost = np.eye(len(prior)) - posterior @ told
        left = lost @ setting.second_moment(prior) @ lost.T
        gain, doubt = posterior @ told, setting.design_doubt(posterior + left)
    gains = [gain @ pooled @ precision for precision in precisions]

    def carried(covariances: Sequence[Floats]) -> float:
        return sum(setting.size_of(own @ part @ own.T) for own, part in zip(gains, covariances, strict=True))

    bias = setting.size_of(left) + setting.truncation
    return bias, carried(sampling), carried(privacy) + setting.size_of(gain @ doubt @ gain.T), setting.signal


class _Setting:
    """What plan and guesses say of basis, design, signal and curves."""

    def __init__(self, plan: Plan, guesses: Guesses) -> None:
        self.plan, self.guesses, basis = plan, guesses, plan.basis
        self.points, self.weights = _quadrature()
        self.features = basis.evaluate_unit(self.points)
        self.gram = (self.features.T * self.weights) @ self.features
        self.design_gram = _floored(self._design_gram())
        self.information = np.kron(guesses.design_moments, self.design_gram)
        self.inverse = np.linalg.inv(self.information)
        self.mixing = plan.scaling.mixing()
        self.metric = np.kron(self.mixing.T @ self.mixing, self.gram)
        self.decay = np.tile(_decay(basis, plan.alpha), plan.n_coefficients)
        everything = _decay(basis.resize(_MANY), plan.alpha)
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
        rest = values - fitted @ self.features.T
        self.truncation = float((rest**2 @ self.weights).sum())
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

    def gradient_spread(self, m: float) -> Floats:
        """Covariance of one curve's gradient at the truth: independent noise at m points, and a smooth random curve."""
        guesses, gram = self.guesses, self.design_gram
        misfit = self.truncation / self.plan.scaling.y_scale**2
        alone = (guesses.spread**2 + guesses.noise_sd**2 + misfit) / m + 1e-9
        smooth = guesses.spread**2 * (1 - 1 / m) * _random_curve(self.plan.basis)
        per_curve = alone * gram + gram @ np.diag(smooth) @ gram
        return np.asarray(np.kron(guesses.design_moments, per_curve), dtype=np.float64)

    def unit_noise(self, clip_factor: float, spread: Floats) -> Floats:
        """Covariance, in the coefficients, of noise with the sd of the clipping radius in the method's own coordinates."""
        shape = self.information @ _power(self.inverse @ spread @ self.inverse, 0.5) @ self.information
        whitener = _power(shape, -0.5)
        lengths = whitener @ spread @ whitener
        trace = float(np.trace(lengths))
        freedom = trace**2 / float((lengths**2).sum())  # lengths are about a multiple of chi
        radius = clip_factor * math.sqrt(2 * float(gammaincinv(freedom / 2, 0.5)))
        kept, inside = _attenuation(radius, freedom)
        slope = _floored(kept * np.eye(len(spread)) - (kept - inside) * lengths / trace, 0.1)
        restore = self.inverse @ _power(shape, 0.5) @ np.linalg.inv(slope)
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

    def design_doubt(self, displacement: Floats) -> Floats:
        """What the noise of the design's moments does to the coefficients, if they are this far from the last iterate."""
        if self._slopes is None:
            return np.zeros_like(displacement)
        moved = self.inverse @ self._slopes
        return np.asarray((moved @ displacement @ moved.swapaxes(-1, -2)).sum(axis=0))

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
        values = seen @ moment_features(self.plan.basis, self.points) / seen.sum() - uniform_moments(self.plan.basis)
        found = fit_density(self.plan.basis, Pooled(values, sd, math.inf))
        return kron(self.guesses.design_moments, found.slopes)

    def prior(self, noise: Floats, m: float) -> Floats:
        """Prior variances of the coefficients; their size is guessed or, for given functions, what the method will find."""
        guesses = self.guesses
        means = guesses.spread**2 * _random_curve(self.plan.basis)[0] + (guesses.spread**2 + guesses.noise_sd**2) / m
        level = (2 * math.sqrt(means) + 0.02) ** 2
        sizes = _SIZES if self.size is None else np.array([max(self.size, 1e-6)])
        candidates = [np.concatenate([[level], (size * self.decay[1:]) ** 2]) for size in sizes]
        scores = [self._evidence(variances, noise) for variances in candidates] + log_odds(sizes)
        return candidates[int(np.argmax(scores))]

    def _evidence(self, variances: Floats, noise: Floats) -> float:
        """Expected log evidence of a prior when the truth is seen through this noise."""
        inverse = np.linalg.inv(np.diag(variances) + noise)
        fit = float(self.truth @ inverse @ self.truth) + float((inverse * noise).sum())
        return 0.5 * (float(np.linalg.slogdet(inverse)[1]) - fit)

    def second_moment(self, prior: Floats) -> Floats:
        """E of the true coefficients' outer product: of the guessed functions, or of the prior."""
        if self.size is None:
            return np.outer(self.truth, self.truth)
        return np.diag(prior)


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Floats, Floats]:
    roots, weights = np.polynomial.legendre.leggauss(256)
    return (roots + 1) / 2, weights / 2


def _decay(basis: Basis, alpha: float) -> Floats:
    return np.maximum(basis.frequencies.astype(np.float64), 1.0) ** -alpha


def _random_curve(basis: Basis) -> Floats:
    """How a smooth random curve's variance spreads over the functions: most is its level."""
    frequencies = basis.resize(_MANY).frequencies.astype(np.float64)
    shares = np.where(frequencies == 0, 1.0, 0.25 * np.maximum(frequencies, 1.0) ** -2.0)
    return np.asarray((shares / shares.sum())[: basis.size])


def _attenuation(radius: float, freedom: float) -> tuple[float, float]:
    """E min(1, radius/L) and P(L <= radius) for L = chi with these degrees of freedom."""
    inside = float(gammainc(freedom / 2, radius**2 / 2))
    grid = np.linspace(radius, radius + 12.0, 2001)
    outside = np.diff(gammainc(freedom / 2, grid**2 / 2))
    return inside + float((outside * radius / ((grid[1:] + grid[:-1]) / 2)).sum()), inside


def _power(matrix: Floats, exponent: float) -> Floats:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    result: Floats = (vectors * np.maximum(values, 1e-12 * values.max()) ** exponent) @ vectors.T
    return result


def _floored(matrix: Floats, least: float = _THINNEST) -> Floats:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    result: Floats = (vectors * np.maximum(values, least)) @ vectors.T
    return result
