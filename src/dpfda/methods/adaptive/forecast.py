"""The arithmetic behind `planning`: a plan and guesses in, expected squared errors out. No data anywhere.

The method's own functions are run on what its releases would be on average, if the guesses were right: one histogram of
lengths, one gradient round with the budget of those that count, and the posterior. Where every subject is a site of its own,
noise is so large that no course is average: then the whole method follows possible ones (`courses.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dpfda._blas import one_blas_thread
from dpfda._typing import Floats, Integers
from dpfda.basis.basis import Basis
from dpfda.basis.moments import moment_bounds, uniform_moments
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.asymmetry import Asymmetry, Sides
from dpfda.methods.adaptive.courses import MadeUpCurves, can_follow, follow_course, pool_plan
from dpfda.methods.adaptive.covariate_units import Units
from dpfda.methods.adaptive.covariates import CovariateLaw, assume_no_covariates, assume_uncorrelated
from dpfda.methods.adaptive.design import Design, fit_design
from dpfda.methods.adaptive.evidence import (
    Answer,
    Asked,
    Measured,
    ReadRounds,
    measure_silo,
    pool_silos,
    spread_bias,
    weigh_measurements,
)
from dpfda.methods.adaptive.information import Information, build_information
from dpfda.methods.adaptive.lengths import AtBounds, LengthLaw, find_octaves, first_weights
from dpfda.methods.adaptive.level import Level
from dpfda.methods.adaptive.measurements import bias_shares, column_parts, find_asymmetry, find_bias_root
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.methods.adaptive.posterior import Posterior, fit_posterior
from dpfda.methods.adaptive.prior import ScaledMixture
from dpfda.methods.adaptive.radius import choose_radius, find_octave_at_bounds, spare_two_valued, weigh_errors
from dpfda.methods.adaptive.shape import (
    Coordinates,
    Spread,
    choose_column_scales,
    choose_function_shape,
    smooth_variances,
)
from dpfda.methods.adaptive.start import lengthen, model_covariance, scale_mixtures
from dpfda.methods.adaptive.weights import MeanWeight
from dpfda.protocol.plan import Plan
from dpfda.protocol.scaling import INTERCEPT
from dpfda.protocol.statistics import (
    LENGTH_CELLS,
    LONGEST_OCTAVE,
    ClippedGradient,
    CovariateMoments,
    DesignMoments,
    LengthHistogram,
    Statistic,
)

Function = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Outcome:
    """How y scatters around its mean: `draw` takes latent normal numbers (one row per curve) to deviations from it.

    `correlation` is that of two visits of one subject, in the latent numbers. The values of a `two_valued` outcome are its
    bounds, the further of which is `away` from the mean.
    """

    draw: Callable[[Floats], Floats]
    correlation: float
    two_valued: bool = False
    away: float = 1.0


@dataclass(frozen=True)
class Guesses:
    """Public guesses in the units of the algorithm (y in [-1, 1]); `functions` are in the user's."""

    spread: float
    noise_sd: float
    signal: float
    functions: tuple[Function, ...] | None
    density: Function | None
    design_moments: Floats
    outcome: Outcome | None = None  # how y scatters around its mean, if not like a normal law


def forecast(plan: Plan, m: float, guesses: Guesses, *, courses: int = 0) -> tuple[float, float, float, float]:
    """Bias, sampling, privacy, and the variance of the signal around its level, in the user's units.

    With `courses` the error is that of so many possible courses, where such can be drawn; the privacy part is what they
    have beyond the bias of the average one.
    """
    with one_blas_thread():  # the bits of tables that are kept must not depend on threads
        return _forecast(plan, m, guesses, courses)


def _forecast(plan: Plan, m: float, guesses: Guesses, courses: int) -> tuple[float, float, float, float]:
    setting = _Setting.of(plan, m, guesses)
    truth, signal, truncation = setting.find_truth()
    mixtures = scale_mixtures(plan, setting.longer, setting.level, setting.law, setting.unit)
    bias, sampling, privacy = setting.split(setting.run(truth, mixtures), truth, truncation)
    if courses and guesses.outcome is None and can_follow(plan):
        total = setting.follow_courses(truth, courses) + truncation
        bias = min(bias, total)
        privacy = total - bias
    return bias, sampling, privacy, signal


