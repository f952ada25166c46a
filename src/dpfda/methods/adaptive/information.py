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
from dpfda.methods.adaptive.shape import smooth_variances


@dataclass(frozen=True)
class Information:
    """B, its parts by degree of x (for errors of the covariates' law), and one-sd errors of the design and of clipping."""

    matrix: Floats  # (d r, d L)
    degrees: Floats  # (DEGREES, r, L)
    errors: Floats  # (ways, r, L)
    law: CovariateLaw
    filled: float

    @property
    def shape(self) -> tuple[int, int]:
        """Functions of Phi and of F."""
        return int(self.degrees.shape[1]), int(self.degrees.shape[2])

    @cached_property
    def covariance_parts(self) -> tuple[Floats, Floats]:
        """Covariances of one curve's centred gradient: from independent noise of size 1, from a smooth curve of size 1."""
        r, _ = self.shape
        gram, average = self.degrees[0][:, :r], self.filled * self.law.average
        return np.kron(average, gram), np.kron(average, (gram * smooth_variances(r)) @ gram.T)

    @cached_property
    def _stacked(self) -> tuple[Floats, Floats]:
        """Errors next to each other, and on top of each other."""
        r, longer = self.shape
        errors = self.errors.transpose(1, 0, 2)
        return errors.reshape(r, -1), errors.reshape(-1, longer)

    def gram(self) -> Floats:
        """E[G G^T (x) Phi Phi^T]."""
        r, longer = self.shape
        d = self.law.columns
        return np.asarray(self.matrix.reshape(d * r, d, longer)[:, :, :r].reshape(d * r, d * r))

    def doubt(self, second: Floats) -> Floats:
        """Covariance of (B_true - B) delta for displacements delta with these second moments."""
        r, longer = self.shape
        d, law = self.law.columns, self.law
        if d == 1:
            wide, tall = self._stacked
            return np.asarray(self.filled**2 * ((tall @ second).reshape(r, -1) @ wide.T))
        blocks = second.reshape(d, longer, d, longer)
        average = law.products[0]
        mixed = np.einsum("ja,abkc,lk->jblc", average, blocks.transpose(0, 1, 2, 3), average, optimize=True)
        found = np.zeros((d, r, d, r))
        found += _sandwich(self.errors, mixed)
        own = constants.COLUMN_ERROR**2 * (law.products[0] ** 2) * (d > 1)
        for j in range(d):
            for k in range(d):
                variances = law.variances[:, j, k].copy()
                variances[0] += own[j, k]
                if not variances.any():
                    continue
                roots = np.sqrt(variances)[:, None, None] * self.degrees
                found[j, :, j, :] += np.einsum("qra,ab,qsb->rs", roots, blocks[k, :, k, :], roots, optimize=True)
        return np.asarray(self.filled**2 * found.reshape(d * r, d * r))


def _sandwich(errors: Floats, blocks: Floats) -> Floats:
    """sum_k E_k X_jl E_k^T for all blocks."""
    half = np.einsum("kra,jalb->kjrlb", errors, blocks, optimize=True)
    return np.asarray(np.einsum("kjrlb,ksb->jrls", half, errors, optimize=True))


def build_information(basis: Basis, longer: Basis, design: Design, law: CovariateLaw, filled: float) -> Information:
    """B for a design, a law of the covariates and a share of curves that have points."""
    phi, functions, degrees, products = _evaluate(basis, longer, design.nodes.u.tobytes())
    weighted = phi * design.mass[:, None]
    by_degree = np.stack([(weighted * degrees[:, [q]]).T @ functions for q in range(degrees.shape[1])])
    d, r, size = law.columns, basis.size, longer.size
    matrix = np.einsum("qjk,qrl->jrkl", law.products, by_degree).reshape(d * r, d * size)
    errors = np.concatenate([design.directions, _list_waves(design)]) @ products
    return Information(filled * matrix, by_degree, errors.reshape(-1, r, size), law, filled)


@lru_cache(maxsize=16)
def _evaluate(basis: Basis, longer: Basis, nodes: bytes) -> tuple[Floats, Floats, Floats, Floats]:
    """Phi, F, degrees and the products of Phi and F at the nodes."""
    u = np.frombuffer(nodes)
    phi, functions = basis.evaluate_unit(u), longer.evaluate_unit(u)
    return phi, functions, evaluate_degrees(u), (phi[:, :, None] * functions[:, None, :]).reshape(len(phi), -1)


def _list_waves(design: Design) -> Floats:
    """Clipping may weigh points differently along x: one sd of each wave, as masses."""
    waves = np.arange(constants.CLIP_WAVES)
    size = constants.CLIP_ERROR * np.where(waves == 0, 1.0, math.sqrt(2)) * constants.CLIP_WAVE_DECAY**waves
    return np.asarray((np.cos(np.multiply.outer(waves, design.nodes.angle)) * size[:, None]) * design.mass)
