"""What is audited: for every statistic a plan of one round, and plans of whole studies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import make_basis
from dpfda.curves.curves import Curves
from dpfda.protocol.plan import Plan, Round
from dpfda.protocol.plans import PublishedConstants, adaptive_plan, published_plan
from dpfda.protocol.plans.quantiles import quantile_plan
from dpfda.protocol.statistics import KINDS, EntrywiseGradient, Statistic
from dpfda.protocol.terms import Scaling, SiloTerms
from dpfda.silo.silo import Silo

EPSILON, DELTA = 4.0, 1e-5  # loose enough that a wrong noise level shows in some thousand runs
NAME, OTHER = "audited", "other"
POINTS = 3.0
Y_BOUNDS = (-2.0, 2.0)
MEAN = Scaling(Y_BOUNDS, ((1.0, 1.0),), 0.0, 2.0)
VCM = Scaling(Y_BOUNDS, ((1.0, 1.0), (-1.0, 1.0)), 0.0, 2.0)
_SIZE = 3

Planner = Callable[[list[SiloTerms]], Plan]


@dataclass(frozen=True)
class Case:
    """One release type: how its plan follows from the silos' terms, and how many curves the silos hold."""

    name: str
    planner: Planner
    columns: int
    n: int
    silos: int = 1

    def plan(self, *silos: Silo) -> Plan:
        """The plan that a coordinator would propose to these silos."""
        return self.planner([silo.terms() for silo in silos])


def single_cases() -> list[Case]:
    """Every statistic that exists, alone in a plan of one round; and the first round of the published methods."""
    cases = [Case(name, _alone(kind), columns=2, n=4) for name, kind in KINDS.items()]
    return [
        *cases,
        Case("published mean", _published(MEAN), columns=1, n=24),
        Case("published VCM", _published(VCM), columns=2, n=24),
    ]


def study_cases() -> list[Case]:
    """Whole studies: all rounds of a silo together, alone or beside another silo."""
    return [
        Case("federated transcript, adaptive", _adaptive(MEAN), columns=1, n=40, silos=2),
        Case("federated transcript, published VCM", _published(VCM), columns=2, n=40, silos=2),
        Case("transcript, adaptive VCM", _adaptive(VCM), columns=2, n=40),
        Case("transcript, quantile", _quantile, columns=1, n=20),
    ]


def make_silo(curves: Curves, *, name: str = NAME, **options: object) -> Silo:
    """A silo on the real release path."""
    return Silo(curves, epsilon=EPSILON, delta=DELTA, name=name, points_per_curve=POINTS, **options)  # type: ignore[arg-type]


def ordinary_curves(n: int, columns: int, rng: np.random.Generator) -> Curves:
    """Unremarkable curves: those that the replaced one hides among."""
    counts = rng.integers(1, 6, n)
    x, y = rng.uniform(size=counts.sum()), rng.normal(0, 0.5, counts.sum())
    design = np.column_stack([np.ones(n), *(rng.uniform(-1, 1, n) for _ in range(columns - 1))])
    return Curves(x, y, np.concatenate([[0], np.cumsum(counts)]), design)


def default_arrays(plan: Plan, index: int) -> dict[str, Floats]:
    """A valid query for any round; the search then changes it."""
    arrays = {name: np.ones(size) for name, size in plan.query_sizes(index).items()}
    size = plan.n_coefficients * plan.basis.size
    special: dict[str, Floats] = {"whitener": np.eye(size).ravel(), "length_prior": np.array([-1.0, 0.3, 1.0])}
    special |= {name: np.zeros(arrays[name].size) for name in arrays if name in ("iterate", "displacements")}
    return {name: special.get(name, ones) for name, ones in arrays.items()}


def example(kind: type[Statistic]) -> Statistic:
    """A statistic of this kind for plans with two columns and _SIZE functions."""
    return EntrywiseGradient((0.7, 0.5, 0.3) * 2) if kind is EntrywiseGradient else kind()


def _alone(kind: type[Statistic]) -> Planner:
    def plan(silos: list[SiloTerms]) -> Plan:
        members = tuple(replace(terms, shares=((1.0,),)) for terms in silos)
        return Plan("adaptive", "audit", make_basis("cosine", _SIZE), 2, VCM, (Round((example(kind),)),), members)

    return plan


def _published(scaling: Scaling) -> Planner:
    return lambda silos: published_plan(
        silos, scaling, domain=(0.0, 1.0), n_basis=_SIZE, constants=PublishedConstants(C_T=1.0)
    )


def _adaptive(scaling: Scaling) -> Planner:
    return lambda silos: adaptive_plan(silos, scaling, domain=(0.0, 1.0), n_basis=_SIZE)


def _quantile(silos: list[SiloTerms]) -> Plan:
    return quantile_plan(silos[0], [0.5], (0.0, 1.0), Y_BOUNDS)
