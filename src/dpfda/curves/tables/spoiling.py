"""Subjects whose rows cannot be right, where rows never refuse: they become empty curves.

Whether a subject is spoiled depends on its own rows only, so that the rows of one subject never change another's curve.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from dpfda.curves.curves import Curves
from dpfda.curves.tables.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray


def find_spoiled(rows: Rows, codes: NDArray[np.int64], *, one_design: bool = False) -> NDArray[np.bool_]:
    """For each code whether a number is infinite in one of its rows, as what cannot be read is; with `one_design`, also
    whether two rows with a complete design have different ones.
    """
    spoiled = np.zeros(int(codes.max()) + 1, dtype=np.bool_)
    spoiled[codes[np.isinf(rows.x) | np.isinf(rows.y)]] = True
    if rows.design is not None:
        spoiled[codes[np.isposinf(rows.design).any(axis=1)]] = True
    if rows.design is not None and one_design:
        complete = np.isfinite(rows.design).all(axis=1)
        last = np.empty((spoiled.size, rows.design.shape[1]))
        last[codes[complete]] = rows.design[complete]
        spoiled[codes[complete & (rows.design != last[codes]).any(axis=1)]] = True
    return spoiled


def without_points(rows: Rows, codes: NDArray[np.int64], spoiled: NDArray[np.bool_]) -> Rows:
    """The rows with x, y and design missing wherever the subject is spoiled: the subject stays, as an empty curve."""
    if not spoiled.any():
        return rows
    mine = spoiled[codes]
    design = None if rows.design is None else np.where(mine[:, None], np.nan, rows.design)
    return Rows(rows.ids, np.where(mine, np.nan, rows.x), np.where(mine, np.nan, rows.y), design)


def is_spoiled(blocks: Iterable[Rows], *, one_design: bool = False) -> bool:
    """The same for one very long curve, of which some rows are in memory at a time."""
    design = None
    for rows in blocks:
        if find_spoiled(rows, np.zeros(len(rows), dtype=np.int64), one_design=one_design).any():
            return True
        if one_design and rows.design is not None:
            complete = rows.design[np.isfinite(rows.design).all(axis=1)][:1]
            if design is not None and len(complete) and not np.array_equal(complete, design):
                return True
            design = complete if len(complete) else design
    return False


def fit_to_number(curves: Curves, n: int) -> Curves:
    """n curves, a public number that data cannot change: empty ones behind them if there are fewer; of more, those that a
    public function of their ids chooses, in order, so that ids that come first do not put all others out.
    """
    if curves.n > n:
        return curves.take(_choose(curves, n))
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
        curves.rows,
    )


def _choose(curves: Curves, n: int) -> list[int]:
    """n places, in order; one id more or less changes one of them."""
    labels = np.arange(curves.n) if curves.labels is None else curves.labels
    digests = [hashlib.blake2b(label.tobytes(), digest_size=8).digest() for label in labels]
    return sorted(sorted(range(curves.n), key=digests.__getitem__)[:n])


def no_curve(columns: int) -> Curves:
    """One empty curve: what stands for a table without a row."""
    return Curves(np.empty(0), np.empty(0), np.zeros(2, dtype=np.int64), np.zeros((1, columns)))
