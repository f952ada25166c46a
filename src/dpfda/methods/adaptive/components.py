"""All components of one function's prior against a measurement of it, at the cost of a few.

A component's covariance is level e_0 e_0' + slope e_1 e_1' + bend S, and few shapes S occur. With rows S rows' = Q V Q'
for every shape, a measurement y = rows theta + N(0, I) has the covariance T = D + U diag(level, slope) U' in the directions
Q: D = I + bend V and U = Q' of the first two columns of rows. So sums over directions, and matrices of size two, do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats, Integers
from dpfda.methods.adaptive.prior import ScaledMixture


@dataclass(frozen=True)
class Components:
    """Every component after the measurement; arrays have a row for each of them, in its shape's own directions."""

    mixture: ScaledMixture
    reach: Floats  # (shapes, size, rows): S rows' Q, of shapes that a component has
    loose: Floats  # D^-1
    first: Floats  # D^-1 U, the level's column
    second: Floats  # ... the slope's
    left: Floats  # T^-1 Q' y
    gram: tuple[Floats, Floats, Floats]  # U' D^-1 U: 00, 01, 11
    moved: tuple[Floats, Floats]  # posterior means of level and slope but for the bend's part in them
    log_evidence: Floats

    @classmethod
    def measure(cls, y: Floats, rows: Floats, mixture: ScaledMixture) -> Components:
        """Take in y = rows theta + N(0, I)."""
        columns = np.zeros((3, len(y)))
        columns[: min(2, rows.shape[1])], columns[2] = rows.T[:2], y
        present, begins = mixture.mixture.runs
        shape = np.repeat(np.arange(present.size), np.diff(begins, append=mixture.level.size))
        through = mixture.mixture.shapes[present] @ rows.T
        variances, directions = np.linalg.eigh(rows @ through)
        reach, level, slope = np.zeros((present[-1] + 1, *through.shape[1:])), mixture.level, mixture.slope
        reach[present] = through @ directions
        u, v, z = (columns @ directions).transpose(1, 0, 2)[:, shape]
        widths = 1 + mixture.bend[:, None] * np.maximum(variances, 0.0)[shape]
        loose = 1 / widths
        first, second = u * loose, v * loose
        a, b, c = (first * u).sum(axis=1), (first * v).sum(axis=1), (second * v).sum(axis=1)
        along, across = (first * z).sum(axis=1), (second * z).sum(axis=1)
        determinant = 1 + a * level + c * slope + (a * c - b * b) * level * slope
        on_level = ((1 + c * slope) * along - b * slope * across) / determinant  # U' T^-1 Q' y
        on_slope = ((1 + a * level) * across - b * level * along) / determinant
        moved = level * on_level, slope * on_slope
        apart = z - moved[0][:, None] * u - moved[1][:, None] * v
        left = apart * loose
        misfit = (apart * left).sum(axis=1) + moved[0] * on_level + moved[1] * on_slope
        log_evidence = -0.5 * (misfit + np.log(widths).sum(axis=1) + np.log(determinant))
        return cls(mixture, reach, loose, first, second, left, (a, b, c), moved, log_evidence)

    def average(self, keep: Integers, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Posterior mean and covariance over these components, and their prior covariance, under weights that add to 1."""
        mixture = self.mixture.keep(keep)
        present, begins = mixture.mixture.runs
        prior, bend = mixture.average(weights), mixture.bend
        size, places = len(prior), [slice(*each) for each in zip(begins, [*begins[1:], keep.size], strict=True)]
        means, covariance = np.zeros((keep.size, size)), prior.copy()
        pieces, pulled = self._pieces(keep), bend[:, None] * self.left[keep]
        first, second, scaled = self.first[keep], self.second[keep], weights * bend**2
        on_first = (scaled * pieces.inner[0])[:, None] * first + (scaled * pieces.inner[1])[:, None] * second
        on_second = (scaled * pieces.inner[1])[:, None] * first + (scaled * pieces.inner[2])[:, None] * second
        widths = np.add.reduceat(scaled[:, None] * self.loose[keep], begins, axis=0)
        reach = self.reach[present]
        inner = np.zeros((present.size, first.shape[1], first.shape[1]))
        for k, here in enumerate(places):
            means[here] = pulled[here] @ reach[k].T
            inner[k] = first[here].T @ on_first[here] + second[here].T @ on_second[here]
        flat = reach.transpose(1, 0, 2).reshape(size, -1)
        covariance -= (flat * widths.ravel() - (reach @ inner).transpose(1, 0, 2).reshape(size, -1)) @ flat.T
        for j in range(min(2, size)):
            means[:, j] += self.moved[j][keep]
            edge = (weights * bend)[:, None] * (
                pieces.edges[j][0][:, None] * first + pieces.edges[j][1][:, None] * second
            )
            edge = np.add.reduceat(edge, begins, axis=0)
            column = flat @ edge.ravel()
            covariance[j] -= column
            covariance[:, j] -= column
            for k in range(min(2, size)):
                covariance[j, k] -= weights @ pieces.corners[j + k]
        mean = weights @ means
        apart = means - mean
        covariance += (apart.T * weights) @ apart
        return mean, (covariance + covariance.T) / 2, prior

    def _pieces(self, keep: Integers) -> _Pieces:
        """T^-1 = D^-1 - D^-1 U inner U' D^-1; A U' T^-1 in terms of D^-1 U; A U' T^-1 U A, with A = diag(level, slope)."""
        a, b, c = (each[keep] for each in self.gram)
        level, slope = self.mixture.level[keep], self.mixture.slope[keep]
        determinant = 1 + a * level + c * slope + (a * c - b * b) * level * slope
        upper, lower = level * (1 + c * slope) / determinant, slope * (1 + a * level) / determinant
        mixed = -level * slope * b / determinant
        edges = ((upper, mixed), (mixed, lower))
        corners = level * (a * upper + b * mixed), slope * (b * upper + c * mixed), slope * (b * mixed + c * lower)
        return _Pieces((upper, mixed, lower), edges, corners)


@dataclass(frozen=True)
class _Pieces:
    inner: tuple[Floats, Floats, Floats]
    edges: tuple[tuple[Floats, Floats], tuple[Floats, Floats]]
    corners: tuple[Floats, Floats, Floats]
