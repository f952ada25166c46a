"""What the owner of the data should know before spending. NOT PRIVATE: counts of subjects, for the owner's eyes only."""

from __future__ import annotations

import numpy as np

from dpfda.curves import Curves
from dpfda.errors import InvalidInput
from dpfda.tables.reading import Reading


def notes_on(whole: Curves, inside: Curves, reading: Reading, *, missing: int, rows: int) -> list[str]:
    """Sentences about missing, outlying and clamped values; a table that leaves nothing to fit is refused."""
    _refuse_nothing(whole, inside, reading)
    notes = []
    if missing:
        notes.append(f"{missing:,} of {rows:,} rows have no x or no y and were left out")
    dropped = whole.n_points - inside.n_points
    if dropped:
        notes.append(f"{dropped:,} of {whole.n_points:,} points lie outside the domain and were left out")
    empty = int((inside.counts == 0).sum())
    if empty:
        notes.append(f"{empty:,} of {inside.n:,} subjects have no usable point and contribute nothing")
    clamped = _subjects_outside(inside, reading)
    if clamped:
        notes.append(f"{clamped:,} of {inside.n:,} subjects had values outside the bounds and were clamped")
    return notes + _covariate_notes(inside, reading)


def _refuse_nothing(whole: Curves, inside: Curves, reading: Reading) -> None:
    if not whole.n_points:
        raise InvalidInput("No row has both x and y; check the columns named by --x and --y.")
    if not inside.n_points:
        low, high = reading.domain.interval
        shown = f"{low:g}:{high:g}" if reading.domain.origin is None else f"{high:g} days from {reading.domain.origin}"
        raise InvalidInput(f"--domain {shown} misses every point of the data; check its units, or name another --x.")
    low, high = reading.y_bounds
    if np.all((inside.y < low) | (inside.y > high)):
        raise InvalidInput(
            f"--y-bounds {low:g}:{high:g} misses every value of the data; check units, or name another --y."
        )


def _subjects_outside(inside: Curves, reading: Reading) -> int:
    low, high = reading.y_bounds
    return int(np.unique(inside.owners[(inside.y < low) | (inside.y > high)]).size)


def _covariate_notes(inside: Curves, reading: Reading) -> list[str]:
    notes, column = [], 1
    for covariate in reading.covariates:
        if covariate.bounds is not None:
            values, (low, high) = inside.design[inside.counts > 0, column], covariate.bounds
            outside = int(((values < low) | (values > high)).sum())
            if outside:
                notes.append(
                    f"{outside:,} of {inside.n:,} subjects have a {covariate.name!r} outside its bounds, clamped"
                )
        column += len(covariate.columns)
    return notes
