"""Exact copies among complete visits: the same id, x, covariates and the same value of every outcome."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dpfda.curves.curves import Curves
from dpfda.curves.outcomes import Outcomes
from dpfda.curves.tables.copies import find_copies
from dpfda.curves.tables.owner_view import Tally, refuse_copies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpfda.curves.tables.reading import Reading

_AT_ONCE = 1 << 20  # points


def settle_copies(outcomes: Outcomes, reading: Reading) -> tuple[Outcomes, list[str]]:
    """The outcomes with copies refused, dropped or kept, as the reading says, and the notes for their owner.

    All outcomes have the same points in the same order, so a visit is dropped from each of them.
    """
    if reading.duplicates == "keep":
        return outcomes, []
    copies = find_copied_visits(outcomes)
    notes = refuse_copies(Tally(copies=copies.size), reading)
    if not copies.size:
        return outcomes, notes
    kept = {name: _drop_points(outcomes[name], copies) for name in outcomes.outcomes}
    return Outcomes(kept, visits=outcomes.visits), notes


def find_copied_visits(outcomes: Outcomes) -> NDArray[np.int64]:
    """The places of visits that repeat an earlier visit of the same subject in every outcome and covariate."""
    first, *others = outcomes
    columns = [each.y for each in others] + ([] if first.rows is None else [*first.rows.T])
    found = [np.empty(0, dtype=np.int64)]
    for low, high in _cut_between_curves(first.offsets):
        start, end = first.offsets[[low, high]]
        codes = np.repeat(np.arange(high - low, dtype=np.int64), first.counts[low:high])
        rest = np.column_stack([column[start:end] for column in columns])
        found.append(start + find_copies(codes, first.x[start:end], first.y[start:end], rest))
    return np.concatenate(found)


def _cut_between_curves(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ranges of curves with about `_AT_ONCE` points each, so that memory does not grow with the table."""
    cuts = np.searchsorted(offsets, np.arange(0, offsets[-1], _AT_ONCE))
    ends = np.unique(np.append(cuts, offsets.size - 1)).tolist()
    return list(pairwise(ends))


def _drop_points(curves: Curves, places: NDArray[np.int64]) -> Curves:
    kept = np.ones(curves.n_points, dtype=np.bool_)
    kept[places] = False
    owners = np.searchsorted(curves.offsets, places, side="right") - 1
    counts = curves.counts - np.bincount(owners, minlength=curves.n)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    rows = None if curves.rows is None else curves.rows[kept]
    return Curves(curves.x[kept], curves.y[kept], offsets, curves.design, curves.labels, rows, curves.names)
