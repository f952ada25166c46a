"""Rows of a long table as numbers: what one batch of a source becomes, and the notes about it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.curves.tables.cells import show_cell, write_objects
from dpfda.curves.tables.covariates import write_levels
from dpfda.curves.tables.numbers import parse_choices, parse_numbers, parse_positions, refuse
from dpfda.curves.tables.owner_view import LevelTally, judge_levels
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from dpfda.curves.tables.covariates import Covariate
    from dpfda.curves.tables.reading import Reading

_MOST_COMPLAINTS = 20
_EXACT = 2**53  # whole numbers below it are floats too


@dataclass(frozen=True)
class Rows:
    """Consecutive rows. `ids` are Int64, UInt64, Float64 or String, none missing; x, y and design may hold NaN."""

    ids: pl.Series
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    design: NDArray[np.float64] | None

    def __len__(self) -> int:
        return self.x.size

    def __getitem__(self, part: slice | NDArray[np.int64] | NDArray[np.bool_]) -> Rows:
        ids = self.ids[part] if isinstance(part, slice) else _pick(self.ids, part)
        return Rows(ids, self.x[part], self.y[part], None if self.design is None else self.design[part])


def join_rows(parts: list[Rows]) -> Rows:
    """Rows one after the other."""
    if len(parts) == 1:
        return parts[0]
    designs = [part.design for part in parts if part.design is not None]
    return Rows(
        join_ids([part.ids for part in parts]),
        np.concatenate([part.x for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate(designs) if designs else None,
    )


def join_ids(parts: list[pl.Series]) -> pl.Series:
    """Ids one after the other."""
    import polars as pl

    return pl.concat(parts)


@dataclass
class RowReader:
    """Turns the batches of one source into `Rows`. What only the whole source can decide is refused by `finish`.

    Where rows never refuse, complaints become notes, an entry that cannot be read is infinite, and rows without an id,
    which belong to nobody, are left out. With `text_ids`, ids of any type are taken as text.
    """

    reading: Reading
    text_ids: bool = False
    rows: int = 0
    without_id: int = 0
    levels: dict[str, LevelTally] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    complaints: dict[str, None] = field(default_factory=dict)  # an ordered set
    _kind: pl.DataType | None = None

    def complain(self, sentence: str) -> None:
        """Refuse, or keep the sentence for the owner."""
        if not self.reading.never_refuses:
            refuse(sentence)
        if len(self.complaints) < _MOST_COMPLAINTS:
            self.complaints[sentence] = None

    def read(self, frame: pl.DataFrame) -> Rows:
        """The next batch; a text in a number column is refused with its row."""
        reading, before = self.reading, self.rows
        assert reading.id is not None
        assert reading.x is not None
        assert reading.y is not None
        how: dict[str, Any] = {"rows_before": before, "complain": self.complain}
        self._check_units(frame[reading.x])
        x = parse_positions(frame[reading.x], reading.domain, reading.cells, **how)
        y = self.values(frame[reading.y])
        for other in reading.measured:
            y = np.where(np.isfinite(self.values(frame[other])), y, np.nan)
        ids = write_ids(frame[reading.id]) if self.text_ids else simplify_ids(frame[reading.id])
        design = self.design(frame)
        self.rows += frame.height
        rows = Rows(ids, x, y, design)
        if ids.null_count():
            self.without_id += ids.null_count()
            rows = rows[ids.is_not_null().to_numpy()]
            if not len(rows):
                return rows
        self._kind = self._kind or ids.dtype
        return replace(rows, ids=match_ids(rows.ids, self._kind))

    def values(self, column: pl.Series) -> NDArray[np.float64]:
        """The y of every row."""
        reading, how = self.reading, {"rows_before": self.rows, "complain": self.complain}
        if reading.y_levels:
            return parse_choices(column, reading.y_levels, reading.cells, **how)  # type: ignore[arg-type]
        self._check_units(column)
        hint = "; name both values of a yes/no column with --y-levels no,yes"
        return parse_numbers(column, reading.cells, hint=hint, **how)  # type: ignore[arg-type]

    def design(self, frame: pl.DataFrame) -> NDArray[np.float64] | None:
        """The design columns, not finite where a covariate is missing or not a listed level."""
        columns = []
        for covariate in self.reading.covariates:
            column = frame[covariate.name]
            if covariate.bounds is None:
                columns.append(covariate.indicators(column, self.reading.cells))
                self._count_levels(covariate, column, ~np.isfinite(columns[-1][:, 0]))
                continue
            self._check_units(column)
            name = covariate.name
            hint = f"; of a category, give --levels {name}=first,second,... instead of --bounds"
            how: dict[str, Any] = {"rows_before": self.rows, "complain": self.complain, "hint": hint}
            columns.append(parse_numbers(column, self.reading.cells, **how)[:, None])
        return np.hstack(columns) if columns else None

    def _count_levels(self, covariate: Covariate, column: pl.Series, unknown: NDArray[np.bool_]) -> None:
        tally = self.levels.setdefault(covariate.name, LevelTally())
        text = write_levels(column)
        unlisted = self.reading.cells.text(text).is_not_null().to_numpy() & unknown
        count = int(np.count_nonzero(unlisted))
        if count and not tally.unlisted:
            place = int(np.argmax(unlisted))
            tally.first_unlisted = f"row {self.rows + place + 1} is {show_cell(text[place])}"
        tally.unlisted += count
        tally.missing += int(np.count_nonzero(unknown)) - count
        if len(tally.seen) < len(covariate.levels):
            tally.seen |= set(text.unique().to_list()) & set(covariate.levels)

    def _check_units(self, column: pl.Series) -> None:
        """Complain of a column with several units, of which none could be stripped without a change of meaning."""
        import polars as pl

        if not self.reading.strip_units or column.dtype != pl.String:
            return
        for unit in self.reading.cells.units(self.reading.cells.text(column)):
            first = self.units.setdefault(column.name, unit)
            if unit != first:
                self.complain(
                    f"The column {column.name!r} has the units {first!r} and {unit!r}; --strip-units needs one unit, so "
                    "bring the column to one."
                )

    @property
    def levels_seen(self) -> dict[str, frozenset[str]]:
        """The listed levels that occur, by category."""
        return {name: frozenset(tally.seen) for name, tally in self.levels.items()}

    def finish(self) -> list[str]:
        """Refuse what the whole table shows to be wrong; else the notes for the owner."""
        if self.without_id:
            self.complain(str(explain_missing_ids(self.without_id, self.reading)))
        for covariate in self.reading.covariates:
            if covariate.name in self.levels:
                wrong = judge_levels(covariate, self.levels[covariate.name], self.rows)
                if wrong is not None:
                    self.complain(wrong)
        return [*self.complaints]


def explain_missing_ids(count: int, reading: Reading) -> InvalidInput:
    """The error for rows without an id."""
    return InvalidInput(
        f"{count:,} rows have no {reading.id!r}: they belong to no subject; drop them or give them an id."
    )


class MixedIds(InvalidInput):
    """Ids of several types, which have no common order but that of texts."""


def _explain_mixed_types(name: str) -> MixedIds:
    return MixedIds(
        f"The column {name!r} has ids of several types; make them one type with CAST(... AS ...) in --query."
    )


def write_ids(column: pl.Series) -> pl.Series:
    """The ids as text, whatever they are; missing ones are null. 1 and 1.0 are one subject."""
    import polars as pl

    if column.dtype == pl.Object or column.dtype.is_float():
        column = pl.Series(column.name, list(map(_settle_number, column)), dtype=pl.Object)
    return write_objects(column).cast(pl.String).str.strip_chars().replace("", None)


def simplify_ids(column: pl.Series) -> pl.Series:
    """The ids in a type that sorts and compares plainly, in the order of the original; missing ones are null."""
    import polars as pl

    if column.dtype == pl.Object:
        column = _unify_ids(column)
    kind = column.dtype
    if kind.is_float():
        return column.cast(pl.Float64).fill_nan(None) + 0.0  # -0.0 is 0.0
    if kind == pl.UInt64:
        return column
    if kind == pl.Boolean or (kind.is_integer() and kind not in (pl.Int128, pl.UInt128)):
        return column.cast(pl.Int64)
    if kind.is_temporal():
        return column.to_physical().cast(pl.Int64)
    if kind == pl.Binary:
        return column.bin.encode("hex")
    return write_objects(column).cast(pl.String).str.strip_chars().replace("", None)


def _unify_ids(column: pl.Series) -> pl.Series:
    """Ids of Python objects as numbers or as texts; 1 and 1.0 are one subject. No two whole numbers become one float."""
    import polars as pl

    ids = list(map(_settle_number, column))
    types = {type(value) for value in ids if value is not None}
    whole = [value for value in ids if type(value) is int]
    if types == {int} and min(whole) >= -(1 << 63) and max(whole) < 1 << 63:
        return pl.Series(column.name, ids, dtype=pl.Int64)
    if types == {int, float} and max(map(abs, whole)) < _EXACT:
        return pl.Series(column.name, ids, dtype=pl.Float64, strict=False)
    if len(types) > 1:
        raise _explain_mixed_types(column.name)
    return pl.Series(column.name, [None if value is None else str(value) for value in ids], dtype=pl.String)


def _settle_number(value: Any) -> Any:
    """A whole number as such, None for one that is none; anything else as it is."""
    if type(value) is not float:
        return value
    return int(value) if value.is_integer() else None if np.isnan(value) else value


def match_ids(ids: pl.Series, kind: pl.DataType) -> pl.Series:
    """Ids, none missing, of a type that earlier ids of the same source have; refused where that would change one."""
    import polars as pl

    if ids.dtype == kind:
        return ids
    if {ids.dtype, kind} == {pl.Int64(), pl.Float64()}:
        matched, floats = ids.cast(kind, strict=False), ids.cast(pl.Float64)
        exact = (matched.cast(pl.Float64) == floats) & (floats.abs() < _EXACT)
        if exact.fill_null(False).all():
            return matched
    raise _explain_mixed_types(ids.name)


def _pick(ids: pl.Series, part: NDArray[np.int64] | NDArray[np.bool_]) -> pl.Series:
    import polars as pl

    return ids.filter(pl.Series(part)) if part.dtype == np.bool_ else ids.gather(part)
