"""Where the points lie: masses on a grid of nodes, from a few released moments, atoms and gaps included.

The information matrix is linear in the masses, so no smooth density is needed: masses are uniform, plus a smooth part, plus
atoms (a baseline visit, scheduled visits), whose sizes are averaged by evidence. Masses cannot be negative. Near a place
where the mass is not clear of its error, data are not believed in: positivity alone would put some there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpfda._blas import one_blas_thread
from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.basis.moments import uniform_moments
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.matrices import invert_lower
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.methods.adaptive.prior import normalise


@dataclass(frozen=True)
class Nodes:
    """Points of [0, 1], denser at the ends, and what is thought of their masses before anything is released."""

    u: Floats
    angle: Floats  # cos(angle) = 1 - 2u: nodes are equidistant in it
    uniform: Floats
    smooth: Floats  # covariance of the smooth part, for size 1
    atoms: Floats  # covariance of the atoms, for size 1


@lru_cache(maxsize=16)
@one_blas_thread()
def make_nodes(visits: tuple[float, ...] = ()) -> Nodes:
    """The grid; public visit times (in [0, 1]) are nodes of their own."""
    steps = (np.arange(constants.DESIGN_NODES) + 0.5) / constants.DESIGN_NODES
    angle = math.pi * np.concatenate([[0.0], steps, [1.0]])
    u = (1 - np.cos(angle)) / 2
    uniform = np.diff(np.concatenate([[0.0], (u[1:] + u[:-1]) / 2, [1.0]]))
    likely = np.full(u.size, constants.ATOM_DENSITY)
    likely[0] = likely[-1] = 1.0  # a first and a last visit are common
    if visits:
        times = np.clip(np.asarray(visits), 0.0, 1.0)
        u, angle = np.concatenate([u, times]), np.concatenate([angle, np.arccos(1 - 2 * times)])
        uniform, likely = np.concatenate([uniform, np.zeros(times.size)]), np.concatenate([likely, np.ones(times.size)])
    waves = np.arange(1, constants.DESIGN_WAVES + 1)
    smooth = uniform[:, None] * np.cos(np.multiply.outer(angle, waves)) / waves
    smooth -= np.outer(uniform, smooth.sum(axis=0))
    return Nodes(u, angle, uniform, smooth @ smooth.T, np.diag(likely) - np.outer(likely, likely) / likely.sum())


@dataclass(frozen=True)
class Design:
    """Masses of the nodes; the truth is `mass` plus N(0, 1) times each of the `directions`.

    `likely` is the mass with what is not clear of its error: other moments than the design's are read with it.
    """

    nodes: Nodes
    mass: Floats
    directions: Floats
    likely: Floats

    def seen_near(self) -> Floats:
        """The mass of points near each node, in units of what a uniform design has there."""
        window = _window(self.nodes)
        return np.asarray((window @ self.mass) / np.maximum(window @ self.nodes.uniform, constants.LEAST_UNIFORM))


def fit_design(basis: Basis, moments: Pooled | None, visits: tuple[float, ...] = ()) -> Design:
    """The posterior of the masses given released moments; a uniform design if there are none."""
    nodes = make_nodes(visits)
    if moments is None:
        return Design(nodes, nodes.uniform, np.zeros((0, nodes.u.size)), nodes.uniform)
    found = _average_sizes(nodes, tabulate_parts(basis, visits), moments.values, find_variance(moments))
    return finish_design(basis, nodes, *found)


def find_variance(moments: Pooled) -> Floats:
    """Of the errors of moments: noise and sampling."""
    return np.asarray(moments.sd**2 + constants.SAMPLING_VARIANCE / moments.n / constants.POINTS_GUESS)


def finish_design(basis: Basis, nodes: Nodes, mass: Floats, left: Floats) -> Design:
    """Masses that are positive, less of them where they are not clear of their errors, from mean and covariance."""
    likely = _keep_positive(mass, left)
    window = _window(nodes)
    near, unsure = window @ likely, ((window @ left) * window).sum(axis=1)
    mass = likely * near**2 / (near**2 + constants.CLEAR**2 * np.maximum(unsure, 0.0) + constants.TINY)
    return Design(nodes, mass, _choose_directions(basis, nodes, left), likely)


@lru_cache(maxsize=16)
def _node_features(basis: Basis, visits: tuple[float, ...]) -> Floats:
    """The moment features of each node, minus those of a uniform design."""
    return np.asarray(basis.moment_features(make_nodes(visits).u) - uniform_moments(basis)).T


@dataclass(frozen=True)
class Parts:
    """The smooth part and the atoms, for size 1: how moments and masses go together, and moments with moments."""

    features: Floats
    reach: tuple[Floats, Floats]  # (moments, nodes)
    moments: Floats  # (2, moments, moments)


@lru_cache(maxsize=16)
@one_blas_thread()
def tabulate_parts(basis: Basis, visits: tuple[float, ...]) -> Parts:
    nodes, features = make_nodes(visits), _node_features(basis, visits)
    reach = features @ nodes.smooth, features @ nodes.atoms
    return Parts(features, reach, np.stack([reach[0] @ features.T, reach[1] @ features.T]))


@dataclass(frozen=True)
class Sizes:
    """Sizes of the smooth part and of the atoms that moments speak for, their weights, and how each whitens moments."""

    sizes: Floats  # (kept, 2)
    weights: Floats
    whiten: Floats  # (kept, moments, moments)
    white: Floats  # (kept, moments)

    @classmethod
    def weigh(cls, parts: Parts, y: Floats, variance: Floats) -> Sizes:
        """By their evidence; `y` are moments around those of a uniform design."""
        sizes = np.array([(s, a) for s in constants.SMOOTH_SIZES for a in constants.ATOM_SIZES])
        factors = np.linalg.cholesky(np.tensordot(sizes**2, parts.moments, 1) + np.diag(variance))
        whiten = invert_lower(factors)
        white = whiten @ y
        odds = -0.5 * np.log(sizes[:, 0] / constants.TYPICAL_SMOOTH) ** 2
        odds -= np.where(sizes[:, 1] > 0, math.log(len(constants.ATOM_SIZES) - 1), 0.0)
        logs = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        weights = normalise(odds - (white**2).sum(axis=1) / 2 - logs)
        keep = weights > constants.NEGLIGIBLE_PART * weights.max()
        return cls(sizes[keep], weights[keep] / weights[keep].sum(), whiten[keep], white[keep])


def _average_sizes(nodes: Nodes, parts: Parts, values: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of the masses, averaged over the sizes of smooth part and atoms."""
    y = values - parts.features @ nodes.uniform
    found = Sizes.weigh(parts, y, variance)
    kept, whiten = found.weights, found.whiten
    smooth, atoms = found.sizes.T**2
    pulled = (found.white[:, None] @ whiten)[:, 0]
    means = nodes.uniform + (smooth[:, None] * pulled) @ parts.reach[0] + (atoms[:, None] * pulled) @ parts.reach[1]
    mass = kept @ means
    apart = means - mass
    rows = whiten.reshape(-1, len(y))

    def inner(weight: Floats) -> Floats:
        return np.asarray((rows * np.repeat(weight, len(y))[:, None]).T @ rows)

    both = inner(kept * smooth * atoms)
    left = (kept @ smooth) * nodes.smooth + (kept @ atoms) * nodes.atoms + (apart.T * kept) @ apart
    left -= parts.reach[0].T @ (inner(kept * smooth**2) @ parts.reach[0] + both @ parts.reach[1])
    left -= parts.reach[1].T @ (both @ parts.reach[0] + inner(kept * atoms**2) @ parts.reach[1])
    return mass, (left + left.T) / 2


