"""Non-private least squares: the yardstick for simulations and for the owner of the data. Never release it.

Weighted normal equations, block by block of points. For a basis made of waves the Gram matrix follows from the sums of
cos(k theta) and sin(k theta), k up to twice the highest frequency (`Basis.gram_from_moments`): cos theta and sin theta once
for each point, then sums of angles. Each doubling of the frequency triples the error: 1e-13 at 30, far below what matters.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.curves.curves import Curves
from dpfda.protocol.scaling import Scaling
from dpfda.silo.prepared import PreparedCurves, prepare

_BLOCK = 1 << 14  # points whose waves are in the cache at once


def least_squares(curves: Curves, basis: Basis, scaling: Scaling) -> NDArray[np.float64]:
    """Minimise sum_i (w_i/m_i) sum_j {y_ij - G_ij' B Phi(x_ij)}^2 over B of shape (d+1, r). NOT PRIVATE.

    The weight w_i of a curve is 1 or, with a visit cap, min(m_i, cap) / cap.
    """
    prepared = prepare(curves, basis, scaling)
    columns, r = prepared.design.shape[1], basis.size
    grams, scores = _sum_waves(prepared, basis) if basis.harmonics >= 0 else _sum_features(prepared, basis)
    rows, others = np.triu_indices(columns)
    normal = np.zeros((columns, r, columns, r))
    normal[rows, :, others, :] = grams
    normal[others, :, rows, :] = grams
    solution = np.linalg.lstsq(normal.reshape(columns * r, -1), scores.ravel(), rcond=None)[0]
    return np.asarray(solution.reshape(columns, r), dtype=np.float64)


def _blocks(prepared: PreparedCurves) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Points u; G_a G_b w/m for each pair a <= b; y G_a w/m: one row for each point, some points at a time."""
    counts = np.diff(prepared.offsets)
    owner = np.repeat(np.arange(prepared.n), counts)
    rows, others = np.triu_indices(prepared.design.shape[1])
    weights = 1 / np.maximum(counts, 1)[:, None]
    if prepared.weights is not None:
        weights = weights * prepared.weights[:, None]
    for start in range(0, prepared.u.size, _BLOCK):
        here = slice(start, start + _BLOCK)
        whose = owner[here]
        design = prepared.design[whose] if prepared.rows is None else prepared.rows[here]
        shared = design * weights[whose]
        yield prepared.u[here], shared[:, rows] * design[:, others], shared * prepared.y[here, None]


def _sum_features(prepared: PreparedCurves, basis: Basis) -> tuple[Floats, Floats]:
    """Sums of Phi Phi' with the weight of each pair of columns, and of y Phi with that of each column."""
    columns = prepared.design.shape[1]
    grams = np.zeros((columns * (columns + 1) // 2, basis.size, basis.size))
    scores = np.zeros((columns, basis.size))
    for u, pairs, values in _blocks(prepared):
        features = basis.evaluate_unit(u)
        for pair, weights in enumerate(pairs.T):
            grams[pair] += (features * weights[:, None]).T @ features
        scores += values.T @ features
    return grams, scores


def _sum_waves(prepared: PreparedCurves, basis: Basis) -> tuple[Floats, Floats]:
    """The same from sums of waves."""
    columns, top, kinds = prepared.design.shape[1], 2 * basis.harmonics, 2 if basis.sines else 1
    pairs_of_columns = columns * (columns + 1) // 2
    sums = np.zeros((kinds, top + 1, pairs_of_columns + columns))
    for u, pairs, values in _blocks(prepared):
        sums += _waves(basis, u, top, kinds) @ np.concatenate([pairs, values], axis=1)
    weights = sums[0, 0, :pairs_of_columns]
    moments = np.moveaxis(sums[:, 1:, :pairs_of_columns], -1, 0).reshape(pairs_of_columns, kinds * top)
    constant = basis.gram_from_moments(np.zeros(kinds * top))
    grams = basis.gram_from_moments(moments) - constant + weights[:, None, None] * constant
    return grams, _scores_of(basis, np.moveaxis(sums[:, : basis.harmonics + 1, pairs_of_columns:], -1, 0))


def _waves(basis: Basis, u: Floats, top: int, kinds: int) -> Floats:
    """cos(k theta) and, if there are two kinds, sin(k theta) at each u, k = 0..top: an array (kinds, top + 1, points)."""
    waves = np.empty((kinds, top + 1, u.size))
    waves[0, 0], waves[1:, 0] = 1.0, 0.0
    if top:
        theta = 2 * np.pi * basis.rate * u
        waves[0, 1] = 1 - 2 * u if basis.rate == 0 else np.cos(theta)  # for the rate see `Basis.rate`
        waves[1:, 1] = np.sin(theta)
    known = 1
    while known < top:  # cos(a + b) = 2 cos(a) cos(b) - cos(a - b), sin(a + b) = 2 cos(a) sin(b) + sin(a - b)
        new = min(known, top - known)
        added = waves[:, known + 1 : known + 1 + new]
        np.multiply(waves[:, 1 : new + 1], 2 * waves[0, known], out=added)
        before = waves[:, known - new : known][:, ::-1]
        added[0] -= before[0]
        added[1:] += before[1:]
        known += new
    return waves


def _scores_of(basis: Basis, products: Floats) -> Floats:
    """Sums of y Phi from those of y cos(k theta) and y sin(k theta), k from 0."""
    mixture = basis.mixture()
    if mixture.size:
        return np.asarray(products[:, 0] @ mixture.T)
    index = np.arange(basis.size)
    frequencies = (index + 1) // 2 if basis.sines else index
    is_sine = (index % 2 == 0) & (index > 0) if basis.sines else np.zeros(basis.size, dtype=bool)
    return np.asarray(products[:, is_sine.astype(np.int64), frequencies] * np.where(index == 0, 1.0, np.sqrt(2.0)))
