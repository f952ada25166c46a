"""The public coordinates of a round, in which gradients are clipped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive.matrices import powers


@dataclass(frozen=True)
class Coordinates:
    """The public coordinates of a round: W^{1/2}, W^{-1/2}, and the shape of the whitened gradients (trace 1)."""

    root: Floats
    whitener: Floats
    directions: Floats

    @classmethod
    def of(cls, shape: Floats, gradient_covariance: Floats) -> Coordinates:
        """W = `shape`, for gradients whose covariance is in proportion to the given one."""
        root, whitener = powers(shape, 0.5, -0.5)
        directions = whitener @ gradient_covariance @ whitener
        return cls(root, whitener, directions / directions.trace())

    @cached_property
    def _axes(self) -> tuple[Floats, Floats]:
        values, vectors = np.linalg.eigh((self.directions + self.directions.T) / 2)
        return values, vectors

    @property
    def shares(self) -> Floats:
        """Eigenvalues of `directions`."""
        return self._axes[0]

    @property
    def vectors(self) -> Floats:
        """Q, the eigenvectors of `directions`."""
        return self._axes[1]

    @cached_property
    def rotated(self) -> Floats:
        """C = Q^T W^{-1/2}."""
        result: Floats = self.vectors.T @ self.whitener
        return result


def expect_squared_length(whitener: Floats, information: Floats, filled: float, second_moments: Floats) -> float:
    """The mean squared length of whitened gradients, zeros apart, that displacements with these second moments make."""
    whitened = whitener @ information / filled
    return float(((whitened @ second_moments) * whitened).sum())
