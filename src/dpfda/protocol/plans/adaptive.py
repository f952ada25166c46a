"""The default method as a plan: few rounds over all curves, exact composition.

Round 0 learns the level of y, values at the bounds, the design and the covariates. Then each gradient round comes after a
histogram of the gradients' lengths, from which the coordinator chooses the radius. Budgets grow from one gradient round to
the next: early rounds only have to come near enough for the late ones to clip tightly. All shares are fixed here, from
public numbers.

Of several outcomes each has these rounds for itself, one outcome after the other, with the same part of the budget. What
is the same for all of them, where they share their visits, is asked for with the first outcome only.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from dpfda.basis.basis import basis_has_sines, make_basis
from dpfda.privacy.accounting import mu_for
from dpfda.protocol.plan import Assumptions, Plan, PlannedOutcome, Round, SiloPlan
from dpfda.protocol.scaling import INTERCEPT, Scaling
from dpfda.protocol.statistics import (
    ClippedGradient,
    CovariateHistograms,
    CovariateMoments,
    DesignMoments,
    LengthHistogram,
    LevelHistogram,
    SharesAtBounds,
    Statistic,
    VisitWeights,
)
from dpfda.protocol.terms import SiloTerms

# Shares are of a silo's mu^2; "precision" is n mu, the number of curves over the sd of the noise of a sum of +-1/2.
SPENT = 0.997  # all shares together: a numerical accountant, which rounds up, then agrees from epsilon 0.1 on
MIN_LOG_BINS, MAX_LOG_BINS, BIN_PRECISION = 3, 8, 4  # log2 of the histogram's bins: about n mu / 4 bins

# A helper costs (needed / precision)^2 of the budget: just enough for noise of sd 1/needed, within a least and a most share.
HISTOGRAM_NEEDED, MIN_HISTOGRAM_SHARE, MAX_HISTOGRAM_SHARE = 30, 0.005, 0.06
BOUNDS_NEEDED, MIN_BOUNDS_SHARE, MAX_BOUNDS_SHARE = 18, 0.003, 0.03
WEIGHTS_NEEDED, MIN_WEIGHTS_SHARE, MAX_WEIGHTS_SHARE = 60, 0.005, 0.03  # where visits weigh the same
MOMENTS_NEEDED, MIN_MOMENTS_SHARE, MAX_MOMENTS_SHARE = 300, 0.01, 0.2
MAX_MOMENTS_SHARE_WITH_COVARIATES = 0.06  # their products need budget, too
UNITS_NEEDED, MIN_UNITS_SHARE, MAX_UNITS_SHARE = 60, 0.005, 0.04  # needed times the root of the number of columns
PRODUCTS_NEEDED, MIN_PRODUCTS_SHARE, MAX_PRODUCTS_SHARE = 200, 0.02, 0.06  # needed times the number of columns
LENGTH_SHARES = (
    0.02,
    0.045,
    0.08,
)  # of the histograms of lengths; the second sees far groups better than the last, by signs
LENGTH_SIGNS = (0, 0, 2)  # of how many coordinates each of them tells the signs
GRADIENT_SHARES = (0.08, 0.20)  # of all gradient rounds but the last, which gets the rest
OF_VISITS = (VisitWeights, DesignMoments, CovariateHistograms, CovariateMoments)  # these do not depend on y

# The number of basis functions.
MEAN_BASIS, COVARIATE_BASIS, MIN_ADAPTIVE_BASIS = 16, 12, 6


def adaptive_plan(
    silos: Sequence[SiloTerms],
    scaling: Scaling,
    *,
    domain: tuple[float, float],
    basis: str = "free-ends",
    n_basis: int | None = None,
    alpha: float = 2.0,
    extension: float = 1.5,
    assumptions: Assumptions = Assumptions(),  # noqa: B008 - frozen
    outcomes: tuple[PlannedOutcome, ...] = (),
    own_visits: bool = False,
) -> Plan:
    """The default plan for these silos: eps_s and delta_s cover all that silo s ever releases in it, of all outcomes."""
    columns = len(scaling.design_bounds)
    each = 1 / math.sqrt(len(outcomes) or 1)
    precision = math.hypot(*(terms.n * mu_for(terms.epsilon, terms.delta) * each for terms in silos))
    r = n_basis if n_basis is not None else adaptive_n_basis(basis, columns)
    functions = make_basis(basis, r, domain, factor=extension)
    has_intercept = scaling.design_bounds[0] == INTERCEPT
    has_moments, weighs_visits = functions.moment_count > 0, scaling.visit_cap is not None
    rounds = _rounds(precision, columns, has_moments, has_intercept, weighs_visits=weighs_visits)
    if outcomes:
        rounds = _repeat_rounds(rounds, len(outcomes), own_visits=own_visits)
        members = [_divide_shares(terms, rounds, columns, len(outcomes)) for terms in silos]
    else:
        members = [_with_shares(terms, rounds, columns) for terms in silos]
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
        assumptions=assumptions,
        outcomes=outcomes,
    )


def adaptive_n_basis(basis: str, columns: int) -> int:
    """How many functions to offer; shrinkage decides how many are used, so that more cost next to nothing."""
    r = MEAN_BASIS if columns == 1 else max(MIN_ADAPTIVE_BASIS, round(COVARIATE_BASIS * (2 / columns) ** 0.5))
    return r + 1 - r % 2 if basis_has_sines(basis) else r


def _rounds(
    precision: float, columns: int, has_moments: bool, has_intercept: bool, *, weighs_visits: bool
) -> list[Round]:
    """The statistics of every round."""
    bins = 2 ** min(max(round(math.log2(max(precision, 1.0) / BIN_PRECISION)), MIN_LOG_BINS), MAX_LOG_BINS)
    first: list[Statistic] = [LevelHistogram(bins), SharesAtBounds()]
    if weighs_visits:
        first.append(VisitWeights())
    if has_moments:
        first.append(DesignMoments())
    lengths: list[Statistic] = [LengthHistogram()]
    if columns > 1 or not has_intercept:
        first.append(CovariateHistograms(has_intercept))
        lengths.append(CovariateMoments(has_intercept))
    rounds = [Round(tuple(first))]
    for signs in LENGTH_SIGNS:
        lengths[0] = LengthHistogram(signs)
        rounds += [Round(tuple(lengths)), Round((ClippedGradient(),))]
        lengths = [LengthHistogram()]
    return rounds


def _with_shares(terms: SiloTerms, rounds: Sequence[Round], columns: int) -> SiloPlan:
    """What each measure costs this silo: just enough for the helpers, the rest to the gradients, growing."""
    helpers = _price_helpers(terms.n * mu_for(terms.epsilon, terms.delta), columns)
    first = tuple(helpers[type(kind)] for kind in rounds[0].statistics)
    products = [helpers[CovariateMoments]] if len(rounds[1].statistics) > 1 else []
    last = SPENT - sum(first) - sum(LENGTH_SHARES) - sum(GRADIENT_SHARES) - sum(products)
    shares = [first]
    for lengths, gradient in zip(LENGTH_SHARES, (*GRADIENT_SHARES, last), strict=True):
        shares += [(lengths, *products), (gradient,)]
        products = []
    return SiloPlan(terms, shares=tuple(shares))


def _price_helpers(precision: float, columns: int) -> dict[type[Statistic], float]:
    """The share of each helper in a budget of this precision."""

    def enough(most: float, needed: float, least: float = 0.0) -> float:
        return max(least, min(most, (needed / precision) ** 2))

    most_moments = MAX_MOMENTS_SHARE if columns == 1 else MAX_MOMENTS_SHARE_WITH_COVARIATES
    return {
        LevelHistogram: enough(MAX_HISTOGRAM_SHARE, HISTOGRAM_NEEDED, MIN_HISTOGRAM_SHARE),
        SharesAtBounds: enough(MAX_BOUNDS_SHARE, BOUNDS_NEEDED, MIN_BOUNDS_SHARE),
        VisitWeights: enough(MAX_WEIGHTS_SHARE, WEIGHTS_NEEDED, MIN_WEIGHTS_SHARE),
        DesignMoments: enough(most_moments, MOMENTS_NEEDED, MIN_MOMENTS_SHARE),
        CovariateHistograms: enough(MAX_UNITS_SHARE, UNITS_NEEDED * columns**0.5, MIN_UNITS_SHARE),
        CovariateMoments: enough(MAX_PRODUCTS_SHARE, PRODUCTS_NEEDED * columns, MIN_PRODUCTS_SHARE),
    }


def _repeat_rounds(rounds: Sequence[Round], outcomes: int, *, own_visits: bool) -> list[Round]:
    """The rounds of every outcome, one after the other; what outcomes share is in those of the first only."""
    found = list(rounds)
    for place in range(1, outcomes):
        for planned in rounds:
            kept = tuple(kind for kind in planned.statistics if own_visits or not isinstance(kind, OF_VISITS))
            found.append(dataclasses.replace(planned, statistics=kept, outcome=place))
    return found


def _divide_shares(terms: SiloTerms, rounds: Sequence[Round], columns: int, outcomes: int) -> SiloPlan:
    """The same for several outcomes, each of which has one part of the budget.

    What is asked for once serves all of them, so that it is worth more: with K outcomes it gets 1/sqrt(K) of its share, not
    1/K. (K terms a/g + b/m with K g + m fixed are smallest at m/g = sqrt(K b/a), sqrt(K) times what it is for one.)
    """
    helpers = _price_helpers(terms.n * mu_for(terms.epsilon, terms.delta) / math.sqrt(outcomes), columns)
    once = {kind for kind in OF_VISITS if sum(type(each) is kind for step in rounds for each in step.statistics) == 1}
    steps = len(LENGTH_SHARES)
    shares: list[tuple[float, ...]] = []
    for index, planned in enumerate(rounds):
        step = (index % (1 + 2 * steps) - 1) // 2  # of an outcome: one round, then a pair for every gradient
        given: dict[type[Statistic], float] = helpers | {LengthHistogram: LENGTH_SHARES[step]}
        given[ClippedGradient] = (*GRADIENT_SHARES, 0.0)[step]
        kinds = [type(kind) for kind in planned.statistics]
        shares.append(tuple(given[kind] / (math.sqrt(outcomes) if kind in once else outcomes) for kind in kinds))
    last = (SPENT - sum(sum(each) for each in shares)) / outcomes
    return SiloPlan(terms, shares=tuple(each if each != (0.0,) else (last,) for each in shares))
