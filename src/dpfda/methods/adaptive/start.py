"""Round 0: the level and spread of y, values at the bounds, the design and the covariates."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.special import ndtr

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.covariates import CovariateLaw, fit_units
from dpfda.methods.adaptive.design import Design, fit_design
from dpfda.methods.adaptive.far_curves import judge_one_sided
from dpfda.methods.adaptive.information import Information, build_information
from dpfda.methods.adaptive.judging import judge_first
from dpfda.methods.adaptive.level import Level, allow_for_unseen, fit_filled, fit_level
from dpfda.methods.adaptive.pooling import Pooled, find_shares, pool, pool_each, pool_if_released
from dpfda.methods.adaptive.prior import ScaledMixture, make_mixture
from dpfda.methods.adaptive.shape import Spread
from dpfda.methods.adaptive.silo_designs import fit_own_designs
from dpfda.methods.adaptive.state import State, Visits
from dpfda.methods.adaptive.weights import CurveWeights, fit_weights
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan
from dpfda.protocol.scaling import INTERCEPT
from dpfda.protocol.statistics import CovariateHistograms, DesignMoments, LevelHistogram, SharesAtBounds


def start(plan: Plan, releases: Mapping[str, Release], known: Visits | None = None) -> State:
    """What is known after round 0; the first iterate is the level. `known` are visits that were learnt of before."""
    first, oddness = judge_first(plan, releases)
    trust = oddness.trust
    histogram = pool(plan, 0, LevelHistogram, releases, trust)
    visits = learn_visits(plan, releases, trust) if known is None else known
    filled, weights, law = visits.filled, visits.weights, visits.law
    design, own_designs = visits.design, visits.own_designs
    level = fit_level(histogram, filled)
    shares = pool(plan, 0, SharesAtBounds, releases, trust)
    inside = find_inside(shares, filled.share)
    two_valued = 1.0 if plan.assumptions.outcome == "binary" else judge_two_valued(*inside)
    if two_valued > constants.TWO_VALUED:
        level = allow_for_unseen(level, histogram, filled)
    elif not plan.assumptions.symmetric:
        level = allow_for_unseen(level, histogram, filled, judge_near_bound(level))
    longer = lengthen(plan.basis, plan.n_coefficients)
    pooled = build_information(plan.basis, longer, design, law, weights.pooled)
    prior_mean = np.zeros(plan.n_coefficients * longer.size)
    prior_mean[0] = level.value
    unit = math.hypot(level.sd_of_means, constants.LEAST_UNIT)
    mixtures = scale_mixtures(plan, longer, level, law, unit)
    return State(
        longer=longer,
        level=level,
        filled=filled.share,
        filled_sd=filled.sd,
        weights=weights,
        two_valued=two_valued,
        inside=inside,
        at_lower=find_at_lower(shares, filled.share),
        design=design,
        law=law,
        own_designs=own_designs,
        left_out=visits.left_out,
        informations=spread_information(plan, longer, pooled, design, own_designs, weights),
        pooled=pooled,
        start=prior_mean,
        unit=unit,
        covariance=assume_covariance(pooled, unit),
        iterate=prior_mean.copy(),
        open_now=(prior_mean, join_blocks([mixture.average(mixture.odds()) for mixture in mixtures])),
        visits=visits,
        first_traits=first,
        oddness=oddness,
    )


def judge_near_bound(level: Level) -> float:
    """Whether curves' means reach to a bound that has room on its other side only, from 0 to 1."""
    near, (reached, free) = 1 - abs(level.value), constants.NEAR_LEVEL
    octaves = math.log2(max(near, constants.LEAST_LENGTH) / level.sd_of_means)
    return judge_one_sided(near) * min(max((free - octaves) / (free - reached), 0.0), 1.0)


def learn_visits(plan: Plan, releases: Mapping[str, Release], trust: Mapping[str, float]) -> Visits:
    """How many curves have points, what they weigh, where points lie, and the units of the covariates."""
    filled = fit_filled(pool(plan, 0, LevelHistogram, releases, trust))
    histograms = pool_if_released(plan, 0, CovariateHistograms, releases, trust)
    has_intercept = plan.scaling.design_bounds[0] == INTERCEPT
    law = fit_units(histograms, filled.share, plan.n_coefficients, intercept=has_intercept)
    weights = fit_weights(plan, releases, trust, filled)
    design, own_designs = learn_designs(plan, weights, releases, trust)
    return Visits(filled, weights, design, own_designs, find_left_out(plan, releases, own_designs), law)


def lengthen(basis: Basis, columns: int = 1) -> Basis:
    """The functions that estimates live in: those of the basis, and some after them."""
    if not basis.has_tail or basis.size == 1:
        return basis
    largest = basis.largest or math.inf
    tail = constants.TAIL_FUNCTIONS if columns == 1 else constants.COVARIATE_TAIL
    return basis.resize(int(min(basis.size + tail, largest)))