def _keep_positive(mass: Floats, covariance: Floats) -> Floats:
    """Condition the masses on zero where they come out negative, a few times; then cut off what is left."""
    zero, found = np.zeros(mass.size, bool), mass
    for _ in range(constants.POSITIVE_PASSES):
        negative = (found < -constants.TINY_MASS) & ~zero
        if not negative.any():
            break
        zero |= negative
        inner = covariance[np.ix_(zero, zero)]
        inner = inner + constants.TINY_MASS * np.trace(inner) / zero.sum() * np.eye(int(zero.sum()))
        found = mass - covariance[:, zero] @ np.linalg.solve(inner, mass[zero])
    found = np.maximum(found, 0.0)
    return np.asarray(found / found.sum())


def _choose_directions(basis: Basis, nodes: Nodes, covariance: Floats) -> Floats:
    """The ways in which the masses may be wrong that matter for smooth curves, largest first."""
    image = _image_of_masses(basis, nodes.u.tobytes())
    values, vectors = np.linalg.eigh(image.T @ covariance @ image)
    keep = values > constants.NEGLIGIBLE_DIRECTION * max(values[-1], constants.TINY)
    along = vectors[:, keep] / np.sqrt(values[keep])
    return np.asarray(constants.POSITIVE_SD * (covariance @ image @ along).T)


@lru_cache(maxsize=16)
@one_blas_thread()
def _image_of_masses(basis: Basis, nodes: bytes) -> Floats:
    """How masses act on E[Phi Phi^T], in the directions that smooth curves open: one column for each of a few numbers."""
    u = np.frombuffer(nodes)
    functions = basis.evaluate_unit(u)
    decay = 1.0 / (1 + np.arange(basis.size)) ** 2
    products = (functions[:, :, None] * (functions * decay)[:, None, :]).reshape(u.size, -1)
    vectors, values, _ = np.linalg.svd(products, full_matrices=False)
    count = min(constants.DESIGN_DIRECTIONS, int((values > constants.NEGLIGIBLE_IMAGE * values[0]).sum()))
    return np.ascontiguousarray(vectors[:, :count] * values[:count])


def _window(nodes: Nodes) -> Floats:
    """Weights of nodes near each node, by distance of their angles."""
    return _make_window(nodes.angle.tobytes())


@lru_cache(maxsize=16)
def _make_window(angles: bytes) -> Floats:
    angle = np.frombuffer(angles)
    return np.asarray(np.exp(-0.5 * (np.subtract.outer(angle, angle) / (math.pi * constants.WINDOW)) ** 2))
