"""The bits of a curve's contribution depend on that curve alone (gap G3 of docs/known_limits.md).

If another curve's length could change them, replacing that curve would move more than its own row, and the sensitivity
would not hold. A hostile iterate that makes large terms cancel magnifies any difference in rounding.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from dpfda.basis.basis import make_basis
from dpfda.silo.prepared import PreparedCurves, curve_gradients, rowwise_product

COLUMNS, SIZE = 3, 5
BASES = [make_basis(name, SIZE) for name in ("fourier", "free-ends", "bspline")]


def prepared(rng, counts):
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    design = rng.uniform(-1, 1, (len(counts), COLUMNS))
    return PreparedCurves(rng.random(offsets[-1]), rng.uniform(-1, 1, offsets[-1]), offsets, design)


def cancelling_iterate(rng):
    iterate = rng.normal(size=(COLUMNS, SIZE))
    return iterate * 1e6 / np.abs(iterate).max()


@pytest.mark.parametrize("basis", BASES, ids=lambda basis: basis.name)
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 40))
def test_a_row_is_the_same_alone_and_in_company(basis, seed, n, longest):
    rng = np.random.default_rng(seed)
    curves = prepared(rng, rng.integers(0, longest + 1, n))
    iterate = cancelling_iterate(rng)
    together = curve_gradients(curves, basis, iterate)
    for position in {0, n // 2, n - 1}:
        alone = curve_gradients(curves.batch(range(position, position + 1)), basis, iterate)
        assert_array_equal(alone[0], together[position])


@pytest.mark.parametrize("others", [1, 2, 7, 64, 1000])
def test_a_row_product_does_not_depend_on_the_number_of_rows(others):
    rng = np.random.default_rng(others)
    rows, matrix = rng.normal(size=(others, 17)), rng.normal(size=(17, 17)) * 1e6
    alone = np.vstack([rowwise_product(row[None], matrix) for row in rows])
    assert_array_equal(rowwise_product(rows, matrix), alone)
