"""What is public about the moments of a design, computed once for each basis."""

from __future__ import annotations

from functools import lru_cache

from dpfda._typing import Floats
from dpfda.basis.basis import Basis


@lru_cache(maxsize=16)
def uniform_moments(basis: Basis) -> Floats:
    """The moments of a uniform design, by quadrature: public."""
    points, weights = basis.quadrature()
    means: Floats = weights @ basis.moment_features(points)
    means.flags.writeable = False
    return means


@lru_cache(maxsize=16)
def moment_bounds(basis: Basis) -> tuple[Floats, float]:
    """`Basis.moment_bounds`, kept."""
    weights, radius = basis.moment_bounds()
    weights.flags.writeable = False
    return weights, radius