@dataclass(frozen=True)
class _Release:
    """Made-up gradients in the coordinates that are clipped, and what the method believes of them."""

    gradients: Floats
    coordinates: Coordinates
    whitened: Floats  # their second moments
    asymmetry: Asymmetry

    def clip(self, radius: float) -> Floats:
        """What clipping leaves of a mean of zero."""
        lengths = np.sqrt((self.gradients**2).sum(axis=1))
        kept = np.minimum(1.0, radius / np.maximum(lengths, constants.LEAST_LENGTH))
        return np.asarray(kept @ self.gradients / len(self.gradients))


@dataclass(frozen=True)
class _Found:
    """The posterior, and the second moments of what sampling, noise, clipping and the prior do to the estimate."""

    posterior: Posterior
    sampling: Floats
    noise: Floats
    clipping: Floats
    shrinkage: Floats

    @classmethod
    def of(cls, posterior: Posterior, measured: Mapping[str, Measured], matrix: Floats, taken: Floats) -> _Found:
        """`taken` is what clipping takes from B theta at every silo."""
        weights, alike = weigh_measurements(measured)
        shape = posterior.covariance.shape
        sampling, noise, assumed, along = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(len(matrix.T))
        for name, each in measured.items():
            gain = posterior.covariance @ matrix.T @ weights[name]
            sampling += gain @ each.sampling @ gain.T
            noise += gain @ (each.noise + alike * each.doubt) @ gain.T
            assumed += alike * gain @ each.bias @ gain.T
            along += gain @ taken
        shrinkage = posterior.covariance - sampling - noise - assumed  # what the prior takes
        return cls(posterior, sampling, noise, np.outer(along, along), shrinkage)


