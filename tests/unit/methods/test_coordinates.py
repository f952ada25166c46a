"""The coordinates of a round."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import definite

from dpfda.methods.adaptive.coordinates import Coordinates, expect_squared_length


def test_rotated_coordinates_make_the_whitened_covariance_diagonal() -> None:
    rng = np.random.default_rng(0)
    shape, covariance = definite(rng, 4), definite(rng, 4)
    found = Coordinates.of(shape, covariance)
    np.testing.assert_allclose(found.root @ found.root, shape)
    np.testing.assert_allclose(found.whitener @ found.root, np.eye(4), atol=1e-12)
    diagonal = found.rotated @ covariance @ found.rotated.T
    np.testing.assert_allclose(diagonal / np.trace(diagonal), np.diag(found.shares), atol=1e-12)


def test_the_expected_squared_length_is_the_mean_over_displacements() -> None:
    rng = np.random.default_rng(1)
    whitener, information, root = (definite(rng, 3) for _ in range(3))
    draws = (root @ rng.standard_normal((3, 200_000))).T
    lengths = ((draws @ (whitener @ information).T / 0.8) ** 2).sum(axis=1)
    expected = expect_squared_length(whitener, information, 0.8, root @ root.T)
    assert expected == pytest.approx(lengths.mean(), rel=0.02)
