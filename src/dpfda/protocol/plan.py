"""The frozen plan: every public choice of a study, and nothing else.

Batches, clipping, noise and the accounted events all derive from this one object, on the coordinator's side and on the
silo's: a mismatch between what is done and what is paid for cannot be written. A plan is never sent or read: each side
makes it from the terms with its own code (`plans/registry.py`), and its digest tells whether both made the same.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpfda.basis.basis import Basis
from dpfda.errors import InvalidInput
from dpfda.privacy.accounting import GaussianEvent, lemma1_mu, mu_for
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import Dimensions, Statistic
from dpfda.protocol.terms import SiloTerms

Calibration = Literal["lemma1", "exact"]


@dataclass(frozen=True)
class Round:
    """One release of every silo: the statistics in it and the part of the curves that it touches.

    `part` t of `parts` T means the disjoint batch of curves t*floor(n/T) ... (t+1)*floor(n/T)-1; None means all. `outcome`
    is the place of the outcome whose curves are measured.
    """

    statistics: tuple[Statistic, ...]
    part: int | None = None
    parts: int = 1
    outcome: int = 0

    def batch(self, n: int) -> range:
        """Positions of the curves that this round touches in a silo of n curves."""
        if self.part is None:
            return range(n)
        size = n // self.parts
        return range(self.part * size, (self.part + 1) * size)


@dataclass(frozen=True)
class Projection:
    """The data-free set that iterates are projected on.

    "ellipsoid": every block in sum_l l^{2 alpha} b_l^2 <= radius^2 (exact for d = O(1)); "cone": the triangle-inequality
    set sum_k c_k ||b_k||_alpha <= radius that holds for every |G_k| <= c_k; "none": the whole space.
    """

    kind: Literal["ellipsoid", "cone", "none"] = "none"
    alpha: float = 3.0
    radius: float = math.inf


@dataclass(frozen=True)
class Assumptions:
    """What the users of a study declare to hold, in public, visit times in [0, 1]; and whether sites that are unlike all
    others count less. Silos do not depend on it.
    """

    symmetric: bool = False
    outcome: str = "any"
    visit_times: tuple[float, ...] = ()
    robust_sites: bool = True


@dataclass(frozen=True)
class PlannedOutcome:
    """One of several outcomes: its name, its public maps, and what is declared of it."""

    name: str
    scaling: Scaling
    assumptions: Assumptions = Assumptions()


@dataclass(frozen=True)
class SiloPlan:
    """What the study makes of one silo's terms.

    `shares[t][j]` is the share of the silo's mu^2 that statistic j of round t costs; empty means that every round is one
    statistic with the whole budget, which only disjoint batches allow.
    """

    terms: SiloTerms
    weight: float = 1.0
    shares: tuple[tuple[float, ...], ...] = ()

    @property
    def name(self) -> str:
        """The silo's name."""
        return self.terms.name

    @property
    def n(self) -> int:
        """Its number of curves."""
        return self.terms.n


