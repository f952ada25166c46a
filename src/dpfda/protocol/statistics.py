"""What a round may ask for: one class is one statistic.

A class owns its name in plans, how many numbers it releases, which arrays a query must carry for it, and, where the
plan alone decides, the bound on one curve's contribution. How a silo computes it is one function in
`silo/release_statistics.py`; a plan asks for it by holding an instance. Nothing else has to know it. Parameters have
closed ranges here, too: a second wall behind the terms, for plans of builders that a researcher registered.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.basis.moments import moment_bounds
from dpfda.errors import InvalidInput, ProtocolError
from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.privacy.cones import CompanionBound, HistogramBound, HistogramsBound
from dpfda.protocol.ranges import Real, Several, Whole

MOST_BINS, MOST_RADII = 1024, 100_000
LEAST_RADIUS, MOST_RADIUS = 1e-9, 1e6  # of a query's ball: y is of order 1, and no entry of a query is larger
SHORTEST_OCTAVE, LONGEST_OCTAVE = -6, 14  # lengths of gradients are counted in octaves between 2^-6 and 2^14
LENGTH_CELLS = LONGEST_OCTAVE - SHORTEST_OCTAVE + 2  # and one for all that are shorter, one for all that are longer
MOST_SIGNS = 2  # coordinates whose signs a histogram of lengths may tell: the first, the second
COVARIATE_CELLS = 18  # of a covariate's histogram: at each bound, and 16 bins between
LARGEST_COVARIATE, PRODUCT_WEIGHT, MOMENT_REACH = 3.0, 2.5, 1.4  # in units in which covariates have size 1
LEAST_SCALE = 1e-9  # of a covariate's units in a query
DEGREES = 4  # of the polynomials in x by which products of covariates are weighed: 0, 1, 2, 3
_SIZE = Real(1e-50, 1e50)  # of a radius: nothing within it overflows


@dataclass(frozen=True)
class Dimensions:
    """The public numbers that sizes depend on: design columns and basis."""

    columns: int
    basis: Basis

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return self.columns * self.basis.size


@dataclass(frozen=True)
class Statistic(ABC):
    """A quantity to which every curve contributes a bounded vector; silos release noisy means of it."""

    kind: ClassVar[str]

    @abstractmethod
    def width(self, dimensions: Dimensions) -> int:
        """How many numbers it releases, the same in every round; integers only, since hostile plans are sized by it."""

    def query_sizes(self, dimensions: Dimensions) -> dict[str, int]:
        """Names and lengths of the arrays that a query must carry for it."""
        return {}

    def check(self, dimensions: Dimensions) -> None:  # noqa: B027
        """Refuse parameters that do not fit the plan's sizes; most have none."""

    def check_arrays(self, arrays: Mapping[str, Floats]) -> None:  # noqa: B027
        """Refuse a query's numbers out of range, before any curve is touched; `query_sizes` has been checked."""


KINDS: dict[str, type[Statistic]] = {}
_Class = TypeVar("_Class", bound=type[Statistic])


def register(statistic: _Class) -> _Class:
    """Let plans name this statistic by its `kind`."""
    if statistic.kind in KINDS:
        raise ValueError(f"two statistics call themselves {statistic.kind!r}")
    KINDS[statistic.kind] = statistic
    return statistic


@register
@dataclass(frozen=True)
class EntrywiseGradient(Statistic):
    """The published release: gradients truncated to |g_h| <= R_h (Algorithms 1-4, line 4)."""

    kind: ClassVar[str] = "entrywise-gradient"
    radii: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "radii", Several(_SIZE, 1, MOST_RADII).check("radii", self.radii))

    def width(self, dimensions: Dimensions) -> int:
        return dimensions.size

    def query_sizes(self, dimensions: Dimensions) -> dict[str, int]:
        return {"iterate": dimensions.size}

    def bound(self, dimensions: Dimensions) -> EntrywiseBound:
        """R_h in entry h."""
        self.check(dimensions)
        return EntrywiseBound(np.asarray(self.radii))

    def check(self, dimensions: Dimensions) -> None:
        """One radius for every coefficient."""
        if len(self.radii) != dimensions.size:
            raise InvalidInput(f"radii must be one for each of the {dimensions.size} coefficients.")


