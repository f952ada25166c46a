"""The arithmetic behind `planning`: a plan and guesses in, expected squared errors out. No data anywhere.

The method's own functions are run on what its releases would be on average, if the guesses were right: one histogram of
lengths, one gradient round with the budget of those that count, and the posterior.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import gammainc

from dpfda._blas import one_blas_thread
from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.basis.moments import moment_bounds, uniform_moments
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.asymmetry import Sides
from dpfda.methods.adaptive.covariate_units import Units
from dpfda.methods.adaptive.covariates import CovariateLaw, assume_no_covariates, assume_uncorrelated
from dpfda.methods.adaptive.design import Design, fit_design
from dpfda.methods.adaptive.evidence import Answer, Asked, Measured, measure_silo, pool_silos
from dpfda.methods.adaptive.information import Information, build_information
from dpfda.methods.adaptive.lengths import AtBounds, LengthLaw, first_weights
from dpfda.methods.adaptive.level import Level
from dpfda.methods.adaptive.measurements import bias_shares, column_parts, find_asymmetry, find_bias_root
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.methods.adaptive.posterior import Posterior, fit_posterior
from dpfda.methods.adaptive.prior import ScaledMixture
from dpfda.methods.adaptive.radius import choose_radius, weigh_errors
from dpfda.methods.adaptive.shape import Coordinates, Spread, choose_column_scales, choose_function_shape
from dpfda.methods.adaptive.start import lengthen, model_covariance, scale_mixtures
from dpfda.protocol.plan import Plan
from dpfda.protocol.scaling import INTERCEPT
from dpfda.protocol.statistics import (
    LENGTH_CELLS,
    LONGEST_OCTAVE,
    SHORTEST_OCTAVE,
    ClippedGradient,
    CovariateMoments,
    DesignMoments,
    LengthHistogram,
    Statistic,
)

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
    with one_blas_thread():  # the bits of tables that are kept must not depend on threads
        return _forecast(plan, m, guesses)


def _forecast(plan: Plan, m: float, guesses: Guesses) -> tuple[float, float, float, float]:
    setting = _Setting.of(plan, m, guesses)
    truth, signal, truncation = setting.find_truth()
    mixtures = scale_mixtures(plan, setting.longer, setting.level, setting.law, setting.unit)
    posterior, measured = setting.run(truth, mixtures)
    sampling, privacy = 0.0, 0.0
    for each in measured.values():
        gain = each.find_gain(posterior.covariance, setting.information)
        sampling += setting.size_of(gain @ each.sampling @ gain.T)
        privacy += setting.size_of(gain @ (each.noise + each.doubt) @ gain.T)
    bias = max(setting.size_of(posterior.covariance) - sampling - privacy, 0.0) + truncation
    if guesses.functions is not None:
        taken = posterior.mean - truth
        bias = min(bias, setting.size_of(np.outer(taken, taken)) + truncation + constants.FORECAST_BIAS * bias)
    return bias, sampling, privacy, signal


@dataclass(frozen=True)
class _Setting:
    """What plan and guesses say of design, covariates and curves."""

    plan: Plan
    guesses: Guesses
    longer: Basis
    level: Level
    unit: float
    spread: Spread
    law: CovariateLaw
    design: Design
    information: Information

    @classmethod
    def of(cls, plan: Plan, m: float, guesses: Guesses) -> _Setting:
        longer, law = lengthen(plan.basis), _standardise(plan, guesses.design_moments)
        alone = (guesses.spread**2 + guesses.noise_sd**2) / m + constants.LEAST_UNIT**2
        shares = Spread(0.0, 1.0).matrix(constants.ALL_FUNCTIONS)
        smooth = guesses.spread**2 * (1 - 1 / m) / float(np.trace(shares))
        unit = math.sqrt(alone + smooth)
        design = _guess_design(plan, guesses.density)
        information = build_information(plan.basis, longer, design, law, 1.0)
        level = Level(0.0, unit / 4, unit, constants.GUESSED_LOG_SD)
        return cls(plan, guesses, longer, level, unit, Spread(alone, smooth), law, design, information)

    @property
    def n(self) -> float:
        return float(sum(silo.n for silo in self.plan.silos))

    def precision(self, kind: type[Statistic], rounds: slice = slice(None)) -> float:
        """n mu of a statistic, over silos and rounds."""
        return math.hypot(
            *(_precision(self.plan, silo.name, kind, rounds) for silo in self.plan.silos),
        )

    def find_truth(self) -> tuple[Floats, float, float]:
        """Coefficients of the guessed functions, standardised; the signal; and what the basis cannot show."""
        columns, scaling = self.plan.n_coefficients, self.plan.scaling
        truth = np.zeros((columns, self.longer.size))
        if self.guesses.functions is None:
            truth[:, 1 % self.longer.size] = self.guesses.signal * constants.SIGNAL_SLOPE
            if self.longer.size > constants.STRAIGHT:
                truth[:, 2] = self.guesses.signal * math.sqrt(1 - constants.SIGNAL_SLOPE**2)
            mixing = scaling.mixing()
            return truth.ravel(), self.guesses.signal**2 * float((mixing**2).sum()), 0.0
        points, weights = _make_quadrature()
        features = self.longer.evaluate_unit(points)
        gram = (features.T * weights) @ features
        values = np.stack([np.broadcast_to(each(points), points.shape) for each in self.guesses.functions])
        fitted = np.linalg.solve(gram, features.T @ (values * weights).T).T
        truncation = float(((values - fitted @ features.T) ** 2 @ weights).sum())
        levels = np.zeros(columns)
        levels[0] = values[0] @ weights
        signal = float(((values - levels[:, None]) ** 2 @ weights).sum())
        fitted[0, 0] -= levels[0]
        scaled = np.linalg.solve(scaling.mixing(), fitted)
        return (self.law.units.matrix @ scaled).ravel(), signal, truncation

    def run(self, truth: Floats, mixtures: Sequence[ScaledMixture]) -> tuple[Posterior, dict[str, Measured]]:
        """The posterior when every release is what it would be on average."""
        size, columns = self.plan.basis.size, self.plan.n_coefficients
        precision = self.precision(ClippedGradient)
        last = self.precision(ClippedGradient, slice(-1, None))
        expected = mixtures[0].average(mixtures[0].odds(constants.TEMPER))[:size, :size]
        spread = self.spread.matrix(size)
        functions = choose_function_shape(spread, expected, self.n, last)
        covariance = model_covariance(self.information, self.spread)
        coordinates = Coordinates.of(choose_column_scales(self.law), functions, covariance)
        bias = np.diag(bias_shares(size))
        weights = weigh_errors(functions, spread, expected, bias, self.n, last, columns)
        whitened = coordinates.whitener @ covariance @ coordinates.whitener.T
        dims = float(1 / (whitened**2).sum())
        seen = self.observe_lengths(dims, len(whitened))
        law, asymmetry = seen[0], find_asymmetry(self.plan, self.law, coordinates, whitened, seen, math.inf)
        radius = choose_radius(law, last, self.n, weights, dims, asymmetry)
        found = law.attenuation(np.array([radius]))
        jacobian = float(found.kept[0]) * np.eye(len(whitened)) - float(found.clipped[0]) * whitened
        found_bias = asymmetry.find_biases(np.array([radius]), constants.SURE)[0]
        asked = (Asked(truth, coordinates, radius, jacobian, found_bias, found_bias),)  # near the truth at the end
        root = find_bias_root(self.law, column_parts(self.law), size)
        value = jacobian @ (coordinates.whitener @ (self.information.matrix @ truth))
        measured: dict[str, Measured] = {}
        posterior, open_now = None, (truth, np.zeros((len(truth), len(truth))))
        share = last / precision
        for _ in range(constants.FORECAST_PASSES):
            for silo in self.plan.silos:
                own = _precision(self.plan, silo.name, ClippedGradient, slice(None))
                noise = 2 * radius / own * (1 + (1 - share) * constants.EARLY_ROUNDS)
                answers = (Answer(0, value, noise),)
                covariances = covariance / silo.n
                fit = measure_silo(asked, answers, self.information, covariances, open_now, root)
                measured[silo.name] = replace(fit, value=self.information.matrix @ truth)
            data, _ = pool_silos(measured, dict.fromkeys(measured, self.information))
            posterior = fit_posterior(data, np.zeros_like(truth), mixtures)
            open_now = (truth, posterior.covariance)
        assert posterior is not None
        return posterior, measured

    def observe_lengths(self, dims: float, size: int) -> tuple[LengthLaw, Sides | None]:
        """What is known of lengths and sides at the end, if lengths are like chi and sides alike."""
        law = _observe_chi(dims, self.n, math.sqrt(2) / self.precision(LengthHistogram))
        last = [each for each in self.plan.rounds[-2].statistics if isinstance(each, LengthHistogram)]
        signs = min(last[0].signs, size)
        if not signs:
            return law, None
        sd = math.sqrt(2 << signs) / self.precision(LengthHistogram, slice(-2, -1))
        return law, Sides(np.zeros((signs, LENGTH_CELLS)), sd, self.n)

    def size_of(self, moments: Floats) -> float:
        """Expected squared L2 length, in the user's units, of a deviation of the standardised coefficients."""
        mixing = self.plan.scaling.mixing() @ self.law.units.back
        gram = self.longer.gram()
        metric = np.kron(mixing.T @ mixing, gram)
        return float((metric * moments).sum())


