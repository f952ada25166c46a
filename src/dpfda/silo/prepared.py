"""Curves in the units of a plan, and their gradients; the mean is the case of the design vector 1.

Everything here still belongs to single curves: nothing of it may leave a silo before `privacy/` has bounded it, summed
it and added noise. Silos compute gradients by `kernels/`; `curve_gradients` is the plain formula that those are held
against, by tests and by the auditor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.curves.curves import Curves, find_changes, settle_design
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.transforms import apply_transform

_CHUNK_POINTS = 1 << 17


@dataclass(frozen=True)
class PreparedCurves:
    """Curves in the units of the algorithm: u in [0, 1], y clamped, transformed and scaled, design clamped, bad points gone.

    | curve | what becomes of it |
    |---|---|
    | a point with x outside the domain | the point is dropped |
    | y outside y_bounds | clamped to the nearer bound, before the transform if there is one |
    | a design entry outside design_bounds | clamped to the nearer bound |
    | no point left | stays, its design set to zero: it contributes zero to every gradient, moment and product |

    With `rows`, each point has a design vector of its own. `design` then holds that of curves within which it does not
    change, and zeros for the others (`changes`); without `rows` it does not change within any.
    `weights` are what curves weigh, within [0, 1], by the points that are left; without, each weighs 1.
    """

    u: Floats
    y: Floats
    offsets: NDArray[np.int64]
    design: Floats
    rows: Floats | None = None
    weights: Floats | None = None

    @property
    def n(self) -> int:
        return self.offsets.size - 1

    def batch(self, positions: range) -> PreparedCurves:
        """The curves at consecutive positions."""
        offsets = self.offsets[positions.start : positions.stop + 1]
        points = slice(int(offsets[0]), int(offsets[-1]))
        design = self.design[positions.start : positions.stop]
        rows = None if self.rows is None else self.rows[points]
        weights = None if self.weights is None else self.weights[positions.start : positions.stop]
        return PreparedCurves(self.u[points], self.y[points], offsets - offsets[0], design, rows, weights)

    @property
    def point_design(self) -> Floats:
        """The design vector of every point."""
        return np.repeat(self.design, np.diff(self.offsets), axis=0) if self.rows is None else self.rows

    @property
    def changes(self) -> NDArray[np.bool_]:
        """Within which curves the design changes, bit by bit."""
        return np.zeros(self.n, dtype=np.bool_) if self.rows is None else find_changes(self.rows, self.offsets)

    def chunks(self) -> Iterator[PreparedCurves]:
        """Consecutive batches of bounded size, so that working memory does not grow with n."""
        start = 0
        while start < self.n:
            limit = int(self.offsets[start]) + _CHUNK_POINTS
            stop = max(start + 1, int(np.searchsorted(self.offsets, limit, side="right")) - 1)
            yield self.batch(range(start, stop))
            start = stop


def prepare(curves: Curves, basis: Basis, scaling: Scaling) -> PreparedCurves:
    """Apply the public maps of the plan, curve by curve."""
    return prepare_batch(curves, range(curves.n), basis, scaling)


def prepare_batch(curves: Curves, positions: range, basis: Basis, scaling: Scaling) -> PreparedCurves:
    """The curves at consecutive positions under the public maps of the plan; nothing else of `curves` is read."""
    places = curves.offsets[positions.start : positions.stop + 1]
    points, offsets = slice(int(places[0]), int(places[-1])), np.asarray(places - places[0])
    x, y = np.asarray(curves.x[points]), np.asarray(curves.y[points])
    low, high = basis.domain
    keep = (x >= low) & (x <= high)
    if not keep.all():
        offsets = np.concatenate([[0], np.cumsum(keep)])[offsets]
        x, y = x[keep], y[keep]
    u = x - low
    u /= high - low
    y = apply_transform(scaling.transform, np.clip(y, *scaling.y_bounds))
    y -= scaling.y_shift
    y /= scaling.y_scale
    design = _scale_design(curves.design[positions.start : positions.stop], scaling)
    counts = np.diff(offsets)
    design[counts == 0] = 0.0
    weights = None if scaling.visit_cap is None else weigh_counts(counts, scaling.visit_cap)
    if curves.rows is None:
        return PreparedCurves(u, y, offsets, design, weights=weights)
    rows = np.asarray(curves.rows[points])
    scaled = _scale_design(rows if keep.all() else rows[keep], scaling)
    return PreparedCurves(u, y, offsets, *settle_design(design, scaled, offsets), weights)


def weigh_counts(counts: NDArray[np.int64], visit_cap: int) -> Floats:
    """min(m, cap) / cap for curves of m points: between 0 and 1, one quotient for each curve."""
    return np.minimum(counts, visit_cap) / float(visit_cap)


def weigh_long_curve(curves: Curves, position: int, basis: Basis, scaling: Scaling, most: int) -> float:
    """The weight of one curve, whose points in the domain are counted piece by piece."""
    if scaling.visit_cap is None:
        return 1.0
    start, stop = int(curves.offsets[position]), int(curves.offsets[position + 1])
    low, high = basis.domain
    pieces = (np.asarray(curves.x[first : min(first + most, stop)]) for first in range(start, stop, most))
    count = sum(int(((x >= low) & (x <= high)).sum()) for x in pieces)
    return float(weigh_counts(np.array([count]), scaling.visit_cap)[0])


def _scale_design(design: Floats, scaling: Scaling) -> Floats:
    """Design vectors within their bounds, in the units of the plan; entry by entry."""
    bounds = np.asarray(scaling.design_bounds)
    scaled = np.clip(design, bounds[:, 0], bounds[:, 1])
    scaled -= np.asarray(scaling.design_shift)
    scaled /= np.asarray(scaling.design_scale)
    return scaled


def prepare_pieces(
    curves: Curves, position: int, basis: Basis, scaling: Scaling, most: int
) -> Iterator[tuple[slice, PreparedCurves]]:
    """One curve in pieces of at most `most` points as they are, and where these are; each prepared like a whole curve."""
    start, stop = int(curves.offsets[position]), int(curves.offsets[position + 1])
    for first in range(start, stop, most):
        here = slice(first, min(first + most, stop))
        arrays = (
            curves.x[here],
            curves.y[here],
            np.array([0, here.stop - first]),
            curves.design[position : position + 1],
        )
        rows = None if curves.rows is None else curves.rows[here]
        yield here, prepare_batch(Curves.of_checked_arrays(*arrays, rows=rows), range(1), basis, scaling)


@np.errstate(over="ignore", invalid="ignore")  # rows that overflow become zero; a warning would depend on the data
def curve_gradients(curves: PreparedCurves, basis: Basis, iterate: Floats) -> Floats:
    """Gradients g_i(B) = (w_i/m_i) sum_j (G_ij (x) Phi(x_ij)) {G_ij' B Phi(x_ij) - y_ij}, one row of (d+1) r per curve."""
    gradients = _plain_gradients(curves, basis, iterate)
    return gradients if curves.weights is None else gradients * curves.weights[:, None]


def _plain_gradients(curves: PreparedCurves, basis: Basis, iterate: Floats) -> Floats:
    features = basis.evaluate_unit(curves.u)
    if curves.rows is not None:
        fitted = np.einsum("jl,jl->j", features, rowwise_product(curves.rows, iterate))
        scores = (curves.rows * (fitted - curves.y)[:, None])[:, :, None] * features[:, None, :]
        return mean_per_curve(scores.reshape(len(scores), iterate.size), curves.offsets)
    counts = np.diff(curves.offsets)
    owner = np.repeat(np.arange(curves.n), counts)
    slopes = rowwise_product(curves.design, iterate)
    fitted = np.einsum("jl,jl->j", features, slopes[owner])
    scores = mean_per_curve(features * (fitted - curves.y)[:, None], curves.offsets)
    return (curves.design[:, :, None] * scores[:, None, :]).reshape(curves.n, -1)


def rowwise_product(rows: Floats, matrix: Floats) -> Floats:
    """rows @ matrix, added up column by column: the bits of a row depend on that row only.

    A BLAS product may add in another order when another row's curve is longer or shorter, and an iterate that makes terms
    cancel would blow that difference up: a change of one curve would then move the contributions of others.
    """
    product = np.zeros((len(rows), matrix.shape[1]))
    for column, values in zip(rows.T, matrix, strict=True):
        product += column[:, None] * values
    return product


def mean_per_curve(values: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Average the rows of each curve; an empty curve gives zero."""
    counts = np.diff(offsets)
    filled = counts > 0
    means = np.zeros((counts.size, values.shape[1]))
    if filled.any():
        means[filled] = np.add.reduceat(values, offsets[:-1][filled], axis=0) / counts[filled, None]
    return means