@register
@dataclass(frozen=True)
class LevelHistogram(Statistic):
    """How many curves have a mean of y in each of `bins` equal bins of the y-range, and how many have no points."""

    kind: ClassVar[str] = "level-histogram"
    bins: int = 64

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", Whole(2, MOST_BINS).check("bins", self.bins))

    def width(self, dimensions: Dimensions) -> int:
        return self.bins + 1

    def bound(self, dimensions: Dimensions) -> HistogramBound:
        """A curve counts once."""
        return HistogramBound(self.bins + 1)


@register
@dataclass(frozen=True)
class DesignMoments(Statistic):
    """Means over a curve's points of the basis's moment features, minus what a uniform design has, times its weight."""

    kind: ClassVar[str] = "design-moments"

    def width(self, dimensions: Dimensions) -> int:
        return dimensions.basis.moment_count

    def bound(self, dimensions: Dimensions) -> EllipsoidBound:
        """The ellipsoid that holds all such means."""
        return EllipsoidBound(*moment_bounds(dimensions.basis))


@register
@dataclass(frozen=True)
class ShareBelow(Statistic):
    """The share of a curve's own y at or below a threshold (the only entry of the iterate), minus 1/2.

    `level` is the quantile that the study is after; the release does not depend on it.
    """

    kind: ClassVar[str] = "share-below"
    level: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", Real(0.0, 1.0, open=True).check("level", self.level))

    def width(self, dimensions: Dimensions) -> int:
        return 1

    def query_sizes(self, dimensions: Dimensions) -> dict[str, int]:
        return {"iterate": dimensions.size}

    def bound(self, dimensions: Dimensions) -> EntrywiseBound:
        """Within 1/2 of zero."""
        return EntrywiseBound(np.array([0.5]))


class _OfGradients(Statistic):
    """Made of gradients in the query's public coordinates."""

    def query_sizes(self, dimensions: Dimensions) -> dict[str, int]:
        return {"iterate": dimensions.size, "whitener": dimensions.size**2}


@register
@dataclass(frozen=True)
class LengthHistogram(_OfGradients):
    """In which octave the length of each curve's gradient lies, in the query's coordinates, and on which side.

    Of each octave there are 2^signs cells: by the sign of the first coordinate, and of the second.
    """

    kind: ClassVar[str] = "length-histogram"
    signs: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "signs", Whole(0, MOST_SIGNS).check("signs", self.signs))

    def width(self, dimensions: Dimensions) -> int:
        return LENGTH_CELLS << self.signs

    def bound(self, dimensions: Dimensions) -> HistogramBound:
        """A curve counts once."""
        return HistogramBound(self.width(dimensions))


@register
@dataclass(frozen=True)
class ClippedGradient(_OfGradients):
    """The gradient within a ball of the query's radius, its outer product, and a count by its length."""

    kind: ClassVar[str] = "clipped-gradient"

    def width(self, dimensions: Dimensions) -> int:
        return dimensions.size + dimensions.size * (dimensions.size + 1) // 2 + LENGTH_CELLS

    def query_sizes(self, dimensions: Dimensions) -> dict[str, int]:
        return {**super().query_sizes(dimensions), "radius": 1}

    def check_arrays(self, arrays: Mapping[str, Floats]) -> None:
        """The radius is public and the noise grows with it, so any that the arithmetic serves will do."""
        if not LEAST_RADIUS <= arrays["radius"][0] <= MOST_RADIUS:
            raise ProtocolError(f"The query's radius must lie between {LEAST_RADIUS:g} and {MOST_RADIUS:g}.")

    def bound(self, dimensions: Dimensions, radius: float) -> CompanionBound:
        """The ball, which pays for the companions, too."""
        return CompanionBound(dimensions.size, radius, LENGTH_CELLS)


@register
@dataclass(frozen=True)
class SharesAtBounds(Statistic):
    """Which share of a curve's y is at the lower bound, and which at the upper one, each minus 1/2."""

    kind: ClassVar[str] = "shares-at-bounds"

    def width(self, dimensions: Dimensions) -> int:
        return 2

    def bound(self, dimensions: Dimensions) -> EntrywiseBound:
        """Within 1/2 of zero."""
        return EntrywiseBound(np.full(2, 0.5))


