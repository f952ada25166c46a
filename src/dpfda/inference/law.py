"""What a fit ends with: one Gaussian law of the coefficients of all its functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from dpfda._typing import Floats, Interval
from dpfda.errors import InvalidInput

_LEVEL = 1e-9  # slopes at both ends below this share of the steepest: the functions are level there


class Functions(Protocol):
    """A list of functions on a domain: a `Basis`, or what a result file holds of one."""

    @property
    def size(self) -> int: ...

    @property
    def domain(self) -> Interval: ...

    def unit(self, x: ArrayLike) -> Floats:
        """From the domain to [0, 1]; values outside are refused."""
        ...

    def evaluate_unit(self, u: Floats, order: int = 0) -> Floats:
        """All functions at points of [0, 1], one column each; derivatives, or integrals from 0 if `order` is negative."""
        ...


@dataclass(frozen=True, eq=False)
class Law:
    """B ~ N(mean, covariance): one row of `mean` for each design column, one entry for each function.

    The covariance is that of the rows one after the other; None if the method does not know it. All numbers are released or
    public, in the user's units.
    """

    functions: Functions
    mean: Floats
    covariance: Floats | None

    def __post_init__(self) -> None:
        columns, size = self.mean.shape
        if size != self.functions.size or (
            self.covariance is not None and self.covariance.shape != (columns * size, columns * size)
        ):
            raise InvalidInput("the coefficients, their covariance and their functions do not belong together.")

    @property
    def columns(self) -> int:
        """The number of design columns."""
        return len(self.mean)

    @property
    def length(self) -> float:
        """Of the domain."""
        low, high = self.functions.domain
        return high - low

    @property
    def has_free_ends(self) -> bool:
        """Whether slopes at the ends can be other than zero (cosines are level there, whatever the curve does)."""
        slopes = np.abs(self.functions.evaluate_unit(np.array([0.0, 0.3, 0.5, 0.7, 1.0]), 1))
        steepest = slopes.max()
        return bool(steepest == 0.0 or min(slopes[0].max(), slopes[-1].max()) > _LEVEL * steepest)

    def features(self, u: Floats, order: int) -> Floats:
        """The functions' derivatives with respect to x."""
        values = self.functions.evaluate_unit(u, order)
        return values if order == 0 else values / self.length**order


def pad_mean(coefficients: Floats, size: int) -> Floats:
    """Coefficients with zeros for functions that were not estimated."""
    padded = np.zeros((len(coefficients), size))
    padded[:, : coefficients.shape[1]] = coefficients
    return padded
