"""What the compiled kernels must compute, one curve at a time in plain numpy: the oracle of their tests."""

from __future__ import annotations

import numpy as np

from dpfda.silo.prepared import PreparedCurves


def some_curves(rng, n, p, shortest, longest, lengths=None):
    """n curves with lengths in [shortest, longest] and p design entries, the first of them 1."""
    if lengths is None:
        lengths = rng.integers(shortest, longest + 1, n)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    design = np.hstack([np.ones((n, 1)), rng.uniform(-1, 1, (n, p - 1))])
    points = int(offsets[-1])
    return PreparedCurves(rng.random(points), rng.uniform(-1, 1, points), offsets, design)


def pieces(curves):
    """(u, y, design vector) of every curve."""
    bounds = zip(curves.offsets[:-1], curves.offsets[1:], curves.design, strict=True)
    return [(curves.u[first:last], curves.y[first:last], design) for first, last, design in bounds]


@np.errstate(all="ignore")
def gradients(curves, basis, iterate):
    """Phi(x) {G' B Phi(x) - y}, averaged over the points of a curve, times G; zero without points."""
    rows = []
    for u, y, design in pieces(curves):
        features = basis.evaluate_unit(u)
        residuals = features @ (design @ iterate) - y
        rows.append(np.outer(design, features.T @ residuals / max(len(u), 1)).ravel())
    return finite_rows(np.array(rows).reshape(curves.n, iterate.size))


def moments(curves, basis, centre):
    """Means of the moment features, minus the centre; zero without points."""
    rows = []
    for u, _, _ in pieces(curves):
        features = basis.moment_features(u)
        rows.append((features - centre).mean(axis=0) if len(u) else np.zeros(centre.size))
    return finite_rows(np.array(rows).reshape(curves.n, centre.size))


def finite_rows(rows):
    """Rows with an entry that is not finite become zero."""
    return np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)


def in_ball(rows, radius):
    """Rows scaled into a ball."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.minimum(1.0, radius / np.where(lengths > 0, lengths, 1.0))


def octaves(lengths):
    """Which cell of the histograms of lengths a length is in: one below 2^-6, one for each octave, one from 2^14 on."""
    return np.array([0 if x < 2**-6 else min(int(np.frexp(x)[1]) + 6, 21) if np.isfinite(x) else 21 for x in lengths])
