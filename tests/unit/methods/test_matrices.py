"""Small symmetric matrices."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import definite

from dpfda.methods.adaptive.matrices import fit_two, inverse, invert_lower, kron, power, raise_eigenvalues


def test_powers_and_inverses_are_those_of_the_textbook() -> None:
    rng = np.random.default_rng(0)
    matrix = definite(rng, 4)
    root = power(matrix, 0.5)
    np.testing.assert_allclose(root @ root, matrix)
    np.testing.assert_allclose(power(matrix, -1.0), inverse(matrix))
    assert power(np.array([[2.0]]), -0.5) == 2.0**-0.5


@pytest.mark.parametrize("size", [1, 16, 17, 50])
def test_triangular_matrices_are_inverted(size: int) -> None:
    rng = np.random.default_rng(size)
    factors = np.linalg.cholesky(np.stack([definite(rng, size) + size * np.eye(size) for _ in range(3)]))
    found = invert_lower(factors)
    np.testing.assert_allclose(found @ factors, np.tile(np.eye(size), (3, 1, 1)), atol=1e-12)
    np.testing.assert_allclose(np.triu(found, 1), 0.0, atol=1e-12)


@pytest.mark.parametrize("rows", [1, 3])
def test_kronecker_products_have_the_bits_of_numpy(rows: int) -> None:
    rng = np.random.default_rng(rows)
    first, second = rng.normal(size=(rows, rows)), rng.normal(size=(4, 5))
    assert kron(first, second).tobytes() == np.kron(first, second).tobytes()


def test_only_eigenvalues_below_the_limit_are_raised() -> None:
    found = np.linalg.eigvalsh(raise_eigenvalues(np.diag([-1.0, 0.2, 3.0]), 0.5))
    np.testing.assert_allclose(found, [0.5, 0.5, 3.0])


def test_two_parts_of_a_matrix_are_found_and_never_negative() -> None:
    rng = np.random.default_rng(1)
    first, second = definite(rng, 3), np.diag([1.0, 0.1, 0.01])
    assert fit_two(0.3 * first + 2.0 * second, first, second) == pytest.approx((0.3, 2.0))
    for matrix in (-first, first - 5 * second, 5 * second - first):
        assert min(fit_two(matrix, first, second)) > 0
