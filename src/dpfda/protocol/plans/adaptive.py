"""The default method as a plan: few rounds over all curves, exact composition, radii found privately.

Round 0 learns the level of y, the design density and the size of the covariates. Rounds 1..T each release whitened,
clipped gradients and one count that steers the radius; round 1 also learns E[G G^T], the last but one the covariance of the
gradients. Budgets grow from one gradient round to the next: early rounds only have to come near enough for the late
ones to clip tightly. All shares are fixed here, from public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaincinv

from dpfda.basis.basis import basis_has_sines, make_basis
from dpfda.privacy.accounting import mu_for
from dpfda.protocol.length_filter import TYPICAL_SHAPE
from dpfda.protocol.plan import Plan, Round, SiloPlan
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import (
    ClippedRemainder,
    CovariateProducts,
    CovariateSquares,
    DesignMoments,
    GradientOuterProducts,
    LevelHistogram,
    ShortShare,
    Statistic,
    WhitenedGradient,
)
from dpfda.protocol.terms import SiloTerms

# Shares are of a silo's mu^2; "precision" is n mu, the number of curves over the sd of the noise of a sum of +-1/2.
SPENT = 0.997  # all shares together: a numerical accountant, which rounds up, then agrees from epsilon 0.1 on
BUDGET_GROWTH = 1 / 0.6  # of the gradients' shares from one round to the next
MIN_ROUNDS, MAX_ROUNDS = 4, 8
ROUNDS_PER_DECADE, ROUNDS_PRECISION = 2, 100  # more rounds for each factor 10 by which n mu exceeds 100
COVARIATE_ROUNDS = 2  # further rounds with covariates
MIN_LOG_BINS, MAX_LOG_BINS, BIN_PRECISION = 3, 7, 4  # log2 of the histogram's bins: about n mu / 4 bins

# A helper costs (needed / precision)^2 of the budget: just enough for noise of sd 1/needed, within a least and a most share.
HISTOGRAM_NEEDED, MIN_HISTOGRAM_SHARE, MAX_HISTOGRAM_SHARE = 30, 0.005, 0.06
MOMENTS_NEEDED, MIN_MOMENTS_SHARE, MAX_MOMENTS_SHARE = 80, 0.01, 0.05
SQUARES_NEEDED, MAX_SQUARES_SHARE = 40, 0.03  # needed times the root of the number of columns
PRODUCTS_NEEDED, MIN_PRODUCTS_SHARE, MAX_PRODUCTS_SHARE = 80, 0.01, 0.08  # needed times the number of columns
COUNTS_NEEDED, MAX_COUNTS_SHARE = 22, 0.05  # the most is for the counts of all rounds together
OUTER_PRODUCTS_NEEDED, MAX_OUTER_PRODUCTS_SHARE = 50, 0.03  # needed times the number of coefficients
PRODUCT_RADIUS = 1.5  # of the covariates in units of their sizes, times the root of the number of columns

# What clipping takes from a skewed law (see methods/adaptive/skewness.py).
REST_REACH = 1.5  # radii beyond the radius: lengths to 2.5 radii count in full when clipping is corrected for skewness
REST_PRECISION = 200.0  # n mu below which the correction would only add noise
REST_ODDS, REST_SIZE, REST_FULL, REST_POWER = 0.5, 3, 1500, 0.75  # see `_rest_share`

# The number of basis functions: BASIS_FACTOR (effective n / columns)^BASIS_POWER.
MIN_ADAPTIVE_BASIS, MAX_ADAPTIVE_BASIS, BASIS_FACTOR, BASIS_POWER, BASIS_NOISE = 4, 25, 2.2, 0.2, 8

# The clip factor, in median lengths (see `clip_factor`).
MIN_CLIP, MAX_CLIP, CLIP_CANDIDATES, LENGTH_QUANTILES = 0.4, 4.0, 120, 400
UNSURE_PRECISION = 10.0  # n mu below which the lengths stay unknown, and J with them if the radius is below the median
SKEW_BIAS, SKEW_DECAY = 0.01, 1.5  # bias at the median, in sds of the curves; its fall for each further median


def adaptive_plan(
    silos: Sequence[SiloTerms],
    scaling: Scaling,
    *,
    domain: tuple[float, float],
    basis: str = "cosine",
    n_basis: int | None = None,
    alpha: float = 2.0,
    extension: float = 1.5,
) -> Plan:
    """The default plan for these silos: eps_s and delta_s cover all that silo s ever releases in it."""
    columns = len(scaling.design_bounds)
    precision = math.hypot(*(terms.n * mu_for(terms.epsilon, terms.delta) for terms in silos))
    r = n_basis if n_basis is not None else adaptive_n_basis(silos, basis, columns)
    functions = make_basis(basis, r, domain, factor=extension)
    rounds = _rounds(precision, columns, has_moments=functions.moment_count > 0)
    members = [_with_shares(terms, rounds, columns * r, precision) for terms in silos]
    return Plan(
        method="adaptive",
        algorithm="adaptive " + ("mean" if columns == 1 else "varying coefficients"),
        basis=functions,
        n_coefficients=columns,
        scaling=scaling,
        rounds=tuple(rounds),
        silos=tuple(members),
        calibration="exact",
        alpha=alpha,
    )


def adaptive_n_basis(silos: Sequence[SiloTerms], basis: str, columns: int) -> int:
    """How many functions to offer; shrinkage decides how many are used, so a few too many cost little.

    Grows with the effective sample size, the harmonic combination of n and (n mu)^2 per coefficient function, like its
    power 1/5 (a curve with two derivatives): mu_2, n = 5000, has error 1.7e-4 with these 12 cosines, 2.0e-4 with 15. Odd for
    bases with sines.
    """
    size = 0.0
    for terms in silos:
        private = (terms.n * mu_for(terms.epsilon, terms.delta)) ** 2 / BASIS_NOISE
        size += 1 / (1 / terms.n + 1 / private)
    r = round(BASIS_FACTOR * (size / columns) ** BASIS_POWER)
    r = int(min(max(r, MIN_ADAPTIVE_BASIS), MAX_ADAPTIVE_BASIS))
    return r + 1 - r % 2 if basis_has_sines(basis) else r


def clip_factor(n: int, mu: float, size: int) -> float:
    """The radius in median lengths: below one where noise dominates, more where it does not.

    Clipping shrinks the mean gradient by J = E s - E[s; clipped]/size, s = min(1, radius/length), and what is released is
    divided by J: a small radius lowers the noise, but never below that of the curves' directions alone, and wastes some of
    what the curves know. It biases the mean of a skewed law by about 1% of its spread at the median, e^-1.5 times less for
    each further median. The sum of noise, sampling variance and squared bias is least here, for lengths a little wilder
    than chi_3: radii a bit too small cost least.
    """
    levels = (np.arange(LENGTH_QUANTILES) + 0.5) / LENGTH_QUANTILES
    squares = gammaincinv(TYPICAL_SHAPE / 2, levels) / gammaincinv(TYPICAL_SHAPE / 2, 0.5)
    factors = np.geomspace(min(max(UNSURE_PRECISION / (n * mu), MIN_CLIP), 1.0), MAX_CLIP, CLIP_CANDIDATES)
    kept = np.minimum(1.0, factors[:, None] / np.sqrt(squares))
    slope = kept.mean(axis=1) - np.where(kept < 1, kept, 0.0).mean(axis=1) / size
    noise = 4 * size * factors**2 / (n * mu * mu * squares.mean())
    sampling = (kept**2 * squares).mean(axis=1) / squares.mean()
    bias = n * (SKEW_BIAS * np.exp(-SKEW_DECAY * (factors - 1))) ** 2
    return float(factors[np.argmin((noise + sampling) / slope**2 + bias)])


def _rounds(precision: float, columns: int, *, has_moments: bool) -> list[Round]:
    """The statistics of every round; their number grows with the logarithm of n mu."""
    wanted = round(MIN_ROUNDS + ROUNDS_PER_DECADE * math.log10(max(precision, 1.0) / ROUNDS_PRECISION))
    count = min(max(wanted, MIN_ROUNDS), MAX_ROUNDS) + (COVARIATE_ROUNDS if columns > 1 else 0)
    bins = 2 ** min(max(round(math.log2(max(precision, 1.0) / BIN_PRECISION)), MIN_LOG_BINS), MAX_LOG_BINS)
    first: list[Statistic] = [LevelHistogram(bins)]
    if has_moments:
        first.append(DesignMoments())
    if columns > 1:
        first.append(CovariateSquares())
    rounds = [Round(tuple(first))]
    for number in range(1, count + 1):
        statistics: list[Statistic] = [WhitenedGradient(), ShortShare()]
        if number == 1 and columns > 1:
            statistics.append(CovariateProducts(radius=PRODUCT_RADIUS * math.sqrt(columns)))
        if number == count - 1:
            statistics.append(GradientOuterProducts())
        if number == count and precision >= REST_PRECISION:
            statistics.append(ClippedRemainder(REST_REACH))
        rounds.append(Round(tuple(statistics)))
    return rounds


def _with_shares(terms: SiloTerms, rounds: Sequence[Round], size: int, pooled: float) -> SiloPlan:
    """What each measure costs this silo: just enough for the helpers, the rest to the gradients, growing."""
    mu = mu_for(terms.epsilon, terms.delta)
    precision, last = terms.n * mu, len(rounds) - 1

    def enough(most: float, needed: float, least: float = 0.0) -> float:
        return max(least, min(most, (needed / precision) ** 2))

    helpers: dict[type[Statistic], float] = {
        LevelHistogram: enough(MAX_HISTOGRAM_SHARE, HISTOGRAM_NEEDED, MIN_HISTOGRAM_SHARE),
        DesignMoments: enough(MAX_MOMENTS_SHARE, MOMENTS_NEEDED, MIN_MOMENTS_SHARE),
        CovariateSquares: enough(MAX_SQUARES_SHARE, SQUARES_NEEDED * math.sqrt(_columns(rounds))),
        CovariateProducts: enough(MAX_PRODUCTS_SHARE, PRODUCTS_NEEDED * _columns(rounds), MIN_PRODUCTS_SHARE),
        ShortShare: enough(MAX_COUNTS_SHARE / last, COUNTS_NEEDED),
        GradientOuterProducts: enough(MAX_OUTER_PRODUCTS_SHARE, OUTER_PRODUCTS_NEEDED * size),
        ClippedRemainder: _rest_share(pooled, size),
    }
    spent = sum(helpers[type(kind)] for planned in rounds for kind in planned.statistics if type(kind) in helpers)
    growth = BUDGET_GROWTH ** np.arange(last)
    gradients = (SPENT - spent) * growth / growth.sum()
    shares = [
        tuple(helpers.get(type(kind), float(gradients[max(index - 1, 0)])) for kind in planned.statistics)
        for index, planned in enumerate(rounds)
    ]
    return SiloPlan(terms, shares=tuple(shares), clip_factor=clip_factor(terms.n, mu, size))


def _rest_share(pooled: float, size: int) -> float:
    """Weighs the rest's one coordinate against the gradients' `size`; costs 4% of error where nothing is skewed."""
    odds = REST_ODDS * math.sqrt(REST_SIZE / size) * min(1.0, pooled / REST_FULL) ** REST_POWER
    return float(odds / (1 + odds))


def _columns(rounds: Sequence[Round]) -> int:
    products = [kind for planned in rounds for kind in planned.statistics if isinstance(kind, CovariateProducts)]
    return round((products[0].radius / PRODUCT_RADIUS) ** 2) if products else 1
