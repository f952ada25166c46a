"""The published algorithms as plan builders: constants in, frozen plan out.

| in the paper | silos | design |
|---|---|---|
| Algorithm 1, mean under CDP | 1 | 1 |
| Algorithm 2, mean under FDP | S | 1 |
| Algorithm 3 (appendix), VCM under FDP | S | d + 1 columns |
| Algorithm 4 (appendix), VCM under CDP | 1 | d + 1 columns |

All four are `published_plan`: the number of silos and of design columns tells which one it is.

`variant="full-batch"` keeps descent, truncation and projection, but every round uses all curves of a silo (the appendix on
sample splitting says that the upper bounds survive it) and the T rounds are composed exactly: mu_t^2 = mu^2/T, with mu the
exact budget of (epsilon, delta). See docs/proofs/full-batch.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpfda import _validate
from dpfda.basis.basis import make_basis
from dpfda.errors import InvalidInput
from dpfda.privacy.accounting import lemma1_mu, mu_for
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
    variant: str = "sample-splitting",
) -> Plan:
    """Algorithm 1, 2, 3 or 4 with the paper's constants, for these silos."""
    constants, columns = constants or PublishedConstants(), len(scaling.design_bounds)
    if not alpha > 1:
        raise InvalidInput(f"alpha must be greater than 1 for method='published' (Definition 4), got {alpha:g}.")
    r = n_basis
    if r is None:
        r = published_n_basis(silos, d=columns - 1, alpha=alpha, C_r=constants.C_r)
    if not 1 <= _validate.integer("n_basis", r) <= MOST_BASIS:
        raise InvalidInput(f"n_basis comes out as {r}, more than {MOST_BASIS}; set n_basis by hand.")
    descent = _Descent(tuple(silos), constants, r, columns, alpha, reuse=variant == "full-batch")
    rounds, radii, weights = descent.settle()
    shares = ((1.0 / rounds,),) * rounds if descent.reuse else ()
    functions = make_basis(basis, r, domain, factor=extension)
    return Plan(
        method="published",
        algorithm=_algorithm_name(len(silos), columns) + (", all curves in every round" if descent.reuse else ""),
        basis=functions,
        n_coefficients=columns,
        scaling=scaling,
        rounds=tuple(
            Round((EntrywiseGradient(radii),)) if descent.reuse else Round((EntrywiseGradient(radii),), t, rounds)
            for t in range(rounds)
        ),
        silos=tuple(SiloPlan(terms, weight=weights[terms.name], shares=shares) for terms in silos),
        calibration="exact" if descent.reuse else "lemma1",
        step=constants.rho,
        projection=Projection(projection, alpha, constants.C_alpha / math.pi**alpha),
        first=_first_iterate(constants.start, scaling, columns, r),
    )


