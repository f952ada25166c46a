"""What a round may measure: names and public parameters. How a silo computes them is in `measures.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Statistic:
    """A quantity that every curve contributes a bounded vector to; silos release noisy means of it.

    `asks` names the arrays that a query must carry for it.
    """

    kind: ClassVar[str] = ""
    asks: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True)
class EntrywiseGradient(Statistic):
    """The published release: gradients truncated to |g_h| <= R_h (Algorithms 1-4, line 4)."""

    kind: ClassVar[str] = "entrywise-gradient"
    asks: ClassVar[tuple[str, ...]] = ("iterate",)
    radii: tuple[float, ...] = ()


@dataclass(frozen=True)
class LevelHistogram(Statistic):
    """How many curves have their own mean of y in each of `bins` equal bins of the y-range, and how many have no points."""

    kind: ClassVar[str] = "level-histogram"
    bins: int = 64


@dataclass(frozen=True)
class DesignMoments(Statistic):
    """Mean of cos(k theta) and sin(k theta) over a curve's points, minus what a uniform design has."""

    kind: ClassVar[str] = "design-moments"


@dataclass(frozen=True)
class CovariateSquares(Statistic):
    """G_k^2 of every design column but the first."""

    kind: ClassVar[str] = "covariate-squares"


@dataclass(frozen=True)
class CovariateProducts(Statistic):
    """G G^T with columns of about one size, each curve's vector within a ball of this radius."""

    kind: ClassVar[str] = "covariate-products"
    asks: ClassVar[tuple[str, ...]] = ("covariate_scale",)
    radius: float = 1.0


@dataclass(frozen=True)
class ShareBelow(Statistic):
    """The share of a curve's own y that is at or below a threshold (the only entry of the iterate).

    `level` is the quantile that the study is after; the release does not depend on it.
    """

    kind: ClassVar[str] = "share-below"
    asks: ClassVar[tuple[str, ...]] = ("iterate",)
    level: float = 0.5


_CLIPPED = ("iterate", "whitener", "length_prior", "displacements")


@dataclass(frozen=True)
class WhitenedGradient(Statistic):
    """The gradient in the query's public coordinates, within a ball whose radius the silo finds by itself."""

    kind: ClassVar[str] = "whitened-gradient"
    asks: ClassVar[tuple[str, ...]] = _CLIPPED


@dataclass(frozen=True)
class ShortShare(Statistic):
    """Whether the whitened gradient is shorter than the silo's own guess of the median length."""

    kind: ClassVar[str] = "short-share"
    asks: ClassVar[tuple[str, ...]] = _CLIPPED


@dataclass(frozen=True)
class GradientOuterProducts(Statistic):
    """The outer product of the clipped whitened gradient, in units of the radius squared."""

    kind: ClassVar[str] = "gradient-outer-products"
    asks: ClassVar[tuple[str, ...]] = _CLIPPED


@dataclass(frozen=True)
class ClippedRemainder(Statistic):
    """What clipping took from the whitened gradient along the query's direction, up to `reach` further radii."""

    kind: ClassVar[str] = "clipped-remainder"
    asks: ClassVar[tuple[str, ...]] = (*_CLIPPED, "remainder_direction")
    reach: float = 1.0


KINDS: dict[str, type[Statistic]] = {
    cls.kind: cls
    for cls in (
        EntrywiseGradient,
        LevelHistogram,
        DesignMoments,
        CovariateSquares,
        CovariateProducts,
        WhitenedGradient,
        ShortShare,
        GradientOuterProducts,
        ClippedRemainder,
        ShareBelow,
    )
}
