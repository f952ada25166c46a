"""What the compiled kernels must compute, one curve at a time in plain numpy: the oracle of their tests."""

from __future__ import annotations

import numpy as np

from dpfda.curves.curves import settle_design
from dpfda.silo.prepared import PreparedCurves


def some_curves(rng, n, p, shortest, longest, lengths=None):
    """n curves with lengths in [shortest, longest] and p design entries, the first of them 1."""
    if lengths is None:
        lengths = rng.integers(shortest, longest + 1, n)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    design = np.hstack([np.ones((n, 1)), rng.uniform(-1, 1, (n, p - 1))])
    points = int(offsets[-1])
    return PreparedCurves(rng.random(points), rng.uniform(-1, 1, points), offsets, design)


def changing_curves(rng, n, p, shortest, longest):
    """The same with a design that changes from point to point within two thirds of the curves; the first entry stays 1."""
    curves = some_curves(rng, n, p, shortest, longest)
    steady, counts = np.arange(n) % 3 == 0, np.diff(curves.offsets)
    rows = np.hstack([np.ones((curves.u.size, 1)), rng.uniform(-1, 1, (curves.u.size, p - 1))])
    rows = np.where(np.repeat(steady, counts)[:, None], np.repeat(curves.design, counts, axis=0), rows)
    return PreparedCurves(curves.u, curves.y, curves.offsets, *settle_design(curves.design, rows, curves.offsets))


def pieces(curves):
    """(u, y, one design vector for each point) of every curve."""
    bounds = zip(curves.offsets[:-1], curves.offsets[1:], strict=True)
    return [(curves.u[a:b], curves.y[a:b], curves.point_design[a:b]) for a, b in bounds]


@np.errstate(all="ignore")
def gradients(curves, basis, iterate):
    """(G (x) Phi(x)) {G' B Phi(x) - y}, averaged over the points of a curve; zero without points."""
    rows = []
    for u, y, design in pieces(curves):
        features = basis.evaluate_unit(u)
        residuals = ((design @ iterate) * features).sum(axis=1) - y
        rows.append(((design * residuals[:, None]).T @ features / max(len(u), 1)).ravel())
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
