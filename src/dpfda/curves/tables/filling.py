"""Covariates that were written down once and left blank afterwards: filled down, where the owner asks for it by name.

A subject's rows decide about that subject only, and their order in the table does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]


def fill_down(codes: Integers, x: Floats, y: Floats, design: Floats, columns: Sequence[slice]) -> Floats:
    """The design with every blank in these columns replaced by the last entry of the same subject at or before its x.

    Rows without x are last, and so give nothing to others. What is before the first entry stays blank. Of rows with equal x,
    those with an entry come first, in the order of y and of the entry's bits: the table's order says nothing.
    """
    filled = design.copy()
    for part in columns:
        filled[:, part] = _fill_column(codes, x, y, np.ascontiguousarray(design[:, part]))
    return filled


def _fill_column(codes: Integers, x: Floats, y: Floats, values: Floats) -> Floats:
    blank = np.asarray(np.isnan(values).any(axis=1))
    order = np.lexsort((*values.view(np.int64).T, y, blank, x, codes))
    places = np.arange(order.size)
    begins = np.ones(order.size, dtype=np.bool_)
    begins[1:] = codes[order][1:] != codes[order][:-1]
    first = np.maximum.accumulate(np.where(begins, places, 0))
    known = np.maximum.accumulate(np.where(blank[order], -1, places))
    filled = np.empty_like(values)
    filled[order] = values[order[np.where(known >= first, known, places)]]  # of nobody else
    return filled


def place_baselines(x: Floats, y: Floats) -> Floats:
    """The x by which to fill: a row with neither x nor y, as the baseline of a REDCap export, comes before all others."""
    return np.where(np.isnan(x) & np.isnan(y), -np.inf, x)
