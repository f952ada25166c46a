"""What silos and studies declare in public: names, sizes, budgets, and the affine maps from the user's units.

These values are public by definition. Nothing in this module is computed from data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats


@dataclass(frozen=True)
class SiloTerms:
    """What one silo declares in public: its name, number of curves and budget; and what the study makes of them.

    `shares[t][j]` is the share of the silo's mu^2 that statistic j of round t costs; empty means that every round is one
    statistic with the whole budget, which only disjoint batches allow.
    """

    name: str
    n: int
    epsilon: float
    delta: float
    points_per_curve: float | None = None
    weight: float = 1.0
    clip_factor: float = 1.0
    shares: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Scaling:
    """The public affine maps from the user's units to the units of the algorithm.

    Out-of-bounds y is clamped to `y_bounds` and then mapped to (y - y_shift) / y_scale; design entries are clamped to
    `design_bounds` and mapped alike; points with x outside the basis's domain are dropped. All per curve, none of it
    seen from outside. Shifts other than zero need column 0 to be the constant 1, which its bounds (1, 1) enforce.
    """

    y_bounds: tuple[float, float]
    design_bounds: tuple[tuple[float, float], ...]
    y_shift: float = 0.0
    y_scale: float = 1.0
    design_shift: tuple[float, ...] = ()
    design_scale: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        columns = len(self.design_bounds)
        if not self.design_shift:
            object.__setattr__(self, "design_shift", (0.0,) * columns)
        if not self.design_scale:
            object.__setattr__(self, "design_scale", (1.0,) * columns)

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
