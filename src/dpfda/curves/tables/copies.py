"""Exact copies of rows: the same id, x, y and covariates, as numbers. A row without x or y is no point, so no copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

_MIXERS = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)
_MANY = 1 << 16  # rows for which compiled code pays


def find_copies(codes: Integers, x: Floats, y: Floats, design: Floats | None) -> Integers:
    """The places of rows that repeat an earlier row. `codes` number the ids; a row without x or y repeats nothing.

    Fingerprints of 64 bits find the candidates fast; those are then compared in full.
    """
    prints = fingerprint_rows(codes, x, y, design)
    if prints.size >= _MANY:
        from dpfda.curves.tables.repeats import has_repeat

        if not has_repeat(prints):
            return np.empty(0, dtype=np.int64)
    ordered = np.sort(prints)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if not repeated.size:
        return np.empty(0, dtype=np.int64)
    candidates = np.flatnonzero(np.isin(prints, repeated))
    candidates = candidates[~(np.isnan(x[candidates]) | np.isnan(y[candidates]))]
    return candidates[_find_repeats(codes[candidates], x[candidates], y[candidates], design, candidates)]


def find_copies_in_curve(
    blocks: Callable[[], Iterator[tuple[Floats, Floats, Floats | None]]], rows: int, at_once: int
) -> Integers:
    """The places of copies among the points of one very long curve, in memory for about `at_once` of them.

    The curve is read several times; each time the rows whose fingerprint falls into one class are compared.
    """
    classes = np.uint64(-(-rows // at_once))
    found = [np.empty(0, dtype=np.int64)]
    for class_ in range(int(classes)):
        kept, start = [], 0
        for x, y, design in blocks():
            prints = fingerprint_rows(np.zeros(x.size, dtype=np.int64), x, y, design)
            mine = np.flatnonzero(prints % classes == np.uint64(class_))
            kept.append((mine + start, x[mine], y[mine], None if design is None else design[mine]))
            start += x.size
        places = np.concatenate([part[0] for part in kept])
        designs = [part[3] for part in kept if part[3] is not None]
        repeats = find_copies(
            np.zeros(places.size, dtype=np.int64),
            np.concatenate([part[1] for part in kept]),
            np.concatenate([part[2] for part in kept]),
            np.concatenate(designs) if designs else None,
        )
        found.append(places[repeats])
    return np.sort(np.concatenate(found))


def fingerprint_rows(codes: Integers, x: Floats, y: Floats, design: Floats | None) -> NDArray[np.uint64]:
    """64 bits of every row; equal rows have equal ones."""
    prints: NDArray[np.uint64] = codes.astype(np.uint64) * _MIXERS[0]
    for column in (x, y, *(() if design is None else design.T)):
        bits = (column + 0.0).view(np.uint64)  # -0.0 is 0.0
        missing = np.isnan(column)
        if missing.any():
            bits[missing] = _MIXERS[2]
        prints ^= bits
        prints *= _MIXERS[1]
        prints ^= prints >> np.uint64(31)
        prints *= _MIXERS[2]
        prints ^= prints >> np.uint64(29)
    return prints


def _find_repeats(codes: Integers, x: Floats, y: Floats, design: Floats | None, places: Integers) -> NDArray[np.bool_]:
    import polars as pl

    columns = {"code": codes, "x": x + 0.0, "y": y + 0.0}
    if design is not None:
        columns |= {f"design {number}": column[places] + 0.0 for number, column in enumerate(design.T)}
    frame = pl.DataFrame(columns)
    first = frame.select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
    return ~first