def _precision(plan: Plan, silo: str, kind: type[Statistic], rounds: slice) -> float:
    found = []
    for index, planned in list(enumerate(plan.rounds))[rounds]:
        mus = plan.statistic_mus(silo, index)
        found += [mu for mu, each in zip(mus, planned.statistics, strict=True) if isinstance(each, kind)]
    return plan.silo(silo).n * math.hypot(*found) if found else 0.0


def _standardise(plan: Plan, moments: Floats) -> CovariateLaw:
    """The law of covariates with these second moments, known as well as the plan's releases will tell."""
    columns, intercept = plan.n_coefficients, plan.scaling.design_bounds[0] == INTERCEPT
    if columns == 1 and intercept:
        return assume_no_covariates()
    centre = np.where(intercept, moments[0], 0.0)
    centre[0] = 0.0
    centred = moments - np.outer(moments[0], moments[0]) if intercept else moments.copy()
    if intercept:
        centred[0, 0] = 1.0
    scale = np.sqrt(np.maximum(np.diag(centred), constants.LEAST_SCALE**2))
    law = assume_uncorrelated(Units(centre, scale, intercept), np.zeros(columns))
    precision = math.hypot(*(_precision(plan, silo.name, CovariateMoments, slice(None)) for silo in plan.silos))
    statistic = next(
        each for planned in plan.rounds for each in planned.statistics if isinstance(each, CovariateMoments)
    )
    noise = (2 * statistic.bound(plan.dimensions).radius / precision) ** 2 * np.array([1.0, 2.0, 2.0, 2.0])
    average, within = centred / np.outer(scale, scale), law.within.copy()
    within[0, int(intercept) :, int(intercept) :] = average[int(intercept) :, int(intercept) :]

    def learn(roots: Floats) -> Floats:
        return np.asarray(roots * np.sqrt(noise / (noise + (roots**2).sum(axis=-1)))[..., None])

    loose = law.loose * math.sqrt(noise[0] / (noise[0] + constants.CORRELATION_SD**2))
    found = replace(law, within=within, average=average, loose=loose)
    return replace(found, mean_roots=learn(law.mean_roots), within_roots=learn(law.within_roots))


