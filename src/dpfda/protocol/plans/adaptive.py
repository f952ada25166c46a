"""The default method as a plan: few rounds over all curves, exact composition, radii found privately.

Round 0 learns the level of y, the design density and the size of the covariates. Rounds 1..T each release whitened,
clipped gradients and one count that steers the radius; round 1 also learns E[G G^T], the last but one the spread of the
gradients. Budgets grow from one gradient round to the next: early rounds only have to come near enough for the late
ones to clip tightly. All shares are fixed here, from public numbers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaincinv

from dpfda.basis.basis import make_basis
from dpfda.privacy.accounting import mu_for
from dpfda.protocol.plan import Plan, Round
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
from dpfda.protocol.terms import Scaling, SiloTerms

BUDGET_GROWTH = 1 / 0.6
MAX_ADAPTIVE_BASIS = 25
SPENT = 0.997  # of mu^2: a numerical accountant, which rounds up, then agrees from epsilon 0.1 on
_LENGTH_SHAPE = 2.3  # degrees of freedom of the lengths that the clip factor is chosen for
_LEAST_CLIP = 0.4
_UNSURE = 10.0  # n mu below which the lengths stay unknown, and J with them if the radius is below the median
REST_REACH = 1.5  # radii beyond the radius: lengths to 2.5 radii count in full when clipping is corrected for skewness
REST_PRECISION = 200.0  # n mu below which the correction would only add noise


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
        private = (terms.n * mu_for(terms.epsilon, terms.delta)) ** 2 / 8
        size += 1 / (1 / terms.n + 1 / private)
    r = round(2.2 * (size / columns) ** 0.2)
    r = int(min(max(r, 4), MAX_ADAPTIVE_BASIS))
    return r if basis == "cosine" else r + 1 - r % 2


def clip_factor(n: int, mu: float, size: int) -> float:
    """The radius in median lengths: below one where noise dominates, more where it does not.

    Clipping shrinks the mean gradient by J = E s - E[s; clipped]/size, s = min(1, radius/length), and what is released is
    divided by J: a small radius lowers the noise, but never below that of the curves' directions alone, and wastes some of
    what the curves know. It biases the mean of a skewed law by about 1% of its spread at the median, e^-1.5 times less for
    each further median. The sum of noise, sampling variance and squared bias is least here, for lengths a little wilder
    than chi_3: radii a bit too small cost least.
    """
    squares = gammaincinv(_LENGTH_SHAPE / 2, (np.arange(400) + 0.5) / 400) / gammaincinv(_LENGTH_SHAPE / 2, 0.5)
    factors = np.geomspace(min(max(_UNSURE / (n * mu), _LEAST_CLIP), 1.0), 4.0, 120)
    kept = np.minimum(1.0, factors[:, None] / np.sqrt(squares))
    slope = kept.mean(axis=1) - np.where(kept < 1, kept, 0.0).mean(axis=1) / size
    noise = 4 * size * factors**2 / (n * mu * mu * squares.mean())
    sampling = (kept**2 * squares).mean(axis=1) / squares.mean()
    bias = n * (0.01 * np.exp(-1.5 * (factors - 1))) ** 2
    return float(factors[np.argmin((noise + sampling) / slope**2 + bias)])


def _rounds(precision: float, columns: int, *, has_moments: bool) -> list[Round]:
    """The statistics of every round; their number grows with the logarithm of n mu."""
    count = min(max(round(4 + 2 * math.log10(max(precision, 1.0) / 100)), 4), 8) + (2 if columns > 1 else 0)
    bins = 2 ** min(max(round(math.log2(max(precision, 1.0) / 4)), 3), 7)
    first: list[Statistic] = [LevelHistogram(bins)]
    if has_moments:
        first.append(DesignMoments())
    if columns > 1:
        first.append(CovariateSquares())
    rounds = [Round(tuple(first))]
    for number in range(1, count + 1):
        statistics: list[Statistic] = [WhitenedGradient(), ShortShare()]
        if number == 1 and columns > 1:
            statistics.append(CovariateProducts(radius=1.5 * math.sqrt(columns)))
        if number == count - 1:
            statistics.append(GradientOuterProducts())
        if number == count and precision >= REST_PRECISION:
            statistics.append(ClippedRemainder(REST_REACH))
        rounds.append(Round(tuple(statistics)))
    return rounds


def _with_shares(terms: SiloTerms, rounds: Sequence[Round], size: int, pooled: float) -> SiloTerms:
    """What each statistic costs this silo: just enough for the helpers, the rest to the gradients, growing."""
    mu = mu_for(terms.epsilon, terms.delta)
    precision, last = terms.n * mu, len(rounds) - 1

    def enough(most: float, needed: float, least: float = 0.0) -> float:
        return max(least, min(most, (needed / precision) ** 2))

    helpers: dict[type[Statistic], float] = {
        LevelHistogram: enough(0.06, 30, 0.005),
        DesignMoments: enough(0.05, 80, 0.01),
        CovariateSquares: enough(0.03, 40 * math.sqrt(_columns(rounds))),
        CovariateProducts: enough(0.08, 80 * _columns(rounds), 0.01),
        ShortShare: enough(0.05 / last, 22),
        GradientOuterProducts: enough(0.03, 50 * size),
        ClippedRemainder: _rest_share(pooled, size),
    }
    spent = sum(helpers[type(kind)] for planned in rounds for kind in planned.statistics if type(kind) in helpers)
    growth = BUDGET_GROWTH ** np.arange(last)
    gradients = (SPENT - spent) * growth / growth.sum()
    shares = [
        tuple(helpers.get(type(kind), float(gradients[max(index - 1, 0)])) for kind in planned.statistics)
        for index, planned in enumerate(rounds)
    ]
    return dataclasses.replace(terms, shares=tuple(shares), clip_factor=clip_factor(terms.n, mu, size))


def _rest_share(pooled: float, size: int) -> float:
    """Weighs the rest's one coordinate against the gradients' `size`; costs 4% of error where nothing is skewed."""
    odds = 0.5 * math.sqrt(3 / size) * min(1.0, pooled / 1500) ** 0.75
    return float(odds / (1 + odds))


def _columns(rounds: Sequence[Round]) -> int:
    products = [kind for planned in rounds for kind in planned.statistics if isinstance(kind, CovariateProducts)]
    return round((products[0].radius / 1.5) ** 2) if products else 1