@dataclass(frozen=True)
class Plan:
    """All that the silos of one study will be asked, and what it costs each of them.

    `outcomes` is empty for one outcome. Of several, `scaling` and `assumptions` are those of the first, and all curves take
    part in every round: batches would be disjoint within an outcome only.
    """

    method: str
    algorithm: str
    basis: Basis
    n_coefficients: int
    scaling: Scaling
    rounds: tuple[Round, ...]
    silos: tuple[SiloPlan, ...]
    calibration: Calibration = "exact"
    step: float = 1.0
    projection: Projection = Projection()
    alpha: float = 2.0
    assumptions: Assumptions = Assumptions()
    first: tuple[float, ...] = ()
    outcomes: tuple[PlannedOutcome, ...] = ()

    def __post_init__(self) -> None:
        names = [silo.name for silo in self.silos]
        if len(set(names)) != len(names):
            raise InvalidInput("silos must have different names; give each Silo its own name=.")
        self._check_parts()
        self._check_outcomes()
        if self.first and len(self.first) != self.n_coefficients * self.basis.size:
            raise InvalidInput(
                f"start must hold {self.n_coefficients * self.basis.size} coefficients, {self.basis.size} for each function."
            )
        for statistic in {statistic for planned in self.rounds for statistic in planned.statistics}:
            statistic.check(self.dimensions)
        for silo in self.silos:
            self._check_shares(silo)

    def _check_parts(self) -> None:
        """Batches that are priced as disjoint must be: one partition for the whole plan, and a curve in each batch."""
        partitions = {planned.parts for planned in self.rounds if planned.part is not None}
        if len(partitions) > 1:
            raise InvalidInput("rounds must use one partition of the curves: batches of different partitions overlap.")
        for planned in self.rounds:
            if planned.part is not None and not 0 <= planned.part < planned.parts:
                raise InvalidInput(f"rounds name batch {planned.part} of {planned.parts}, which does not exist.")
        smallest = min((silo.n for silo in self.silos), default=0)
        if partitions and not max(partitions) <= smallest:
            raise InvalidInput(f"rounds ask for {max(partitions)} batches of a silo with {smallest} curves.")

    def _check_outcomes(self) -> None:
        """Every round measures an outcome that there is, and with several of them all curves."""
        if not all(0 <= planned.outcome < self.count_outcomes for planned in self.rounds):
            raise InvalidInput("rounds name an outcome that the plan does not have.")
        if self.outcomes and any(planned.part is not None for planned in self.rounds):
            raise InvalidInput("rounds must use all curves where there are several outcomes.")
        if self.outcomes and (self.scaling, self.assumptions) != (
            self.outcomes[0].scaling,
            self.outcomes[0].assumptions,
        ):
            raise InvalidInput("scaling and assumptions must be those of the first outcome.")

    def _check_shares(self, silo: SiloPlan) -> None:
        """Shares match the rounds statistic by statistic, and are positive and at most one."""
        if not silo.shares:
            return
        counts = [len(planned.statistics) for planned in self.rounds]
        if [len(shares) for shares in silo.shares] != counts:
            raise InvalidInput(f"shares of silo {silo.name!r} do not match the plan's rounds.")
        if not all(0 < share <= 1 for shares in silo.shares for share in shares):
            raise InvalidInput(f"shares of silo {silo.name!r} must lie in (0, 1].")

    @property
    def count_outcomes(self) -> int:
        """How many outcomes are measured."""
        return len(self.outcomes) or 1

    def locate(self, index: int) -> tuple[int, int]:
        """Which outcome round `index` measures, and which of that outcome's rounds it is."""
        place = self.rounds[index].outcome
        return place, sum(planned.outcome == place for planned in self.rounds[:index])

    def of_outcome(self, place: int) -> Plan:
        """The rounds of one outcome, at the prices that they have here; of one outcome, the plan itself."""
        return self._by_outcome[place] if self.outcomes else self

    @cached_property
    def _by_outcome(self) -> list[Plan]:
        return [self._keep_outcome(place) for place in range(self.count_outcomes)]

    def _keep_outcome(self, place: int) -> Plan:
        mine, chosen = [planned.outcome == place for planned in self.rounds], self.outcomes[place]
        silos = tuple(
            dataclasses.replace(silo, shares=tuple(itertools.compress(silo.shares, mine))) for silo in self.silos
        )
        rounds = tuple(dataclasses.replace(each, outcome=0) for each in itertools.compress(self.rounds, mine))
        alone: dict[str, Any] = {"scaling": chosen.scaling, "assumptions": chosen.assumptions, "outcomes": ()}
        return dataclasses.replace(self, rounds=rounds, silos=silos, **alone)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (d+1, r) of the coefficients."""
        return self.n_coefficients, self.basis.size

    @cached_property
    def dimensions(self) -> Dimensions:
        """What the sizes of releases and queries depend on."""
        return Dimensions(self.n_coefficients, self.basis)

    @property
    def scaled_bounds(self) -> tuple[float, float]:
        """The bounds of y in the plan's units."""
        low, high = ((limit - self.scaling.y_shift) / self.scaling.y_scale for limit in self.scaling.transformed_bounds)
        return low, high

    def silo(self, name: str) -> SiloPlan:
        """What the plan says of one silo."""
        if name not in self._by_name:
            raise InvalidInput(f"silo {name!r} is not part of this plan.")
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, SiloPlan]:
        return {silo.name: silo for silo in self.silos}

    def mu(self, silo: str) -> float:
        """The Gaussian budget mu_s of a silo: Lemma 1's calibration or the exact one."""
        terms = self.silo(silo).terms
        calibrate = lemma1_mu if self.calibration == "lemma1" else mu_for
        return calibrate(terms.epsilon, terms.delta)

    def statistic_mus(self, silo: str, index: int) -> list[float]:
        """The mu of every statistic of round `index` at a silo: mu_s sqrt(share)."""
        shares = self.silo(silo).shares
        mu, statistics = self.mu(silo), self.rounds[index].statistics
        return [mu * math.sqrt(share) for share in (shares[index] if shares else (1.0,) * len(statistics))]

    def event(self, silo: str, index: int) -> GaussianEvent:
        """What round `index` costs a silo, on the round's part of the curves: mu_t^2 = sum over its statistics."""
        return self.events(silo)[index]

    def events(self, silo: str) -> list[GaussianEvent]:
        """Every event that the study will cost a silo."""
        if silo not in self._events:
            self._events[silo] = [self._event(silo, index) for index in range(len(self.rounds))]
        return list(self._events[silo])

    @cached_property
    def _events(self) -> dict[str, list[GaussianEvent]]:
        """Those that were asked for."""
        return {}

    def _event(self, silo: str, index: int) -> GaussianEvent:
        planned = self.rounds[index]
        of = f" of {self.outcomes[planned.outcome].name}" if self.outcomes else ""
        label = f"round {index}: " + ", ".join(statistic.kind for statistic in planned.statistics) + of
        return GaussianEvent(math.hypot(*self.statistic_mus(silo, index)), part=planned.part, label=label)

    def query_sizes(self, index: int) -> dict[str, int]:
        """Names and lengths of the arrays that a query of round `index` must carry: those of its statistics."""
        sizes: dict[str, int] = {}
        for statistic in self.rounds[index].statistics:
            sizes |= statistic.query_sizes(self.dimensions)
        return sizes

    def slice_of(self, index: int, kind: type[Statistic]) -> slice | None:
        """Where a statistic of this kind stands in the values of a release of round `index`."""
        return next((place for statistic, place in self._places[index] if isinstance(statistic, kind)), None)

    @cached_property
    def _places(self) -> list[list[tuple[Statistic, slice]]]:
        """The statistics of every round, and where their values stand."""
        found = []
        for planned in self.rounds:
            ends = [0, *itertools.accumulate(statistic.width(self.dimensions) for statistic in planned.statistics)]
            found.append(list(zip(planned.statistics, map(slice, ends, ends[1:]), strict=True)))
        return found

    def release_width(self, index: int) -> int:
        """How many numbers a release of round `index` holds."""
        return max((place.stop for _, place in self._places[index]), default=0)

    def start(self) -> NDArray[np.float64]:
        """The first iterate, B^0 = 0 unless the terms give another."""
        return np.array(self.first).reshape(self.shape) if self.first else np.zeros(self.shape)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able description, for digests and readers; nothing reads it back."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        fields["basis"] = self.basis.to_dict()
        fields["rounds"] = [_round_to_dict(planned) for planned in self.rounds]
        for name in ("scaling", "projection", "assumptions"):
            fields[name] = dataclasses.asdict(fields[name])
        fields["silos"] = [dataclasses.asdict(silo) for silo in self.silos]
        fields["outcomes"] = [dataclasses.asdict(outcome) for outcome in self.outcomes]
        if not self.outcomes:
            del fields["outcomes"]
        return fields

    def digest(self) -> str:
        """Two plans agree exactly when their digests do."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def _round_to_dict(planned: Round) -> dict[str, Any]:
    statistics = [{"kind": statistic.kind, **dataclasses.asdict(statistic)} for statistic in planned.statistics]
    fields = {"statistics": statistics, "part": planned.part, "parts": planned.parts}
    return {**fields, "outcome": planned.outcome} if planned.outcome else fields
