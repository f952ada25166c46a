"""Small symmetric matrices."""

from __future__ import annotations

import numpy as np
from adaptive_pieces import definite

from dpfda.methods.adaptive.matrices import inverse, kron, power, powers, raise_eigenvalues


def test_powers_inverses_and_products_are_those_of_the_textbook() -> None:
    rng = np.random.default_rng(0)
    matrix, other = definite(rng, 4), definite(rng, 3)
    root, back = powers(matrix, 0.5, -1.0)
    np.testing.assert_allclose(root @ root, matrix)
    np.testing.assert_allclose(back, inverse(matrix))
    np.testing.assert_array_equal(power(matrix, 0.5), root)
    np.testing.assert_array_equal(kron(matrix, other), np.kron(matrix, other))
    np.testing.assert_array_equal(kron(np.stack([matrix, -matrix]), other)[1], np.kron(-matrix, other))


def test_only_eigenvalues_below_the_limit_are_raised() -> None:
    found = np.linalg.eigvalsh(raise_eigenvalues(np.diag([-1.0, 0.2, 3.0]), 0.5))
    np.testing.assert_allclose(found, [0.5, 0.5, 3.0])