@dataclass(frozen=True)
class _Setting:
    """What plan and guesses say of design, covariates and curves."""

    plan: Plan
    m: float
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
        longer, law = lengthen(plan.basis, plan.n_coefficients), _standardise(plan, guesses.design_moments)
        alone = (guesses.spread**2 + guesses.noise_sd**2) / m + constants.LEAST_UNIT**2
        shares = Spread(0.0, 1.0).matrix(constants.ALL_FUNCTIONS)
        smooth = guesses.spread**2 * (1 - 1 / m) / float(np.trace(shares))
        unit = math.sqrt(alone + smooth)
        design = _guess_design(plan, guesses.density)
        information = build_information(plan.basis, longer, design, law, MeanWeight.of_share(1.0))
        level = Level(0.0, unit / 4, unit, constants.GUESSED_LOG_SD)
        return cls(plan, m, guesses, longer, level, unit, Spread(alone, smooth), law, design, information)

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
            falling = (
                np.arange(1.0, max(2, min(self.plan.basis.size, constants.SIGNAL_FUNCTIONS))) ** -constants.SIGNAL_FALL
            )
            truth[:, 1 : 1 + falling.size] = self.guesses.signal * falling / np.linalg.norm(falling)
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

    def split(self, found: _Found, truth: Floats, truncation: float) -> tuple[float, float, float]:
        """Bias, sampling and privacy."""
        bias = self.size_of(found.shrinkage) + truncation
        if self.guesses.functions is not None:
            taken = found.posterior.mean - truth
            bias = min(bias, self.size_of(np.outer(taken, taken)) + truncation + constants.FORECAST_BIAS * bias)
        noise = self.size_of(found.noise) * (1 + self.find_lost_share())
        return bias + self.size_of(found.clipping), self.size_of(found.sampling), noise

    def find_lost_share(self) -> float:
        """How much more noise there is than one round of average releases would leave."""
        outcome = self.guesses.outcome
        if outcome is not None and outcome.two_valued:
            return 0.0
        lost = (constants.LOST_PRECISION / self.precision(ClippedGradient)) ** constants.LOST_POWER
        return float(min(lost, constants.MOST_LOST) + (0.0 if outcome is None else constants.LOST_TO_FAR))

    def run(self, truth: Floats, mixtures: Sequence[ScaledMixture]) -> _Found:
        """The posterior when every release is what it would be on average."""
        size, columns = self.plan.basis.size, self.plan.n_coefficients
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
        gradients, at_bounds = self.draw_gradients() @ coordinates.whitener.T, self._find_at_bounds(coordinates)
        law = LengthLaw.start(first_weights(at_bounds), self.n, 2.0**LONGEST_OCTAVE)
        cells = find_octaves(gradients)
        law = law.observe(_count(cells), math.sqrt(2) / self.precision(LengthHistogram))
        seen = (law, self._see_sides(gradients, cells))
        asymmetry = find_asymmetry(self.plan, self.law, coordinates, whitened, seen, math.inf)
        release = _Release(gradients, coordinates, whitened, asymmetry)
        radius = choose_radius(law, last, self.n, weights, dims, asymmetry)
        radius = spare_two_valued(radius, at_bounds, law.longest)
        return self.estimate(truth, mixtures, release, law, radius)

    def estimate(
        self, truth: Floats, mixtures: Sequence[ScaledMixture], release: _Release, law: LengthLaw, radius: float
    ) -> _Found:
        """The posterior after one gradient round at the truth with the budget of all that count."""
        coordinates, covariance = release.coordinates, model_covariance(self.information, self.spread)
        kept = law.attenuation(np.array([radius]))
        jacobian = float(kept.kept[0]) * np.eye(len(release.whitened)) - float(kept.clipped[0]) * release.whitened
        bias = release.asymmetry.find_biases(np.array([radius]), constants.SURE)[0]
        asked = (Asked(truth, coordinates, radius, jacobian, bias, bias),)  # rounds are near the truth at the end
        root = find_bias_root(self.law, column_parts(self.law), self.plan.basis.size)
        rounds = ReadRounds.of(asked, root)
        value = jacobian @ (coordinates.whitener @ (self.information.matrix @ truth))
        measured: dict[str, Measured] = {}
        posterior, open_now = None, (truth, np.zeros((len(truth), len(truth))))
        share = self.precision(ClippedGradient, slice(-1, None)) / self.precision(ClippedGradient)
        for _ in range(constants.FORECAST_PASSES):
            for silo in self.plan.silos:
                own = _precision(self.plan, silo.name, ClippedGradient, slice(None))
                noise = 2 * radius / own * (1 + (1 - share) * constants.EARLY_ROUNDS)
                answers, covariances = (Answer(0, value, noise),), covariance / silo.n
                fit = measure_silo(rounds, answers, self.information, covariances, open_now)
                measured[silo.name] = replace(fit, value=self.information.matrix @ truth)
            data = pool_silos(measured, dict.fromkeys(measured, self.information))
            posterior = fit_posterior(data, np.zeros_like(truth), mixtures)
            open_now = (truth, posterior.covariance)
        assert posterior is not None
        given_back = bias.root(spread_bias(coordinates, root))[0]
        taken = coordinates.inverse @ np.linalg.solve(jacobian, release.clip(radius) + given_back)
        return _Found.of(posterior, measured, self.information.matrix, taken)

    def follow_courses(self, truth: Floats, count: int) -> float:
        """The mean squared error of possible courses; where the function is not given, each has its own signs."""
        rng, pooled, found = np.random.default_rng(constants.FORECAST_SEED), pool_plan(self.plan), []
        shape = (constants.COURSE_CURVES, min(max(1, round(self.m)), constants.FORECAST_POINTS))
        points = _draw_points(rng, shape, self.guesses.density)
        features = self._evaluate(self.longer, points)
        for _ in range(count):
            signs = rng.choice([-1.0, 1.0], truth.size)
            mine = truth * signs if self.guesses.functions is None else truth
            curves = MadeUpCurves.of(self.plan.basis, points, features @ mine + self._draw_deviations(rng, points))
            away = mine.copy()
            away[: self.plan.basis.size] -= follow_course(pooled, curves, rng)
            found.append(self.size_of(np.outer(away, away)))
        return float(np.mean(found))

    def draw_gradients(self) -> Floats:
        """Gradients of made-up curves at the true mean, as the guesses have them, centred: one row each, always the same."""
        rng = np.random.default_rng(constants.FORECAST_SEED)
        shape = (constants.FORECAST_CURVES, min(max(1, round(self.m)), constants.FORECAST_POINTS))
        points = _draw_points(rng, shape, self.guesses.density)
        features = self._evaluate(self.plan.basis, points)
        apart = self._draw_deviations(rng, points)
        functions = np.einsum("ij,ijk->ik", apart, features) / shape[1]
        rows = rng.standard_normal((shape[0], self.law.columns)) @ np.linalg.cholesky(self.law.average).T
        if self.law.units.intercept:
            rows[:, 0] = 1.0
        gradients = (rows[:, :, None] * functions[:, None, :]).reshape(shape[0], -1)
        return np.asarray(gradients - gradients.mean(axis=0))

    def _draw_deviations(self, rng: np.random.Generator, points: Floats) -> Floats:
        """How far values are from the mean: a smooth curve of each subject and noise, or as the outcome has it."""
        outcome = self.guesses.outcome
        if outcome is not None:
            own = rng.standard_normal((len(points), 1))
            latent = math.sqrt(outcome.correlation) * own
            latent = latent + math.sqrt(1 - outcome.correlation) * rng.standard_normal(points.shape)
            return np.asarray(outcome.draw(latent))
        variances = smooth_variances(self.longer.size)
        curves = rng.standard_normal((len(points), self.longer.size)) * np.sqrt(variances / variances.sum())
        features = self._evaluate(self.longer, points)
        smooth = self.guesses.spread * np.einsum("ik,ijk->ij", curves, features)
        return np.asarray(smooth + self.guesses.noise_sd * rng.standard_normal(points.shape))

    def _evaluate(self, basis: Basis, points: Floats) -> Floats:
        """The functions at the made-up points, which are the same for every plan unless a density moves them."""
        on_unit = replace(basis, domain=(0.0, 1.0))
        if self.guesses.density is None and points.size * basis.size <= constants.FORECAST_KEPT:
            return _evaluate_uniform(on_unit, points.shape)
        return on_unit.evaluate_unit(points.ravel()).reshape(*points.shape, -1)

    def _find_at_bounds(self, coordinates: Coordinates) -> AtBounds:
        outcome = self.guesses.outcome
        if outcome is None or not outcome.two_valued:
            return AtBounds(float(LONGEST_OCTAVE), 0.0)
        level = self.information.gram()[:, 0]
        return AtBounds(find_octave_at_bounds(coordinates.whitener, level, outcome.away), 1.0)

    def _see_sides(self, gradients: Floats, cells: Integers) -> Sides | None:
        """The sides that the last histogram would show."""
        last = [each for each in self.plan.rounds[-2].statistics if isinstance(each, LengthHistogram)]
        signs = min(last[0].signs, gradients.shape[1])
        if not signs:
            return None
        sd = math.sqrt(2 << signs) / self.precision(LengthHistogram, slice(-2, -1))
        excess = np.stack([_count(cells, np.sign(gradients[:, k])) for k in range(signs)])
        excess[:, 0] = 0.0
        return Sides(excess, sd, self.n)

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


