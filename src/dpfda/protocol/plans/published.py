"""The published algorithms as plan builders: constants in, frozen plan out.

| in the paper | silos | design |
|---|---|---|
| Algorithm 1, mean under CDP | 1 | 1 |
| Algorithm 2, mean under FDP | S | 1 |
| Algorithm 3 (appendix), VCM under FDP | S | d + 1 columns |
| Algorithm 4 (appendix), VCM under CDP | 1 | d + 1 columns |

All four are `published_plan`: the number of silos and of design columns tells which one it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from dpfda import _validate
from dpfda.basis.basis import make_basis
from dpfda.errors import InvalidInput
from dpfda.privacy.accounting import lemma1_mu
from dpfda.protocol.plan import Plan, Projection, Round, SiloPlan
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import EntrywiseGradient
from dpfda.protocol.terms import MOST_BASIS, SiloTerms

DEFAULT_POINTS_PER_CURVE = 10.0


def published_plan(
    silos: Sequence[SiloTerms],
    scaling: Scaling,
    *,
    domain: tuple[float, float],
    basis: str = "fourier",
    n_basis: int | None = None,
    alpha: float = 3.0,
    extension: float = 1.5,
    constants: PublishedConstants | None = None,
    projection: Literal["ellipsoid", "cone", "none"] = "ellipsoid",
) -> Plan:
    """Algorithm 1, 2, 3 or 4 with the paper's constants, for these silos."""
    constants = constants or PublishedConstants()
    columns = len(scaling.design_bounds)
    d = columns - 1
    for terms in silos:
        lemma1_mu(terms.epsilon, terms.delta)  # refuses 4 log(2/delta) < eps
    total = sum(terms.n for terms in silos)
    rounds = _iterations(constants, silos, total)
    r = n_basis if n_basis is not None else published_n_basis(silos, d=d, alpha=alpha, C_r=constants.C_r)
    if not 1 <= _validate.integer("n_basis", r) <= MOST_BASIS:
        raise InvalidInput(f"n_basis comes out as {r}, more than {MOST_BASIS}; set n_basis by hand.")
    radii = _radii(silos, total, r=r, columns=columns, alpha=alpha, constants=constants)
    return Plan(
        method="published",
        algorithm=_algorithm_name(len(silos), columns),
        basis=make_basis(basis, r, domain, factor=extension),
        n_coefficients=columns,
        scaling=scaling,
        rounds=tuple(Round((EntrywiseGradient(radii),), part=t, parts=rounds) for t in range(rounds)),
        silos=tuple(_weighted(silos, r=r, d=d)),
        calibration="lemma1",
        step=constants.rho,
        projection=Projection(projection, alpha, constants.C_alpha / math.pi**alpha),
    )


def published_n_basis(silos: Sequence[SiloTerms], *, d: int, alpha: float, C_r: float) -> int:
    """r = ceil(C_r min{...}) (appendix, tuning parameters; Theorems 1, 3, 5 and Corollary 2 for S > 1 and d > 0).

    Unequal silos enter through the sums that take the place of S n, S n m, S n^2 eps^2 and S n^2 m eps^2.
    """
    d = max(d, 1)
    curves = sum(s.n for s in silos)
    points = sum(s.n * _points(s) for s in silos)
    private = sum((s.n * s.epsilon) ** 2 for s in silos)
    private_points = sum((s.n * s.epsilon) ** 2 * _points(s) for s in silos)
    smallest = min(
        curves ** (1 / (2 * alpha)),
        points ** (1 / (2 * alpha + 1)),
        (private / d) ** (1 / (2 * alpha)),
        (private_points / d) ** (1 / (2 * alpha + 2)),
    )
    r: int = math.ceil(C_r * smallest)
    if r < 1:
        raise InvalidInput("n_basis comes out below 1 for these sizes and budgets; set n_basis by hand.")
    return r


def silo_variance(terms: SiloTerms, *, r: int, d: int) -> float:
    """The order of silo s's variance, 1/u_s (Theorems 3 and 5, with 1/n_s where Theorem 3 prints 1/n_s^2: slip 2)."""
    d = max(d, 1)
    m, private = _points(terms), (terms.n * terms.epsilon) ** 2
    return max(d * r / (terms.n * m), d**2 * r**2 / (private * m), d / terms.n, d**2 / private)


def inverse_variance_weights(variances: Mapping[str, float]) -> dict[str, float]:
    """Weights nu_s = u_s / sum u_s with u_s = 1 / variance_s."""
    precisions = {name: 1.0 / variance for name, variance in variances.items()}
    total = sum(precisions.values())
    return {name: precision / total for name, precision in precisions.items()}


def _radii(
    silos: Sequence[SiloTerms], total: int, *, r: int, columns: int, alpha: float, constants: PublishedConstants
) -> tuple[float, ...]:
    """R_l = C_R{sqrt(log^2(N/eta)/m) + l^-alpha} (mean); log without the square for the VCM (Algorithms 3, 4).

    Silos with different public m share the largest of their radii, so that one truncation serves all.
    """
    log = math.log(total / constants.eta)
    m = min(_points(terms) for terms in silos)
    spread = math.sqrt((log if columns > 1 else log**2) / m)
    block = tuple(constants.C_R * (spread + index**-alpha) for index in range(1, r + 1))
    return block * columns


def _iterations(constants: PublishedConstants, silos: Sequence[SiloTerms], total: int) -> int:
    """T = ceil(C_T log N); every batch needs a curve, so T <= n_s."""
    rounds = max(1, math.ceil(constants.C_T * math.log(total)))
    for terms in silos:
        if rounds > terms.n:
            raise InvalidInput(
                f"silo {terms.name!r} has {terms.n} curves, fewer than the {rounds} rounds of the published method; "
                "lower C_T, leave the silo out, or use method='adaptive'."
            )
    return rounds


def _weighted(silos: Sequence[SiloTerms], *, r: int, d: int) -> list[SiloPlan]:
    weights = inverse_variance_weights({terms.name: silo_variance(terms, r=r, d=d) for terms in silos})
    return [SiloPlan(terms, weight=weights[terms.name]) for terms in silos]


def _points(terms: SiloTerms) -> float:
    return DEFAULT_POINTS_PER_CURVE if terms.points_per_curve is None else terms.points_per_curve


def _algorithm_name(silos: int, columns: int) -> str:
    if columns == 1:
        return "Algorithm 1 (mean, CDP)" if silos == 1 else "Algorithm 2 (mean, FDP)"
    return "Algorithm 4 (VCM, CDP)" if silos == 1 else "Algorithm 3 (VCM, FDP)"
