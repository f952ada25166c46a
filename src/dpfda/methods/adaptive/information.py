"""What a mean gradient says of the coefficients: B = E[G G^T (x) Phi F^T], and how wrong B may be.

Phi are the functions that gradients are taken in, F the longer list of functions that estimates live in; both start alike.
At the iterate theta_t the mean gradient is B (theta - theta_t), whatever the curve does beyond Phi.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.covariates import CovariateLaw, evaluate_degrees
from dpfda.methods.adaptive.design import Design
from dpfda.methods.adaptive.matrices import kron
from dpfda.methods.adaptive.shape import smooth_variances
from dpfda.methods.adaptive.weights import MeanWeight


@dataclass(frozen=True)
class Information:
    """B; E[Phi F^T T_q] for each degree of x; and one-sd errors of B: of the design, of clipping, of covariates' means.

    What may be wrong with the products around those means is added from `law`.
    """

    matrix: Floats  # (d r, d L)
    degrees: Floats  # (DEGREES, r, L)
    errors: Floats  # (ways, d r, d L)
    law: CovariateLaw
    weight: MeanWeight

    @property
    def shape(self) -> tuple[int, int]:
        """Functions of Phi and of F."""
        return int(self.degrees.shape[1]), int(self.degrees.shape[2])

    @cached_property
    def covariance_parts(self) -> tuple[Floats, Floats]:
        """Covariances of one curve's centred gradient: from independent noise of size 1, from a smooth curve of size 1."""
        r, _ = self.shape
        gram, average = self.degrees[0][:, :r], self.weight.square * self.law.average
        ratio = self.weight.square / self.weight.mean  # B has E[w], the square of a gradient has E[w^2]
        return ratio * self.gram(), kron(average, (gram * smooth_variances(r)) @ gram.T)

    @cached_property
    def _stacked(self) -> tuple[Floats, Floats]:
        """Errors next to each other, and on top of each other."""
        errors = self.errors.transpose(1, 0, 2)
        return errors.reshape(errors.shape[0], -1), errors.reshape(-1, errors.shape[2])

    def gram(self) -> Floats:
        """E[G G^T (x) Phi Phi^T]."""
        r, longer = self.shape
        d = self.law.columns
        return np.asarray(self.matrix.reshape(d * r, d, longer)[:, :, :r].reshape(d * r, d * r))

    def doubt(self, second: Floats) -> Floats:
        """Covariance of (B_true - B) delta for displacements delta with these second moments."""
        r, longer = self.shape
        d = self.law.columns
        wide, tall = self._stacked
        found = (tall @ second).reshape(d * r, -1) @ wide.T
        if d > 1:
            found = found + self._doubt_products(second.reshape(d, longer, d, longer)).reshape(d * r, d * r)
        return np.asarray(self.weight.mean**2 * found)

    def doubt_displaced(self, covariance: Floats, means: Floats) -> Floats:
        """... for displacements with this covariance around each of the means (rows)."""
        r, _ = self.shape
        if self.law.columns > 1:
            return np.array([self.doubt(covariance + np.outer(each, each)) for each in means])
        _, tall = self._stacked
        along = (means @ tall.T).reshape(len(means), r, -1)
        return np.asarray(self.doubt(covariance) + self.weight.mean**2 * (along @ along.swapaxes(1, 2)))

    def _doubt_products(self, second: Floats) -> Floats:
        """... of what may be wrong with products around their means: how they change along x, and their averages."""
        r, _ = self.shape
        d, law = self.law.columns, self.law
        found, root = np.zeros((d, r, d, r)), law.find_root()
        inner, turned = np.zeros((d, r, r)), np.einsum("ja,jbkc,ka->abc", root, second, root, optimize=True)
        every = self.degrees[0] @ turned @ self.degrees[0].T  # of every principal direction
        for j in range(d):
            inner[j] = np.tensordot(law.loose[j] ** 2 + constants.COLUMN_ERROR**2 / d, every, 1)
            for k in range(d):
                ways = np.tensordot(law.within_roots[j, k].T, self.degrees, 1)
                found[j, :, j, :] += np.tensordot(ways @ second[k, :, k, :], ways, ((0, 2), (0, 2)))
        return np.asarray(found + np.einsum("ja,abc,ka->jbkc", root, inner, root, optimize=True))


def build_information(
    basis: Basis, longer: Basis, design: Design, law: CovariateLaw, weight: MeanWeight
) -> Information:
    """B for a design, a law of the covariates and the mean weight of a curve."""
    phi, functions, degrees, products = _evaluate(basis, longer, design.nodes.u.tobytes())
    weighted = phi * design.mass[:, None]
    by_degree = np.stack([(weighted * degrees[:, [q]]).T @ functions for q in range(degrees.shape[1])])
    d, r, size = law.columns, basis.size, longer.size
    ways = np.concatenate([design.directions, _list_waves(design, weight.doubt)])
    if d == 1 and law.units.intercept:
        return Information(weight.mean * by_degree[0], by_degree, (ways @ products).reshape(-1, r, size), law, weight)
    moments = law.moments_at(design.nodes.u)
    changes = _list_changes(design, law)  # (ways, nodes, d, d)
    changes = np.concatenate([ways[:, :, None, None] * moments, changes * design.mass[:, None, None]])
    moved = np.concatenate([(design.mass[:, None, None] * moments)[None], changes])
    found = moved.transpose(0, 2, 3, 1).reshape(-1, len(phi)) @ products
    found = found.reshape(-1, d, d, r, size).transpose(0, 1, 3, 2, 4).reshape(-1, d * r, d * size)
    return Information(weight.mean * found[0], by_degree, found[1:], law, weight)


def _list_changes(design: Design, law: CovariateLaw) -> Floats:
    """What one-sd errors of the covariates' means do to E[g g^T | x] at the nodes."""
    means, degrees = law.means_at(design.nodes.u), evaluate_degrees(design.nodes.u)
    found = []
    for k in range(int(law.units.intercept), law.columns if law.units.intercept else 0):
        for error in (degrees @ law.mean_roots[k]).T:
            change = np.zeros((len(means), law.columns, law.columns))
            change[:, k, :] += error[:, None] * means
            change[:, :, k] += error[:, None] * means
            found.append(change)
    return np.array(found).reshape(-1, len(means), law.columns, law.columns)


@lru_cache(maxsize=16)
def _evaluate(basis: Basis, longer: Basis, nodes: bytes) -> tuple[Floats, Floats, Floats, Floats]:
    """Phi, F, degrees and the products of Phi and F at the nodes."""
    u = np.frombuffer(nodes)
    phi, functions = basis.evaluate_unit(u), longer.evaluate_unit(u)
    return phi, functions, evaluate_degrees(u), (phi[:, :, None] * functions[:, None, :]).reshape(len(phi), -1)


def _list_waves(design: Design, doubt: float) -> Floats:
    """Clipping may weigh points differently along x: one sd of each wave, as masses. `doubt` is of the first: of all B."""
    waves = np.arange(constants.CLIP_WAVES)
    size = constants.CLIP_ERROR * np.where(waves == 0, 1.0, math.sqrt(2)) * constants.CLIP_WAVE_DECAY**waves
    size[0] = math.hypot(size[0], doubt)
    return np.asarray((np.cos(np.multiply.outer(waves, design.nodes.angle)) * size[:, None]) * design.mass)