@register
@dataclass(frozen=True)
class VisitWeights(Statistic):
    """What a curve of m points weighs, min(m, cap) / cap with the plan's cap, and the square of it, each minus 1/2."""

    kind: ClassVar[str] = "visit-weights"

    def width(self, dimensions: Dimensions) -> int:
        return 2

    def bound(self, dimensions: Dimensions) -> EntrywiseBound:
        """Within 1/2 of zero."""
        return EntrywiseBound(np.full(2, 0.5))


@register
@dataclass(frozen=True)
class CovariateHistograms(Statistic):
    """For each covariate: how many curves have it at its lower bound, at its upper one, and in equal bins between."""

    kind: ClassVar[str] = "covariate-histograms"
    intercept: bool = True

    def __post_init__(self) -> None:
        _check_intercept(self.intercept)

    def check(self, dimensions: Dimensions) -> None:
        """A constant alone has nothing to tell."""
        _refuse_constant(self.kind, dimensions.columns - int(self.intercept))

    def width(self, dimensions: Dimensions) -> int:
        return COVARIATE_CELLS * (dimensions.columns - int(self.intercept))

    def bound(self, dimensions: Dimensions) -> HistogramsBound:
        """A curve counts once in each."""
        return HistogramsBound(dimensions.columns - int(self.intercept), COVARIATE_CELLS)


@register
@dataclass(frozen=True)
class CovariateMoments(Statistic):
    """Means over a curve's points of g_j g_k T_q(x), j <= k, q = 0..3, g the covariates in the query's public units,
    times the curve's weight.

    With an intercept, which is 1 in those units, without j = k = 0. Entries of g are cut off at `LARGEST_COVARIATE`.
    """

    kind: ClassVar[str] = "covariate-moments"
    intercept: bool = True

    def __post_init__(self) -> None:
        _check_intercept(self.intercept)

    def check(self, dimensions: Dimensions) -> None:
        """A constant alone has nothing to tell."""
        _refuse_constant(self.kind, self.products(dimensions.columns))

    def query_sizes(self, dimensions: Dimensions) -> dict[str, int]:
        return {"covariate_centre": dimensions.columns, "covariate_scale": dimensions.columns}

    def check_arrays(self, arrays: Mapping[str, Floats]) -> None:
        """Units are public, and whatever they are, each curve's row is shortened afterwards; they must not be zero."""
        if not (arrays["covariate_scale"] >= LEAST_SCALE).all():
            raise ProtocolError(f"The query's covariate_scale must be at least {LEAST_SCALE:g}.")

    def products(self, columns: int) -> int:
        """How many products g_j g_k there are."""
        return columns * (columns + 1) // 2 - int(self.intercept)

    def width(self, dimensions: Dimensions) -> int:
        return DEGREES * self.products(dimensions.columns)

    def bound(self, dimensions: Dimensions) -> EllipsoidBound:
        """Weights 1, 2, 2, 2 for the degrees; products of two covariates weigh more than a covariate alone.

        Rows beyond the ellipsoid are shortened. It is convex, so that it does not matter whether covariates change within
        a curve: the mean of its rows is shortened as one.
        """
        first, _ = np.triu_indices(dimensions.columns)
        single = (first == 0)[int(self.intercept) :] & self.intercept
        weights = np.where(single, 1.0, PRODUCT_WEIGHT)
        typical = 2.5 * float((np.where(single, 1.0, 1.5) / weights).sum())
        return EllipsoidBound(np.outer(weights, [1.0, 2.0, 2.0, 2.0]).ravel(), MOMENT_REACH * math.sqrt(typical))


def _check_intercept(intercept: object) -> None:
    if type(intercept) is not bool:
        raise InvalidInput(f"intercept must be True or False, got {intercept!r}.")


def _refuse_constant(kind: str, left: int) -> None:
    if left == 0:
        raise InvalidInput(f"{kind} needs a covariate beside the intercept.")
