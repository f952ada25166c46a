"""Which term dominates, what it takes for another to take over, and the cost-of-privacy table.

Up to constants and logarithms, like every statement about rates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dpfda.errors import InvalidInput
from dpfda.planning.theory.monomials import Monomial, Variable
from dpfda.planning.theory.rates import RateTerms, crossing, curve_count, optimal_r_monomials, rate_of
from dpfda.planning.theory.setting import Privacy, Problem, Setting, TermName

Level = Literal["high privacy", "low privacy"]
PLANNED: tuple[Variable, ...] = ("n", "m", "S", "epsilon")


@dataclass(frozen=True)
class Exit:
    """The nearest point on one axis at which another term takes over."""

    variable: Variable
    factor: float
    value: float
    next_dominant: TermName


@dataclass(frozen=True)
class Regime:
    """Where a setting lies: its dominating term and the ways out (each axis, both directions)."""

    dominant: TermName
    private: bool
    sparse: bool
    exits: tuple[Exit, ...]
    rate: RateTerms


@dataclass(frozen=True)
class CostRow:
    """A row of the cost-of-privacy table: for m between the limits, `survivors` make up the rate.

    A limit of ``None`` means zero or infinity.
    """

    level: Level
    m_lower: Monomial | None
    m_upper: Monomial | None
    survivors: tuple[TermName, ...]


@dataclass(frozen=True)
class CostOfPrivacy:
    """The row that applies, the epsilon dividing high from low privacy, and rate / non-private rate."""

    row: CostRow
    epsilon_boundary: float
    ratio: float


def _exit(rate: RateTerms, variable: Variable, direction: int) -> Exit | None:
    values, ruler = rate.setting.values, rate.dominant
    best: tuple[float, TermName] | None = None
    for rival in rate.terms:
        gain = direction * (rival.monomial.exponent(variable) - ruler.monomial.exponent(variable))
        if rival.name == ruler.name or gain < 1e-12:
            continue
        distance = (ruler.monomial.log_at(values) - rival.monomial.log_at(values)) / gain
        if best is None or distance < best[0]:
            best = (distance, rival.name)
    if best is None or best[0] > 700:
        return None
    factor = math.exp(direction * best[0])
    value = values[variable] * factor
    if variable != "epsilon" and value < 1:  # no fewer than one curve, point or server
        return None
    return Exit(variable, factor, value, best[1])


def regime(
    problem: Problem,
    privacy: Privacy,
    *,
    n: float,
    m: float,
    alpha: float,
    S: float = 1,
    d: float = 1,
    epsilon: float | None = None,
) -> Regime:
    """The dominating term and, per variable, how far it must move before another term dominates.

    Parameters are those of `rate`.

    Examples
    --------
    >>> here = regime("mean", "fdp", n=1000, m=3, S=5, epsilon=0.5, alpha=3)
    >>> here.dominant
    'non-private sparse'
    >>> [(way.variable, round(way.value, 3), way.next_dominant) for way in here.exits if way.variable == "epsilon"]
    [('epsilon', 0.063, 'private sparse')]
    """
    rate = rate_of(Setting(problem, privacy, n, m, alpha, S, d, epsilon))
    axes = [variable for variable in PLANNED if variable in rate.setting.values]
    found = (_exit(rate, variable, direction) for variable in axes for direction in (-1, 1))
    exits = tuple(way for way in found if way is not None)
    ruler = rate.dominant
    return Regime(ruler.name, ruler.private, ruler.sparse, exits, rate)


def cost_of_privacy_table(problem: Problem, privacy: Privacy, *, alpha: float) -> tuple[CostRow, ...]:
    """The five rows of the cost-of-privacy table (table_transition_boundary_5).

    The paper prints it for the mean under CDP. The other cases follow by the same argument with
    S n curves and S n^2 epsilon^2 / d private ones; rows 3-5 then agree with regimes 1-3 for the VCM.
    """
    # r of the private dense term is P^(1/(2 alpha)), so its square is the boundary (A), P^(1/alpha)
    private_turn = optimal_r_monomials(problem, privacy, alpha)["private dense"] ** 2
    plain_turn = curve_count() ** (1 / (2 * alpha))  # boundary (B)
    envelope = curve_count() ** (1 / alpha)
    return (
        CostRow("high privacy", None, private_turn, ("private sparse",)),
        CostRow("high privacy", private_turn, None, ("private dense",)),
        CostRow("low privacy", None, plain_turn, ("non-private sparse", "private sparse")),
        CostRow("low privacy", plain_turn, envelope, ("non-private dense", "private sparse")),
        CostRow("low privacy", envelope, None, ("non-private dense",)),
    )


def cost_of_privacy(
    problem: Problem,
    privacy: Privacy,
    *,
    n: float,
    m: float,
    alpha: float,
    epsilon: float,
    S: float = 1,
    d: float = 1,
) -> CostOfPrivacy:
    """The row of the cost-of-privacy table that holds, and the factor privacy puts on the rate.

    Parameters are those of `rate`.

    References
    ----------
    table_transition_boundary_5 of Xue, Lin and Yu.

    Examples
    --------
    >>> round(cost_of_privacy("mean", "fdp", n=1000, m=3, S=5, epsilon=0.5, alpha=3).ratio, 2)
    1.03
    """
    if privacy == "none":
        raise InvalidInput("privacy must not be 'none': then it costs nothing.")
    setting = Setting(problem, privacy, n, m, alpha, S, d, epsilon)
    values = setting.values
    turn = crossing(problem, privacy, "private dense", "non-private dense", "epsilon", alpha=alpha).at(values)
    level: Level = "high privacy" if epsilon <= turn else "low privacy"
    rows = [row for row in cost_of_privacy_table(problem, privacy, alpha=alpha) if row.level == level]
    row = next(row for row in rows if row.m_upper is None or m <= row.m_upper.at(values))
    without = rate_of(Setting(problem, "none", n, m, alpha, S, d))
    return CostOfPrivacy(row, turn, rate_of(setting).total / without.total)