def _draw_points(rng: np.random.Generator, shape: tuple[int, int], density: Function | None) -> Floats:
    uniform = rng.random(shape)
    if density is None:
        return uniform
    grid = np.linspace(0, 1, constants.QUADRATURE_POINTS + 1)
    middle = (grid[1:] + grid[:-1]) / 2
    below = np.concatenate([[0.0], np.cumsum(np.maximum(np.asarray(density(middle), dtype=np.float64), 0.0))])
    return np.asarray(np.interp(uniform, below / below[-1], grid))


@lru_cache(maxsize=8)
def _evaluate_uniform(basis: Basis, shape: tuple[int, int]) -> Floats:
    """Functions at the points that are drawn without a guessed density."""
    points = _draw_points(np.random.default_rng(constants.FORECAST_SEED), shape, None)
    features = basis.evaluate_unit(points.ravel()).reshape(*shape, -1)
    features.flags.writeable = False
    return features


def _count(cells: Integers, worth: Floats | None = None) -> Floats:
    """Shares of the cells; each gradient is worth 1, or as said."""
    return np.asarray(np.bincount(cells, worth, minlength=LENGTH_CELLS) / len(cells))


@lru_cache(maxsize=1)
def _make_quadrature() -> tuple[Floats, Floats]:
    roots, weights = np.polynomial.legendre.leggauss(constants.QUADRATURE_POINTS)
    return (roots + 1) / 2, weights / 2
