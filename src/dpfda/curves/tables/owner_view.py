"""The owner's view of a table: notes, doubts and refusals that rest on counts of real subjects. NOT PRIVATE.

Everything that may be said about the rows themselves is said here, to the owner only. Reports, inference, messages and all
other rooms cannot import this module; an import contract in pyproject.toml says so. They see sentences, if their owner
hands them over, never counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from dpfda.curves.curves import Curves
from dpfda.curves.tables.covariates import Covariate
from dpfda.curves.tables.reading import Reading
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpfda.curves.tables.rows import Rows


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
    points_clamped: int = 0
    copies: int = 0
    spoiled: int = 0
    covariates: dict[str, int] = field(default_factory=dict)
    lacking: dict[str, int] = field(default_factory=dict)  # points that each covariate removed, by being missing
    codes: dict[int, int] = field(default_factory=dict)  # how often y beyond its bounds is a number like 99 or -999
    seen: dict[str, frozenset[str]] = field(default_factory=dict)  # the listed levels of each category that occur
    ones: tuple[bool, ...] | None = None  # which design columns are one for all curves; None: no curve has a design

    def __add__(self, other: Tally) -> Tally:
        counts = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in _COUNTS}
        covariates, lacking = (Counter(self.covariates), Counter(self.lacking))
        covariates.update(other.covariates)
        lacking.update(other.lacking)
        codes = Counter(self.codes)
        codes.update(other.codes)
        seen = {name: self.seen.get(name, frozenset()) | found for name, found in other.seen.items()}
        ones = self.ones or other.ones
        if self.ones is not None and other.ones is not None:
            ones = tuple(a and b for a, b in zip(self.ones, other.ones, strict=True))
        return Tally(
            **counts,
            covariates=dict(covariates),
            lacking=dict(lacking),
            codes=dict(codes),
            seen={**self.seen, **seen},
            ones=ones,
        )

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


_NEARLY_ALL = 0.9
_MISSING_CODES = [sign * int(digit * length) for sign in (-1, 1) for digit in "789" for length in (2, 3, 4, 5)]
_FEW = 2  # of a code: one of them may be a value
_COUNTS = [each for each in fields(Tally) if each.name not in ("covariates", "lacking", "codes", "seen", "ones")]


def count_findings(whole: Curves, inside: Curves, reading: Reading, *, missing: int, rows: int) -> Tally:
    """Count what was missing, outlying and clamped. `inside` are the points of `whole` in the domain."""
    low, high = reading.y_bounds
    outside = np.zeros(0, dtype=np.bool_)
    if not lie_within(inside.y, reading.y_bounds):
        outside = (inside.y < low) | (inside.y > high)
    return Tally(
        rows=rows,
        missing=missing,
        points=whole.n_points,
        inside=inside.n_points,
        within_bounds=int(inside.n_points - np.count_nonzero(outside)),
        points_clamped=int(np.count_nonzero(outside)),
        subjects=inside.n,
        empty=int((inside.counts == 0).sum()),
        clamped=int(np.unique(inside.owners[outside]).size) if outside.any() else 0,
        covariates=_count_covariates_outside(inside, reading),
        codes=_count_codes(inside.y[outside]) if outside.size else {},
    )


def lie_within(values: NDArray[np.float64], interval: tuple[float, float]) -> bool:
    """Whether all numbers, none of them NaN, lie in an interval."""
    return not values.size or bool(values.min() >= interval[0] and values.max() <= interval[1])


def _count_codes(values: NDArray[np.float64]) -> dict[int, int]:
    """How often numbers occur that often stand for a missing value."""
    found, counts = np.unique(values[np.isin(values, _MISSING_CODES)], return_counts=True)
    return {int(code): int(count) for code, count in zip(found, counts, strict=True)}


def write_notes(tally: Tally, reading: Reading) -> list[str]:
    """Sentences about missing, outlying and clamped values; a table that leaves nothing to fit is refused if rows may."""
    notes = []
    try:
        _refuse_nothing(tally, reading)
    except InvalidInput as refusal:
        if not reading.never_refuses:
            raise
        notes.append(str(refusal))
    subjects = f"of {_count(tally.subjects, 'subject')}"
    if tally.spoiled:
        notes.append(
            f"{tally.spoiled:,} {subjects} {_have(tally.spoiled)} rows that cannot be right (text in a number column, an "
            "infinite number, exact copies, for the published method a covariate that changes) and "
            f"{_contribute(tally.spoiled)} nothing"
        )
    if tally.missing:
        rows = f"{tally.missing:,} of {_count(tally.rows, 'cell' if reading.wide else 'row')}"
        what = "lack x or an outcome" if reading.measured else "have no x or no y"
        what = what if tally.missing != 1 else what.replace("have", "has").replace("lack", "lacks")
        notes.append(f"{rows} {what} and {_were(tally.missing)} left out")
    for covariate in reading.covariates:
        if count := tally.lacking.get(covariate.name):
            what = "missing or not in --levels" if covariate.levels else "missing"
            have = f"{count:,} of {_count(tally.rows, 'row')} {_have(count)}"
            notes.append(f"{have} x and y, but {covariate.name!r} is {what}: left out")
    dropped = tally.points - tally.inside
    if dropped:
        lie = "lies" if dropped == 1 else "lie"
        points = f"{dropped:,} of {_count(tally.points, 'point')}"
        notes.append(f"{points} {lie} outside the domain and {_were(dropped)} left out")
    if tally.empty:
        notes.append(
            f"{tally.empty:,} {subjects} {_have(tally.empty)} no usable point and {_contribute(tally.empty)} nothing"
        )
    if tally.clamped:
        notes.append(f"{tally.clamped:,} {subjects} had values outside the bounds and {_were(tally.clamped)} clamped")
    notes += [
        f"{count:,} {subjects} {_have(count)} a {name!r} outside its bounds, clamped"
        for name, count in tally.covariates.items()
        if count
    ]
    return notes


def find_doubts(tally: Tally, reading: Reading) -> list[str]:
    """What makes public facts look plainly wrong: nearly everybody is clamped or left out, a level that nobody has.

    No other bound or level is suggested.
    """
    filled, doubts = tally.subjects - tally.empty, []
    if (wrong := doubt_bounds(tally, reading.y_bounds)) is not None:
        doubts.append(wrong)
    doubts += [
        f"the bounds of {name!r} change the value of {count:,} of {_count(filled, 'subject')}: "
        "nearly everybody would be clamped"
        for name, count in tally.covariates.items()
        if filled and count >= _NEARLY_ALL * filled
    ]
    doubts += [
        f"{name!r} is missing in {count:,} of {_count(tally.rows - tally.missing, 'row')} with x and y, which are left out; "
        f"--fill-down {name} would take it from the subject's row before"
        for name, count in tally.lacking.items()
        if count > (tally.rows - tally.missing) / 2
    ]
    doubts += [
        f"{count:,} points of y are {code}, beyond its bounds, which often stands for a missing value: --missing={code} "
        "would leave them out"
        for code, count in tally.codes.items()
        if count >= _FEW
    ]
    doubts += [
        f"no row of {covariate.name!r} is {level!r}, which --levels {covariate.name}= lists: its curve would be noise"
        for covariate in reading.covariates
        for level in covariate.levels
        if covariate.name in tally.seen and level not in tally.seen[covariate.name]
    ]
    if tally.empty >= _NEARLY_ALL * tally.subjects:
        doubts.append(
            f"{tally.empty:,} of {_count(tally.subjects, 'subject')} have no usable point: hardly anybody contributes"
        )
    return doubts


def doubt_bounds(tally: Tally, y_bounds: tuple[float, float]) -> str | None:
    """What makes the bounds of y look plainly wrong, if anything."""
    filled, (low, high) = tally.subjects - tally.empty, y_bounds
    nearly_all = tally.clamped >= _NEARLY_ALL * filled
    if not filled or not (nearly_all or tally.points_clamped > tally.inside / 2):
        return None
    return (
        f"the bounds {low:g}:{high:g} of y change values of {tally.clamped:,} of {_count(filled, 'subject')} "
        f"({tally.points_clamped:,} of {_count(tally.inside, 'point')}): "
        + ("nearly everybody would be clamped" if nearly_all else "most values are clamped")
    )


def refuse_copies(tally: Tally, reading: Reading) -> list[str]:
    """Refuse a table with copies if they are to be refused and rows may refuse; else the note for the owner."""
    if not tally.copies:
        return []
    rows = "1 row is an exact copy" if tally.copies == 1 else f"{tally.copies:,} rows are exact copies"
    if reading.duplicates == "refuse":
        sentence = (
            f"{rows} of another row; add --duplicates drop if that is a mistake, or --duplicates keep if measurements were "
            "repeated."
        )
        if not reading.never_refuses:
            raise InvalidInput(sentence)
        return [sentence]
    return [f"{rows} of another row and {_were(tally.copies)} dropped"]


@dataclass
class LevelTally:
    """What was found in the column of a categorical covariate, row by row."""

    missing: int = 0
    unlisted: int = 0
    first_unlisted: str = ""
    seen: set[str] = field(default_factory=set)


def judge_levels(covariate: Covariate, found: LevelTally, rows: int) -> str | None:
    """Why a list of levels cannot be right, if so."""
    name = covariate.name
    if found.missing + found.unlisted == rows:
        return f"No row of {name!r} has a level of --levels {name}=; correct the list."
    unused = [level for level in covariate.levels if level not in found.seen]
    if found.unlisted and unused:
        return (
            f"No row of {name!r} is {unused[0]!r}, but {found.first_unlisted}, which --levels {name}= does not list: "
            "correct the list, or name what stands for a missing value with --missing."
        )
    return None


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _contribute(number: int) -> str:
    return "contributes" if number == 1 else "contribute"


def _refuse_nothing(tally: Tally, reading: Reading) -> None:
    lacking = next((name for name, count in tally.lacking.items() if count), None)
    if not tally.points and lacking is not None:
        raise InvalidInput(
            f"No row has x, y and every covariate: {lacking!r} is missing where x and y are given; add --fill-down "
            f"{lacking} if it is written in a baseline row only."
        )
    if not tally.points:
        raise InvalidInput("No row has both x and y; check the columns named by --x and --y.")
    if tally.ones is not None and any(tally.ones):
        columns = [column for covariate in reading.covariates for column in covariate.columns]
        raise InvalidInput(
            f"{columns[tally.ones.index(True)]!r} is 1 for everybody, so its curve cannot be told from the intercept; leave "
            "it out of --design, or check the column."
        )
    if not tally.inside:
        low, high = reading.domain.interval
        shown = f"{low:g}:{high:g}" if reading.domain.origin is None else f"{high:g} days from {reading.domain.origin}"
        raise InvalidInput(f"--domain {shown} misses every point of the data; check its units, or name another --x.")
    if tally.inside < tally.points and reading.outside == "refuse":
        raise InvalidInput(
            "--domain does not hold every x, and --outside refuse was given; widen it to what is possible by definition, or "
            "leave those points out with --outside drop."
        )
    if not tally.within_bounds:
        low, high = reading.y_bounds
        of_y = f" of {reading.y!r}" if reading.measured else ""
        raise InvalidInput(
            f"--y-bounds {low:g}:{high:g} misses every value{of_y or ' of the data'}; check units, or name another --y."
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
