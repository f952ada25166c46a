"""Covariates that were written down once and left blank afterwards: filled down, where the owner asks for it by name.

A subject's rows decide about that subject only, and their order in the table does not matter unless x is equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]


def fill_down(codes: Integers, x: Floats, design: Floats, columns: Sequence[slice]) -> Floats:
    """The design with every blank in these columns replaced by the last entry of the same subject at or before its x.

    Equal x are in the order of rows; rows without x are last, and so give nothing to others. What is before the first entry
    stays blank.
    """
    order = np.lexsort((x, codes))
    begins = np.ones(order.size, dtype=np.bool_)
    begins[1:] = codes[order][1:] != codes[order][:-1]
    places = np.arange(order.size)
    first = np.maximum.accumulate(np.where(begins, places, 0))
    filled = design.copy()
    for part in columns:
        values = design[order, part]
        known = np.maximum.accumulate(np.where(np.isnan(values).any(axis=1), -1, places))
        known = np.where(known >= first, known, places)  # of nobody else
        filled[order, part] = values[known]
    return filled


def place_baselines(x: Floats, y: Floats) -> Floats:
    """The x by which to fill: a row with neither x nor y, as the baseline of a REDCap export, comes before all others."""
    return np.where(np.isnan(x) & np.isnan(y), -np.inf, x)
