from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda.basis.basis import Basis, make_basis

bases = st.builds(
    lambda name, size, low, width, factor: make_basis(name, size, (low, low + width), factor),
    st.sampled_from(["fourier", "cosine", "fourier-extension", "free-ends", "bspline"]),
    st.integers(1, 12),
    st.floats(-100, 100),
    st.floats(0.1, 100),
    st.floats(1.1, 3),
)
points = st.lists(st.floats(0, 1), min_size=1, max_size=8).map(np.array)


@given(bases, points)
@settings(max_examples=100, deadline=None)
def test_functions_are_bounded(basis: Basis, u: np.ndarray) -> None:
    low, high = basis.domain
    phi = basis.evaluate(low + u * (high - low))
    assert phi.shape == (u.size, basis.size)
    assert np.allclose(phi[:, 0], 1, rtol=0, atol=1e-14)
    assert np.all(np.abs(phi) <= basis.sup() * (1 + 1e-14))
    assert np.all((phi**2).sum(axis=1) <= basis.leverage() * (1 + 1e-14))


@given(bases, points)
@settings(max_examples=100, deadline=None)
def test_gram_from_moments_is_the_mean_of_outer_products(basis: Basis, u: np.ndarray) -> None:
    phi = basis.evaluate_unit(u)
    gram = basis.gram_from_moments(basis.moment_features(u).mean(axis=0))
    assert np.allclose(gram, phi.T @ phi / u.size, atol=1e-12)


@given(bases, st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_roughness_is_symmetric_and_positive(basis: Basis, order: int) -> None:
    matrix = basis.roughness(order)
    assert np.allclose(matrix, matrix.T, rtol=1e-12)
    assert np.linalg.eigvalsh(matrix).min() >= -1e-10 * max(1.0, np.abs(matrix).max())
    if order:
        assert np.allclose(matrix[0], 0, rtol=0, atol=1e-12 * max(1.0, np.abs(matrix).max()))


@given(bases, st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_a_smaller_basis_is_the_beginning_of_a_larger_one(basis: Basis, size: int) -> None:
    if basis.name == "bspline":  # other knots
        return
    u = np.linspace(0, 1, 7)
    shared = min(size, basis.size)
    other = basis.resize(size)
    assert np.array_equal(basis.evaluate_unit(u)[:, :shared], other.evaluate_unit(u)[:, :shared])
    ours, theirs = (one.roughness()[:shared, :shared] for one in (basis, other))
    assert np.allclose(ours, theirs, rtol=1e-13, atol=1e-13 * np.abs(ours).max())
