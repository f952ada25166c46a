"""Round 0: the level and spread of y, values at the bounds, the design and the covariates."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.special import ndtr

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.covariates import CovariateLaw, fit_covariates
from dpfda.methods.adaptive.design import Design, fit_design
from dpfda.methods.adaptive.information import Information, build_information
from dpfda.methods.adaptive.level import Level, fit_filled, fit_level
from dpfda.methods.adaptive.pooling import Pooled, pool, pool_if_released
from dpfda.methods.adaptive.prior import ScaledMixture, make_mixture
from dpfda.methods.adaptive.shape import Spread
from dpfda.methods.adaptive.silo_designs import shrink_moments
from dpfda.methods.adaptive.state import State
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan
from dpfda.protocol.scaling import INTERCEPT
from dpfda.protocol.statistics import CovariateMoments, DesignMoments, LevelHistogram, SharesAtBounds


def start(plan: Plan, releases: Mapping[str, Release]) -> State:
    """What is known after round 0; the first iterate is the level."""
    histogram = pool(plan, 0, LevelHistogram, releases)
    filled = fit_filled(histogram)
    level = fit_level(histogram, filled)
    longer = lengthen(plan.basis)
    design, law, informations = learn_designs(plan, longer, filled.share, releases)
    pooled = build_information(plan.basis, longer, design, law, filled.share)
    prior_mean = np.zeros(plan.n_coefficients * longer.size)
    prior_mean[0] = level.value
    unit = math.hypot(level.sd_of_means, constants.LEAST_UNIT)
    mixtures = scale_mixtures(plan, longer, level, law, unit)
    return State(
        longer=longer,
        level=level,
        filled=filled.share,
        two_valued=judge_two_valued(pool(plan, 0, SharesAtBounds, releases), filled.share),
        design=design,
        law=law,
        informations=informations,
        pooled=pooled,
        start=prior_mean,
        unit=unit,
        covariance=assume_covariance(pooled, unit),
        iterate=prior_mean.copy(),
        open_now=(prior_mean, join_blocks([mixture.average(mixture.odds()) for mixture in mixtures])),
    )


def lengthen(basis: Basis) -> Basis:
    """The functions that estimates live in: those of the basis, and some after them."""
    if not basis.has_tail or basis.size == 1:
        return basis
    largest = basis.largest or math.inf
    return basis.resize(int(min(basis.size + constants.TAIL_FUNCTIONS, largest)))


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
    level_sd = constants.LEVEL_FACTOR * unit + level.sd + bin_width
    found = [mixture.scaled(unit, level_sd)]
    for square in np.diag(law.average)[1:]:
        own = constants.EFFECT_SIZE * unit / math.sqrt(max(float(square), constants.MIN_COVARIATE_SQUARE))
        found.append(mixture.scaled(own, constants.EFFECT_LEVEL * own, 1.0))
    return found


def assume_covariance(information: Information, unit: float) -> Floats:
    """Of one curve's centred gradient at the truth, before it is measured: half noise, half a smooth curve."""
    share = constants.SMOOTH_SHARE
    return model_covariance(information, Spread((1 - share) * unit**2, share * unit**2))


def model_covariance(information: Information, spread: Spread) -> Floats:
    """Of one curve's centred gradient with this spread, for the design as it is."""
    alone, smooth = covariance_parts(information)
    return np.asarray(spread.alone * alone + spread.smooth * smooth)


def covariance_parts(information: Information) -> tuple[Floats, Floats]:
    """What spread of size 1 is: of independent noise, and of a smooth random curve."""
    r, _ = information.shape
    gram = information.degrees[0][:, :r]
    smooth = np.diag(Spread(0.0, 1.0).matrix(r))
    average = information.filled * information.law.average
    return np.kron(average, gram), np.kron(average, (gram * smooth) @ gram.T)


def learn_designs(
    plan: Plan, longer: Basis, filled: float, releases: Mapping[str, Release]
) -> tuple[Design, CovariateLaw, dict[str, Information]]:
    """The pooled design, the law of the covariates, and every silo's information (its own where designs clearly differ)."""
    moments = pool_if_released(plan, 0, DesignMoments, releases)
    scaled = None if moments is None else moments.scaled(1 / filled)
    design = fit_design(plan.basis, scaled)
    products = pool_if_released(plan, 0, CovariateMoments, releases)
    has_intercept = plan.scaling.design_bounds[0] == INTERCEPT
    law = fit_covariates(
        None if products is None else products.scaled(1 / filled), design, plan.n_coefficients, intercept=has_intercept
    )
    common = build_information(plan.basis, longer, design, law, filled)
    informations = dict.fromkeys(releases, common)
    if moments is not None and len(releases) > 1:
        by_silo = {name: pool(plan, 0, DesignMoments, {name: releases[name]}).scaled(1 / filled) for name in releases}
        for name, own in shrink_moments(moments.scaled(1 / filled), by_silo).items():
            informations[name] = build_information(plan.basis, longer, fit_design(plan.basis, own), law, filled)
    return design, law, informations


def judge_two_valued(shares: Pooled, filled: float) -> float:
    """How likely it is that all values are at one of the bounds: no share is inside, or any share may be."""
    at_bounds = (float(shares.values.sum()) + 1) / filled - (1 / filled - 1)
    inside, sd = 1 - at_bounds, math.hypot(*shares.sd.tolist()) / filled
    none = math.exp(-0.5 * (inside / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
    anything = float(ndtr((1 - inside) / sd) - ndtr(-inside / sd))
    return none / (none + max(anything, 1e-300))
