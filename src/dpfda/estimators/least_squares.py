"""Non-private least squares: the yardstick for simulations and for the owner of the data. Never release it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfda.basis.basis import Basis
from dpfda.curves.curves import Curves
from dpfda.protocol.scaling import Scaling
from dpfda.silo.prepared import mean_per_curve, prepare


def least_squares(curves: Curves, basis: Basis, scaling: Scaling) -> NDArray[np.float64]:
    """Minimise sum_i (1/m_i) sum_j {y_ij - G_i' B Phi(x_ij)}^2 over B of shape (d+1, r). NOT PRIVATE."""
    prepared = prepare(curves, basis, scaling)
    columns, r = prepared.design.shape[1], basis.size
    normal, moment = np.zeros((columns * r, columns * r)), np.zeros(columns * r)
    for chunk in prepared.chunks():
        features = basis.evaluate_unit(chunk.u)
        squares = (features[:, :, None] * features[:, None, :]).reshape(len(features), -1)
        gram = mean_per_curve(squares, chunk.offsets).reshape(-1, r, r)
        score = mean_per_curve(features * chunk.y[:, None], chunk.offsets)
        normal += np.einsum("ia,ib,ilk->albk", chunk.design, chunk.design, gram).reshape(normal.shape)
        moment += np.einsum("ia,il->al", chunk.design, score).ravel()
    solution: NDArray[np.float64] = np.linalg.lstsq(normal, moment, rcond=None)[0]
    return solution.reshape(columns, r)
