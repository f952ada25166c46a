"""What the coordinator knows after a round. Nothing here changes: a round makes a new state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.asymmetry import Sides
from dpfda.methods.adaptive.covariates import CovariateLaw
from dpfda.methods.adaptive.design import Design
from dpfda.methods.adaptive.evidence import Answer, Asked, Measured
from dpfda.methods.adaptive.far_curves import FarCurves, Room
from dpfda.methods.adaptive.information import Information
from dpfda.methods.adaptive.lengths import AtBounds, LengthLaw
from dpfda.methods.adaptive.level import Filled, Level
from dpfda.methods.adaptive.odd_sites import FirstTraits, LongShares, Oddness
from dpfda.methods.adaptive.posterior import Posterior
from dpfda.methods.adaptive.radius import Weights
from dpfda.methods.adaptive.shape import Coordinates
from dpfda.methods.adaptive.weights import CurveWeights


@dataclass(frozen=True)
class Question:
    """The coordinates of a gradient round, and what is known of lengths in them."""

    coordinates: Coordinates
    weights: Weights
    at_bounds: AtBounds
    longest: float
    room: Room
    radius: float | None = None


@dataclass(frozen=True)
class Result:
    """How a study ends: the posterior, the estimate in the basis, and a band's covariance if one is asked for, centred."""

    posterior: Posterior
    estimate: Floats  # (columns, size)
    band_covariance: Floats | None


@dataclass(frozen=True)
class Visits:
    """What is known of the visits whatever was measured there: outcomes that share them learn it once."""

    filled: Filled
    weights: CurveWeights
    design: Design
    own_designs: Mapping[str, Design]
    left_out: frozenset[str]
    law: CovariateLaw


@dataclass(frozen=True)
class State:
    """All that is known after a round; every number is released or public. Coefficients are centred (`covariates.py`)."""

    longer: Basis  # the functions that estimates live in
    level: Level
    filled: float  # share of curves that have points in the domain
    filled_sd: float
    weights: CurveWeights  # what a curve weighs on average; where subjects weigh the same, the share with points
    two_valued: float
    inside: tuple[float, float]  # share of values between the bounds, and its sd
    at_lower: tuple[float, float]  # share of values at the lower bound, and its sd
    design: Design
    law: CovariateLaw
    own_designs: Mapping[str, Design]  # of silos whose designs clearly differ
    left_out: frozenset[str]  # silos that missed round 0 where designs may differ: their gradients cannot be read
    informations: Mapping[str, Information]
    pooled: Information
    start: Floats  # prior mean
    unit: float  # by how much curves differ in level
    covariance: Floats  # of one curve's centred gradient
    iterate: Floats
    open_now: tuple[Floats, Floats]  # mean and covariance of what is thought of the coefficients
    visits: Visits  # as they were released
    question: Question | None = None
    lengths: LengthLaw | None = None
    far: FarCurves | None = None  # what noise hides of far curves in the coordinates of the question
    sides: Sides | None = None  # on which long gradients lie in the coordinates of the question
    carried: tuple[Floats, float] | None = None  # weights of the laws, and octaves by which lengths fell
    asked: tuple[Asked, ...] = ()
    answers: Mapping[str, tuple[Answer, ...]] = field(default_factory=dict)
    measured: Mapping[str, Measured] = field(default_factory=dict)
    posterior: Posterior | None = None
    result: Result | None = None
    first_traits: FirstTraits | None = None
    long: LongShares = field(default_factory=LongShares)  # by histograms of lengths
    clipped: LongShares = field(default_factory=LongShares)  # by the companions of gradients
    oddness: Oddness = field(default_factory=Oddness)
    unusable: frozenset[str] = frozenset()  # silos of which an answer was left out, see `unusable.py`
    with_band: bool = True  # simulations that look at estimates only leave bands out

    @property
    def hardly_filled(self) -> bool:
        """Whether so few curves have points that their share cannot be told from noise."""
        return self.filled - constants.FILLED_SDS * self.filled_sd < constants.HARDLY_FILLED
