"""Subjects whose rows cannot be right, where rows never refuse: they become empty curves.

Whether a subject is spoiled depends on its own rows only, so that the rows of one subject never change another's curve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpfda.curves.curves import Curves
from dpfda.curves.tables.rows import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpfda.curves.tables.ordering import Piece


def find_spoiled(rows: Rows, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each code whether x or y is infinite in one of its rows (as what cannot be read is), or its design varies."""
    spoiled = np.zeros(int(codes.max()) + 1, dtype=np.bool_)
    spoiled[codes[np.isinf(rows.x) | np.isinf(rows.y)]] = True
    if rows.design is not None:
        last = np.empty((spoiled.size, rows.design.shape[1]))
        last[codes] = rows.design
        spoiled[codes[_differ(rows.design, last[codes])]] = True
    return spoiled


def without_points(rows: Rows, codes: NDArray[np.int64], spoiled: NDArray[np.bool_]) -> Rows:
    """The rows with x, y and design missing wherever the subject is spoiled: the subject stays, as an empty curve."""
    if not spoiled.any():
        return rows
    mine = spoiled[codes]
    design = None if rows.design is None else np.where(mine[:, None], np.nan, rows.design)
    return Rows(rows.ids, np.where(mine, np.nan, rows.x), np.where(mine, np.nan, rows.y), design)


def is_spoiled(piece: Piece, at_once: int) -> bool:
    """The same for one very long curve, of which some rows are in memory at a time."""
    design = None
    for rows in piece.blocks(at_once):
        codes = np.zeros(len(rows), dtype=np.int64)
        if find_spoiled(rows, codes).any():
            return True
        if rows.design is not None:
            if design is not None and _differ(rows.design[:1], design).any():
                return True
            design = rows.design[:1]
    return False


def fit_to_number(curves: Curves, n: int) -> Curves:
    """The first n curves, and empty ones behind them if there are fewer: n is a public number that data cannot change."""
    if curves.n > n:
        return curves[:n]
    more = n - curves.n
    if not more:
        return curves
    labels = None if curves.labels is None else np.concatenate([curves.labels, np.zeros((more, 2), dtype=np.uint64)])
    return Curves(
        curves.x,
        curves.y,
        np.concatenate([curves.offsets, np.full(more, curves.offsets[-1])]),
        np.concatenate([curves.design, np.zeros((more, curves.p))]),
        labels,
    )


def no_curve(columns: int) -> Curves:
    """One empty curve: what stands for a table without a row."""
    return Curves(np.empty(0), np.empty(0), np.zeros(2, dtype=np.int64), np.zeros((1, columns)))


def _differ(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.bool_]:
    different: NDArray[np.bool_] = ~((one == other) | (np.isnan(one) & np.isnan(other))).all(axis=1)
    return different