def join_blocks(blocks: list[Floats]) -> Floats:
    """A block diagonal matrix."""
    size = len(blocks[0])
    joined = np.zeros((size * len(blocks), size * len(blocks)))
    for k, block in enumerate(blocks):
        joined[k * size : (k + 1) * size, k * size : (k + 1) * size] = block
    return joined


def scale_mixtures(plan: Plan, longer: Basis, level: Level, law: CovariateLaw, unit: float) -> list[ScaledMixture]:
    """The prior of every function in the units of y: the first around the level, effects of covariates around nothing."""
    mixture = make_mixture(longer, plan.alpha)
    bin_width = 2.0 / next(kind.bins for kind in plan.rounds[0].statistics if isinstance(kind, LevelHistogram))
    level_sd = math.hypot(constants.LEVEL_FACTOR * unit, level.sd, bin_width / 2)
    found = [mixture.scaled(unit, level_sd)]
    effect = constants.EFFECT_SIZE * math.sqrt(2 / law.columns) * unit
    return found + [mixture.scaled(effect, constants.EFFECT_LEVEL * effect, 1.0)] * (law.columns - 1)


def assume_covariance(information: Information, unit: float) -> Floats:
    """Of one curve's centred gradient at the truth, before it is measured: partly noise, partly a smooth curve."""
    share = constants.SMOOTH_SHARE
    return model_covariance(information, Spread((1 - share) * unit**2, share * unit**2))


def model_covariance(information: Information, spread: Spread) -> Floats:
    """Of one curve's centred gradient with this spread, for the design as it is."""
    alone, smooth = covariance_parts(information)
    return np.asarray(spread.alone * alone + spread.smooth * smooth)


def covariance_parts(information: Information) -> tuple[Floats, Floats]:
    """What spread of size 1 is: of independent noise, and of a smooth random curve."""
    return information.covariance_parts


def learn_designs(
    plan: Plan, weights: CurveWeights, releases: Mapping[str, Release], trust: Mapping[str, float]
) -> tuple[Design, dict[str, Design]]:
    """The pooled design, and those of silos where designs clearly differ; curves without points gave zero.

    Where visits weigh the same, a curve's moments came with its weight: the design is that of visits.
    """
    moments = pool_if_released(plan, 0, DesignMoments, releases, trust)
    if moments is None:
        return fit_design(plan.basis, None), {}
    moments = moments.scaled(1 / weights.blend(find_shares(plan, 0, DesignMoments, releases, trust)))
    visits = plan.assumptions.visit_times
    design = fit_design(plan.basis, moments, visits)
    if len(releases) == 1:
        return design, {}
    by_silo = {
        name: moments.scaled(1 / weights.of(name).mean)
        for name, moments in pool_each(plan, 0, DesignMoments, releases).items()
    }
    return design, fit_own_designs(plan.basis, moments, by_silo, visits, trust)


def find_left_out(plan: Plan, releases: Mapping[str, Release], own_designs: Mapping[str, Design]) -> frozenset[str]:
    """Silos whose design is not known and may be another than that of all: they missed a round 0 that asked for designs.

    Others stand for them where several answered it and may well have one design.
    """
    if plan.slice_of(0, DesignMoments) is None or (len(releases) > 1 and not own_designs):
        return frozenset()
    return frozenset(silo.name for silo in plan.silos if silo.name not in releases)


def spread_information(
    plan: Plan,
    longer: Basis,
    pooled: Information,
    design: Design,
    own_designs: Mapping[str, Design],
    weights: CurveWeights,
) -> dict[str, Information]:
    """Every silo's information: the pooled one, or that of its own design and weights.

    Of silos that miss round 0 too: they may come.
    """
    return {
        silo.name: build_information(
            plan.basis, longer, own_designs.get(silo.name, design), pooled.law, weights.of(silo.name)
        )
        if silo.name in own_designs or silo.name in weights.each
        else pooled
        for silo in plan.silos
    }


def find_inside(shares: Pooled, filled: float) -> tuple[float, float]:
    """The share of values that lie between the bounds, and its sd; curves without points counted as half at each."""
    at_bounds = (float(shares.values.sum()) + 1) / filled - (1 / filled - 1)
    return 1 - at_bounds, math.hypot(*shares.sd.tolist()) / filled


def find_at_lower(shares: Pooled, filled: float) -> tuple[float, float]:
    """The share of values at the lower bound, and its sd; curves without points counted as half."""
    return float(shares.values[0]) / filled + 0.5, float(shares.sd[0]) / filled


def judge_two_valued(inside: float, sd: float) -> float:
    """How likely it is that all values are at one of the bounds: no share is inside, or any share may be."""
    none = math.exp(-0.5 * (inside / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
    anything = float(ndtr((1 - inside) / sd) - ndtr(-inside / sd))
    return none / (none + max(anything, constants.TINY))