@dataclass(frozen=True)
class _Descent:
    """What the algorithms' first lines set: T, radii and weights, from public numbers."""

    silos: tuple[SiloTerms, ...]
    constants: PublishedConstants
    r: int
    columns: int
    alpha: float
    reuse: bool

    def settle(self) -> tuple[int, tuple[float, ...], dict[str, float]]:
        """T, R and nu; with weights from variances N counts every silo's curves by their weight."""
        for terms in self.silos:
            self.round_mu(terms, 1)  # sample splitting refuses what Lemma 1 does not cover
        curves = float(sum(terms.n for terms in self.silos))
        rounds, radii, weights = self._settle(curves)
        if self.weighting == "variances" and len(self.silos) > 1:
            rounds, radii, weights = self._settle(_count_by_weight(self.silos, weights))
        for terms in self.silos:
            if not self.reuse and rounds > terms.n:
                raise InvalidInput(
                    f"silo {terms.name!r} has {terms.n} curves, fewer than the {rounds} rounds of the published method; "
                    "lower C_T, leave the silo out, use variant='full-batch', or use method='adaptive'."
                )
        return rounds, radii, weights

    @property
    def weighting(self) -> str:
        """How silos are weighed: as the user said, or as it suits the variant."""
        if self.constants.weights:
            return "given"
        return self.constants.weighting or ("variances" if self.reuse else "orders")

    def _settle(self, curves: float) -> tuple[int, tuple[float, ...], dict[str, float]]:
        rounds = self.constants.T or max(1, math.ceil(self.constants.C_T * math.log(curves)))
        radii = self.radii(curves)
        return rounds, radii, self._weigh(rounds, radii)

    def radii(self, curves: float) -> tuple[float, ...]:
        """R_l = C_R{sqrt(log^2(N/eta)/m) + l^-alpha} (mean); log without the square for the VCM (Algorithms 3, 4)."""
        log = math.log(curves / self.constants.eta)
        return self._radii_with(log if self.columns > 1 else log**2)

    def _radii_with(self, log: float) -> tuple[float, ...]:
        """Silos with different public m share the largest of their radii, so that one truncation serves all."""
        spread = math.sqrt(log / min(_points(terms) for terms in self.silos))
        block = tuple(self.constants.C_R * (spread + index**-self.alpha) for index in range(1, self.r + 1))
        return block * self.columns

    def _weigh(self, rounds: int, radii: tuple[float, ...]) -> dict[str, float]:
        if self.weighting == "given":
            weights = self.constants.weights
            if len(weights) != len(self.silos):
                raise InvalidInput(f"weights must be one for each of the {len(self.silos)} silos, got {len(weights)}.")
            return {terms.name: weight / sum(weights) for terms, weight in zip(self.silos, weights, strict=True)}
        if self.weighting == "orders":
            d = self.columns - 1
            return inverse_variance_weights({terms.name: silo_variance(terms, r=self.r, d=d) for terms in self.silos})
        return inverse_variance_weights({terms.name: self.variance(terms, rounds, radii) for terms in self.silos})

    def variance(self, terms: SiloTerms, rounds: int, radii: tuple[float, ...]) -> float:
        """What a silo alone would leave in the last iterate: privacy noise as it is drawn, and sampling.

        Noise is fresh in every round, and of fresh errors the descent keeps rho/(2 - rho); the sampling error of reused
        curves is the same in all rounds and stays. Its size is taken to be that of the radii without their logarithm.
        """
        rho, batch = self.constants.rho, terms.n if self.reuse else max(1, terms.n // rounds)
        kept = rho / (2 - rho) if rho < 1 else 1.0
        noise = (2 * sum(radii) / (batch * self.round_mu(terms, rounds))) ** 2
        sampling = sum(size**2 for size in self._radii_with(1.0)) / batch
        return kept * noise + (sampling if self.reuse else kept * sampling)

    def round_mu(self, terms: SiloTerms, rounds: int) -> float:
        """The mu of one round: Lemma 1's for a batch of its own, an equal share of the exact budget for all curves."""
        if self.reuse:
            return mu_for(terms.epsilon, terms.delta) / math.sqrt(rounds)
        return lemma1_mu(terms.epsilon, terms.delta)


def _count_by_weight(silos: Sequence[SiloTerms], weights: Mapping[str, float]) -> float:
    """The number of curves, each counted by its weight over that of a curve of the best silo."""
    best = max(weights[terms.name] / terms.n for terms in silos)
    return sum(weights[terms.name] / best for terms in silos)


def _first_iterate(start: tuple[float, ...], scaling: Scaling, columns: int, r: int) -> tuple[float, ...]:
    """a^0 in the units of the algorithm."""
    if not start:
        return ()
    if len(start) != columns * r:
        raise InvalidInput(f"start must hold {columns * r} coefficients, {r} for each function, got {len(start)}.")
    return tuple(scaling.from_user_units(np.array(start).reshape(columns, r)).ravel().tolist())


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


def _points(terms: SiloTerms) -> float:
    return DEFAULT_POINTS_PER_CURVE if terms.points_per_curve is None else terms.points_per_curve


def _algorithm_name(silos: int, columns: int) -> str:
    if columns == 1:
        return "Algorithm 1 (mean, CDP)" if silos == 1 else "Algorithm 2 (mean, FDP)"
    return "Algorithm 4 (VCM, CDP)" if silos == 1 else "Algorithm 3 (VCM, FDP)"
