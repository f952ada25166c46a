"""From public bounds to the units of the algorithms: maps that follow from terms, never from data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats
from dpfda.errors import InvalidInput
from dpfda.protocol.ranges import Maybe, Whole
from dpfda.protocol.transforms import NO_TRANSFORM, check_transform, transform_bounds

Pair = tuple[float, float]
INTERCEPT: Pair = (1.0, 1.0)
WEIGHTS = ("subject", "visit")  # what weighs the same in a mean
VISIT_CAP = Maybe(Whole(1, 1000))  # visits from which on a subject weighs no more


@dataclass(frozen=True)
class Scaling:
    """The public maps from the user's units to the units of the algorithm.

    Out-of-bounds y is clamped to `y_bounds`, transformed, and then mapped to (y - y_shift) / y_scale; design entries are
    clamped to `design_bounds` and mapped alike, without a transform; points with x outside the basis's domain are dropped.
    All per curve, none of it seen from outside. Shifts other than zero need column 0 to be the constant 1, which its
    bounds (1, 1) enforce. What is called the user's units below is transformed y, if there is a transform.
    With a `visit_cap`, a curve of m points weighs min(m, cap) / cap; without, every curve that has points weighs 1.
    """

    y_bounds: tuple[float, float]
    design_bounds: tuple[tuple[float, float], ...]
    y_shift: float = 0.0
    y_scale: float = 1.0
    design_shift: tuple[float, ...] = ()
    design_scale: tuple[float, ...] = ()
    transform: str = NO_TRANSFORM
    visit_cap: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "visit_cap", VISIT_CAP.check("visit_cap", self.visit_cap))
        columns = len(self.design_bounds)
        if not self.design_shift:
            object.__setattr__(self, "design_shift", (0.0,) * columns)
        if not self.design_scale:
            object.__setattr__(self, "design_scale", (1.0,) * columns)
        check_transform(self.transform, self.y_bounds)

    @property
    def transformed_bounds(self) -> Pair:
        """The bounds of y after the transform."""
        return transform_bounds(self.transform, self.y_bounds)

    def mixing(self) -> Floats:
        """The (d+1) x (d+1) matrix that takes scaled coefficient functions to the user's, up to the shift of y."""
        matrix = np.diag(self.y_scale / np.asarray(self.design_scale))
        matrix[0] -= np.asarray(self.design_shift) @ matrix
        return matrix

    def to_user_units(self, coefficients: Floats) -> Floats:
        """Coefficient functions of the user's y and G from those of the scaled ones (rows: functions; phi_1 = 1)."""
        in_user_y: Floats = self.mixing() @ coefficients
        in_user_y[0, 0] += self.y_shift
        return in_user_y

    def from_user_units(self, coefficients: Floats) -> Floats:
        """The inverse of `to_user_units`."""
        in_user_y = np.array(coefficients, dtype=np.float64)
        in_user_y[0, 0] -= self.y_shift
        return np.asarray(np.linalg.solve(self.mixing(), in_user_y))


def check_weight(weight: str, visit_cap: int | None) -> None:
    """Refuse a cap without weights by visits, and weights by visits without a cap."""
    if (weight == "visit") != (visit_cap is not None):
        raise InvalidInput(
            "visit_cap must be given with weight='visit', and with it only: from how many visits on a subject weighs no "
            "more, a public number such as 10."
        )


def symmetric_scaling(
    y_bounds: Pair, design_bounds: tuple[Pair, ...], transform: str = NO_TRANSFORM, visit_cap: int | None = None
) -> Scaling:
    """y and, where there is an intercept to take the shifts, design columns to [-1, 1] around the middle of their bounds."""
    low, high = transform_bounds(check_transform(transform, y_bounds), y_bounds)
    if design_bounds[0] != INTERCEPT:
        sizes = tuple(max(abs(left), abs(right)) for left, right in design_bounds)
        size = max(abs(low), abs(high))
        return Scaling(y_bounds, design_bounds, 0.0, size, design_scale=sizes, transform=transform, visit_cap=visit_cap)
    middles = (0.0, *((left + right) / 2 for left, right in design_bounds[1:]))
    halves = (1.0, *((right - left) / 2 for left, right in design_bounds[1:]))
    return Scaling(y_bounds, design_bounds, (low + high) / 2, (high - low) / 2, middles, halves, transform, visit_cap)


def unit_scaling(
    y_bounds: Pair, design_bounds: tuple[Pair, ...], *, scale_y: bool, transform: str = NO_TRANSFORM
) -> Scaling:
    """y to [0, 1] by its public bounds, as in the paper's real-data example, or untouched, as in its simulations."""
    if not scale_y:
        return Scaling(y_bounds, design_bounds, transform=transform)
    low, high = transform_bounds(check_transform(transform, y_bounds), y_bounds)
    shift = low if design_bounds[0] == INTERCEPT else 0.0
    return Scaling(y_bounds, design_bounds, shift, high - low, transform=transform)
