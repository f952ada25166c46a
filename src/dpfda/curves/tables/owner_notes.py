"""What the owner of the data should know before spending. NOT PRIVATE: counts of subjects, for the owner only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields

import numpy as np

from dpfda.curves.curves import ONES_ALREADY, Curves
from dpfda.curves.tables.covariates import Covariate
from dpfda.curves.tables.reading import Reading
from dpfda.curves.tables.rows import Rows
from dpfda.errors import InvalidInput


@dataclass
class Tally:
    """Counts over some of the curves; tallies of different curves add up."""

    rows: int = 0
    missing: int = 0
    points: int = 0
    inside: int = 0
    within_bounds: int = 0
    subjects: int = 0
    empty: int = 0
    clamped: int = 0
    copies: int = 0
    spoiled: int = 0
    covariates: dict[str, int] = field(default_factory=dict)
    lacking: dict[str, int] = field(default_factory=dict)  # points that each covariate removed, by being missing
    ones: tuple[bool, ...] | None = None  # which design columns are one for all curves; None: no curve has a design

    def __add__(self, other: Tally) -> Tally:
        counts = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in _COUNTS}
        covariates, lacking = (Counter(self.covariates), Counter(self.lacking))
        covariates.update(other.covariates)
        lacking.update(other.lacking)
        ones = self.ones or other.ones
        if self.ones is not None and other.ones is not None:
            ones = tuple(a and b for a, b in zip(self.ones, other.ones, strict=True))
        return Tally(**counts, covariates=dict(covariates), lacking=dict(lacking), ones=ones)

    @classmethod
    def of_one_curve(cls, parts: Iterable[Tally]) -> Tally:
        """From tallies of parts of the points of one curve: it counts as one subject."""
        parts = list(parts)
        total = sum(parts, cls())
        total.subjects = 1
        total.empty = int(all(part.empty for part in parts))
        total.clamped = min(total.clamped, 1)
        total.spoiled = min(total.spoiled, 1)
        total.covariates = {name: min(count, 1) for name, count in total.covariates.items()}
        return total


_COUNTS = [each for each in fields(Tally) if each.name not in ("covariates", "lacking", "ones")]


def count_findings(whole: Curves, inside: Curves, reading: Reading, *, missing: int, rows: int) -> Tally:
    """Count what was missing, outlying and clamped. `inside` are the points of `whole` in the domain."""
    low, high = reading.y_bounds
    outside = (inside.y < low) | (inside.y > high)
    return Tally(
        rows=rows,
        missing=missing,
        points=whole.n_points,
        inside=inside.n_points,
        within_bounds=int(inside.n_points - np.count_nonzero(outside)),
        subjects=inside.n,
        empty=int((inside.counts == 0).sum()),
        clamped=int(np.unique(inside.owners[outside]).size) if outside.any() else 0,
        covariates=_count_covariates_outside(inside, reading),
    )


def write_notes(tally: Tally, reading: Reading) -> list[str]:
    """Sentences about missing, outlying and clamped values; a table that leaves nothing to fit is refused if rows may."""
    notes = []
    try:
        _refuse_nothing(tally, reading)
    except InvalidInput as refusal:
        if not reading.never_refuses:
            raise
        notes.append(str(refusal))
    if tally.spoiled:
        notes.append(
            f"{tally.spoiled:,} of {tally.subjects:,} subjects have rows that cannot be right (text in a number column, an "
            "infinite number, exact copies, for the published method a covariate that changes) and contribute nothing"
        )
    if tally.missing:
        notes.append(f"{tally.missing:,} of {tally.rows:,} rows have no x or no y and were left out")
    for covariate in reading.covariates:
        if count := tally.lacking.get(covariate.name):
            what = "missing or not in --levels" if covariate.levels else "missing"
            notes.append(f"{count:,} of {tally.rows:,} rows have x and y, but {covariate.name!r} is {what}: left out")
    dropped = tally.points - tally.inside
    if dropped:
        notes.append(f"{dropped:,} of {tally.points:,} points lie outside the domain and were left out")
    if tally.empty:
        notes.append(f"{tally.empty:,} of {tally.subjects:,} subjects have no usable point and contribute nothing")
    if tally.clamped:
        notes.append(f"{tally.clamped:,} of {tally.subjects:,} subjects had values outside the bounds and were clamped")
    notes += [
        f"{count:,} of {tally.subjects:,} subjects have a {name!r} outside its bounds, clamped"
        for name, count in tally.covariates.items()
        if count
    ]
    return notes


def _refuse_nothing(tally: Tally, reading: Reading) -> None:
    if tally.ones is not None and any(tally.ones):
        raise InvalidInput(ONES_ALREADY)
    if not tally.points:
        raise InvalidInput("No row has both x and y; check the columns named by --x and --y.")
    if not tally.inside:
        low, high = reading.domain.interval
        shown = f"{low:g}:{high:g}" if reading.domain.origin is None else f"{high:g} days from {reading.domain.origin}"
        raise InvalidInput(f"--domain {shown} misses every point of the data; check its units, or name another --x.")
    if not tally.within_bounds:
        low, high = reading.y_bounds
        raise InvalidInput(
            f"--y-bounds {low:g}:{high:g} misses every value of the data; check units, or name another --y."
        )


def count_lacking(rows: Rows, reading: Reading) -> dict[str, int]:
    """How many rows with x and y lack each covariate, which may be several in one row; unlisted levels count."""
    if rows.design is None:
        return {}
    here = np.isfinite(rows.x) & np.isfinite(rows.y)
    lacks = ~np.isfinite(rows.design)
    places = Covariate.places(reading.covariates)
    return {name: int(np.count_nonzero(here & lacks[:, part].any(axis=1))) for name, part in places.items()}


def _count_covariates_outside(inside: Curves, reading: Reading) -> dict[str, int]:
    counts, steady = {}, inside.design[(inside.counts > 0) & ~inside.changes]
    for covariate in reading.covariates:
        column = 1 + Covariate.places(reading.covariates)[covariate.name].start
        if covariate.bounds is not None:
            low, high = covariate.bounds
            counts[covariate.name] = int(((steady[:, column] < low) | (steady[:, column] > high)).sum())
            if inside.rows is not None:
                values = inside.rows[:, column]
                owners = inside.owners[(values < low) | (values > high)]
                counts[covariate.name] += int(np.count_nonzero(inside.changes[np.unique(owners)]))
    return counts
