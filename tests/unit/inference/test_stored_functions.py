"""What a result file holds of a basis evaluates like the basis: values, derivatives, integrals."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import InvalidInput
from dpfda.basis.basis import make_basis
from dpfda.inference.law import Law, pad_mean
from dpfda.inference.stored_functions import StoredFunctions, describe_functions, store_functions

U = np.sort(np.concatenate([np.random.default_rng(1).random(60), np.linspace(0, 1, 13)]))
BASES = [("cosine", 30), ("fourier", 7), ("fourier-extension", 6), ("free-ends", 40), ("bspline", 11), ("bspline", 2)]


@pytest.mark.parametrize(("name", "size"), BASES)
@pytest.mark.parametrize("order", [-1, 0, 1, 2])
def test_stored_functions_are_the_functions(name, size, order) -> None:
    basis = make_basis(name, size, (20, 80))
    stored = store_functions(basis)
    expected = basis.evaluate_unit(U, order)
    scale = np.abs(expected).max() or 1.0
    np.testing.assert_allclose(stored.evaluate_unit(U, order) / scale, expected / scale, atol=2e-12)
    assert stored.size == size
    assert describe_functions(stored) == stored.fields
    np.testing.assert_array_equal(stored.unit([20, 50, 80]), [0, 0.5, 1])


def test_any_list_of_smooth_functions_can_be_stored() -> None:
    class Exponentials:
        size, domain = 2, (0.0, 1.0)

        def unit(self, x):
            return np.asarray(x)

        def evaluate_unit(self, u, order=0):
            return np.stack([np.exp(u), 3.0**order * np.exp(3 * u)], axis=-1)

    stored = StoredFunctions((0.0, 1.0), describe_functions(Exponentials()))
    np.testing.assert_allclose(stored.evaluate_unit(U, 1), Exponentials().evaluate_unit(U, 1), rtol=1e-9)
    law = Law(Exponentials(), pad_mean(np.ones((1, 1)), 2), None)
    assert law.has_free_ends
    np.testing.assert_array_equal(law.mean, [[1.0, 0.0]])


def test_what_cannot_be_is_refused() -> None:
    class Rough:
        size, domain = 1, (0.0, 1.0)

        def evaluate_unit(self, u, order=0):
            return (u > 0.3).astype(float)[:, None]

    with pytest.raises(InvalidInput, match="too rough"):
        describe_functions(Rough())
    stored = store_functions(make_basis("cosine", 3))
    with pytest.raises(InvalidInput, match="x must lie in the domain"):
        stored.unit([2.0])
    with pytest.raises(InvalidInput, match="order must be"):
        stored.evaluate_unit(U, -2)
    with pytest.raises(InvalidInput, match="do not belong together"):
        Law(stored, np.ones((1, 2)), None)