def _guess_design(plan: Plan, density: Function | None) -> Design:
    """The design that the released moments would show, with the doubt that their noise leaves."""
    precision = math.hypot(*(_precision(plan, silo.name, DesignMoments, slice(None)) for silo in plan.silos))
    if precision == 0.0:
        return fit_design(plan.basis, None)
    points, weights = _make_quadrature()
    seen = weights if density is None else weights * np.maximum(np.asarray(density(points), dtype=np.float64), 0.0)
    values = seen @ plan.basis.moment_features(points) / seen.sum() - uniform_moments(plan.basis)
    scales, radius = moment_bounds(plan.basis)
    return fit_design(plan.basis, Pooled(values, 2 * radius * np.sqrt(scales) / precision, constants.MANY_CURVES))


def _observe_chi(dims: float, n: float, sd: float) -> LengthLaw:
    """What is known of lengths after histograms, if they are like chi with so many degrees of freedom."""
    edges = np.arange(SHORTEST_OCTAVE, LONGEST_OCTAVE + 1.0)
    below = np.concatenate([[0.0], gammainc(dims / 2, dims / 2 * 4.0**edges), [1.0]])
    law = LengthLaw.start(first_weights(AtBounds(float(LONGEST_OCTAVE), 0.0)), n, 2.0**LONGEST_OCTAVE)
    assert below.size == LENGTH_CELLS + 1
    return law.observe(np.diff(below), sd)


@lru_cache(maxsize=1)
def _make_quadrature() -> tuple[Floats, Floats]:
    roots, weights = np.polynomial.legendre.leggauss(constants.QUADRATURE_POINTS)
    return (roots + 1) / 2, weights / 2
