"""Points are put in the order of ids by counting: as a stable sort would."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda._objects import KernelError
from dpfda.curves.tables.grouping import group_points


@pytest.mark.parametrize(("low", "span"), [(0, 1), (-5, 11), (2**40, 300), (-(2**62), 7)])
def test_counting_gives_what_a_stable_sort_gives(low: int, span: int) -> None:
    rng = np.random.default_rng(abs(low) + span)
    ids = low + rng.integers(0, span, 500)
    x, y = rng.random(500), rng.normal(size=500)
    counts, x_moved, y_moved = group_points(ids, low, span, x, y)
    order = np.argsort(ids, kind="stable")
    assert counts.tolist() == np.bincount(ids - low, minlength=span).tolist()
    assert x_moved.tobytes() == x[order].tobytes()
    assert y_moved.tobytes() == y[order].tobytes()


@pytest.mark.parametrize("outside", [-1, 4])
def test_an_id_outside_the_range_is_refused_before_anything_is_written(outside: int) -> None:
    ids = np.array([0, outside, 3])
    with pytest.raises(KernelError, match="ids must lie between"):
        group_points(ids, 0, 4, np.zeros(3), np.zeros(3))
