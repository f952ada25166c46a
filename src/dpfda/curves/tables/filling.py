"""Covariates that stand in some rows of a subject only, as the baseline facts of a REDCap export: filled on request.

What a subject's rows become depends on its own rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dpfda.curves.tables.rows import Rows
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpfda.curves.tables.ordering import Piece
    from dpfda.curves.tables.reading import Reading


def fill_covariates(rows: Rows, codes: NDArray[np.int64], reading: Reading) -> Rows:
    """The rows, blank covariates filled from other rows of the subject if that was asked for; else such rows are refused."""
    if rows.design is None or (not reading.fill_down and reading.never_refuses):
        return rows
    missing = np.isnan(rows.design)
    if not missing.any():
        return rows
    known = np.full((int(codes.max()) + 1, rows.design.shape[1]), np.nan)
    for column in range(known.shape[1]):
        there = ~missing[:, column]
        known[codes[there], column] = rows.design[there, column]
    filled = np.where(missing, known[codes], rows.design)
    if reading.fill_down:
        return replace(rows, design=filled)
    _refuse_partly_blank(np.flatnonzero((missing & ~np.isnan(filled)).any(axis=0)), reading)
    return rows


def fill_blocks(piece: Piece, reading: Reading, at_once: int) -> Callable[[], Iterator[Rows]]:
    """The same for one curve with very many points: a way to go through its rows, some at a time."""
    known: NDArray[np.float64] | None = None
    if reading.fill_down and reading.covariates:
        for rows in piece.blocks(at_once):
            assert rows.design is not None
            known = np.full(rows.design.shape[1], np.nan) if known is None else known
            for column, values in enumerate(rows.design.T):
                there = values[~np.isnan(values)]
                known[column] = there[-1] if there.size else known[column]
    return partial(_blocks, piece, at_once, known)


def _blocks(piece: Piece, at_once: int, known: NDArray[np.float64] | None) -> Iterator[Rows]:
    for rows in piece.blocks(at_once):
        if known is None or rows.design is None:
            yield rows
        else:
            yield replace(rows, design=np.where(np.isnan(rows.design), known, rows.design))


def _refuse_partly_blank(partly: NDArray[np.int64], reading: Reading) -> None:
    if not partly.size:
        return
    owners = [covariate.name for covariate in reading.covariates for _ in covariate.columns]
    raise InvalidInput(
        f"{owners[partly[0]]!r} is blank in some rows of a subject and given in others; add --fill-down if the given value "
        "holds for all rows of the subject, as in a REDCap export."
    )
