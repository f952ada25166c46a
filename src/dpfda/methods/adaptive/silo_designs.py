"""Silos whose designs differ: each has masses of its own, shrunk towards those of all.

A silo's masses are those that all silos have in common plus a deviation, smooth or with atoms, of a size that is not known.
Each silo is compared with what the others predict of it. How common each size is among silos is learnt from all of them, and
a silo's own size is averaged by evidence: one silo may have another design than all others, or all may differ a little.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.design import (
    Design,
    Nodes,
    Parts,
    Sizes,
    find_variance,
    finish_design,
    make_nodes,
    tabulate_parts,
)
from dpfda.methods.adaptive.matrices import inverse
from dpfda.methods.adaptive.pooling import Pooled

_SIZES = np.array(list(itertools.product((0.0, *constants.SMOOTH_SIZES), constants.OWN_ATOMS)))  # alike is the first


def fit_own_designs(
    basis: Basis,
    pooled: Pooled,
    by_silo: Mapping[str, Pooled],
    visits: tuple[float, ...] = (),
    trust: Mapping[str, float] | None = None,
) -> dict[str, Design]:
    """Every silo's own design; none where all may well have one. Silos that are not trusted tell less of the others."""
    nodes, parts = make_nodes(visits), tabulate_parts(basis, visits)
    uniform = parts.features @ nodes.uniform
    sizes = Sizes.weigh(parts, pooled.values - uniform, find_variance(pooled))
    usual = sizes.weights @ sizes.sizes**2  # variances of the smooth part and of the atoms that all have in common
    values = np.array([moments.values - uniform for moments in by_silo.values()])
    variances = np.array([find_variance(moments) for moments in by_silo.values()])
    trusted = np.array([(trust or {}).get(name, 1.0) for name in by_silo])
    weights = trusted / variances.mean(axis=1)
    silos = [_Silo.of(parts, usual, values, variances, weights, place) for place in range(len(values))]
    common, found = _learn_sizes(np.array([silo.log_evidence for silo in silos]))
    if found < constants.DESIGNS_DIFFER:
        return {}
    return {
        name: finish_design(basis, nodes, *silo.find_masses(nodes, parts, usual, common))
        for name, silo in zip(by_silo, silos, strict=True)
    }


@dataclass(frozen=True)
class _Silo:
    """A silo's moments and those of the others, around a uniform design; the evidence for every size of its deviation."""

    value: Floats
    others: Floats
    weight: (
        Floats  # what moments of the others are multiplied by for the common masses, before they are spread over nodes
    )
    totals: Floats  # (sizes, moments, moments): covariances of the silo's moments around what the others predict
    log_evidence: Floats  # (sizes,)

    @classmethod
    def of(cls, parts: Parts, usual: Floats, values: Floats, variances: Floats, weights: Floats, place: int) -> _Silo:
        left = weights.copy()
        left[place] = 0.0
        left /= left.sum()
        others, variance = left @ values, left**2 @ variances
        spread = np.tensordot(usual, parts.moments, 1)
        weight = inverse(spread + np.diag(variance))
        open_now = spread - spread @ weight @ spread
        apart = values[place] - spread @ weight @ others
        totals = np.tensordot(_SIZES**2, parts.moments, 1) + open_now + np.diag(variances[place])
        misfit = (np.linalg.solve(totals, np.broadcast_to(apart, totals.shape[:2])[..., None])[..., 0] * apart).sum(
            axis=1
        )
        return cls(values[place], others, weight, totals, -0.5 * (misfit + np.linalg.slogdet(totals)[1]))

    def find_masses(self, nodes: Nodes, parts: Parts, usual: Floats, common: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance of its masses, averaged over sizes that are so `common`."""
        odds = common * np.exp(self.log_evidence - self.log_evidence.max())
        odds /= odds.sum()
        keep = np.flatnonzero(odds > constants.NEGLIGIBLE_PART)
        kept = odds[keep] / odds[keep].sum()
        reach = usual[0] * parts.reach[0] + usual[1] * parts.reach[1]  # (moments, nodes)
        centre = nodes.uniform + reach.T @ self.weight @ self.others
        left = usual[0] * nodes.smooth + usual[1] * nodes.atoms - reach.T @ self.weight @ reach
        apart = self.value - parts.features @ (centre - nodes.uniform)
        means, covariance = np.zeros((keep.size, centre.size)), np.zeros_like(left)
        for k, size in enumerate(keep):
            smooth, atoms = _SIZES[size] ** 2
            prior = left + smooth * nodes.smooth + atoms * nodes.atoms
            seen = parts.features @ prior
            gain = np.linalg.solve(self.totals[size], seen).T
            means[k] = gain @ apart
            covariance += kept[k] * (prior - gain @ seen)
        moved = kept @ means
        means -= moved
        covariance += (means.T * kept) @ means
        return centre + moved, (covariance + covariance.T) / 2


def _learn_sizes(log_evidence: Floats) -> tuple[Floats, float]:
    """How common each size is, from the evidence (silos, sizes); and the log ratio of evidence that silos differ at all."""
    prior = np.full(len(_SIZES), (1 - constants.ONE_DESIGN) / (len(_SIZES) - 1))
    prior[0] = constants.ONE_DESIGN
    likely = np.exp(log_evidence - log_evidence.max(axis=1, keepdims=True))
    common = prior
    for _ in range(constants.SIZE_PASSES):
        own = likely * common
        own /= own.sum(axis=1, keepdims=True)
        common = constants.PRIOR_SILOS * prior + own.sum(axis=0)
        common /= common.sum()
    ratio = np.log(likely @ common) - np.log(np.maximum(likely[:, 0], constants.TINY))
    return common, float(ratio.sum())
