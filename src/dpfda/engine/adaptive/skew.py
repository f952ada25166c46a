"""What clipping takes from a skewed law: the mean of the rest, measured along a few directions and given back.

Clipped gradients vanish at a centre b_c that is not the mean where the curves are skewed. There the mean of what was
clipped off is W^{-1/2} A (b_c - b*), so a release of it along the directions W^{-1/2} A e_j tells b_c - b*. Its noise is
large, and most laws are hardly skewed: a prior of unknown size, chosen by the measurement, keeps small values out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpfda.engine.adaptive.evidence import Evidence
from dpfda.engine.adaptive.posterior import mix_sizes

Floats = NDArray[np.float64]

_SIZES = np.exp(np.linspace(math.log(0.003), math.log(1.0), 16))  # sd of the shift of the level, in radii


def rest_directions(information: Floats, whitener: Floats, count: int) -> Floats:
    """Orthonormal rows that span W^{-1/2} A e_j, j < count: where shifts of the first coefficients show."""
    directions, _ = np.linalg.qr(whitener @ information[:, :count])
    return np.ascontiguousarray(directions.T)


def clipping_shift(
    evidence: Sequence[Evidence], information: Floats, centre: Floats, decay: Floats
) -> tuple[Floats, Floats] | None:
    """b_c - b* and its covariance, from all releases of the rest; None where there are none."""
    measured = [item for item in evidence if item.rest is not None]
    if not measured:
        return None
    count = len(measured[0].rest_directions)
    precision, weighted, unit = np.zeros((count, count)), np.zeros(count), 0.0
    for item in measured:
        assert item.rest is not None
        whitened = np.linalg.solve(item.coordinates.root, information)
        near = item.rest_directions @ (np.eye(len(centre)) - item.jacobian(0.0)) @ whitened
        value = item.rest - near @ (item.iterate - centre)
        matrix = item.rest_directions @ whitened[:, :count]
        precision += matrix.T @ matrix / item.rest_sd**2
        weighted += matrix.T @ value / item.rest_sd**2
        unit = max(unit, item.radius / abs(float(matrix[0, 0])))
    import os
    null=float(os.environ.get('NULL','.5'))
    top=float(os.environ.get('TOP','.15')); sizes=np.exp(np.linspace(math.log(.004),math.log(top),16))*unit
    odds=np.full(16,(1-null)/15); odds[0]=null
    fit = mix_sizes(precision, weighted, [size * decay[:count] for size in sizes],odds)
    shift, covariance = np.zeros(len(centre)), np.zeros((len(centre),) * 2)
    shift[:count], covariance[:count, :count] = fit.mean, fit.covariance
    return shift, covariance
