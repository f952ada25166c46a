"""From a source to curves, with notes for the owner. Refuses before anything is spent."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.curves.curves import Curves
from dpfda.curves.tables.batches import BATCH_ROWS, Batches, open_batches
from dpfda.curves.tables.cells import write_objects
from dpfda.curves.tables.covariates import Covariate
from dpfda.curves.tables.failures import describe_error, explain_panic, is_made_by_rows, is_panic
from dpfda.curves.tables.files import NotText
from dpfda.curves.tables.gathering import Collector, NotSorted
from dpfda.curves.tables.owner_view import Tally, find_doubts, refuse_copies, write_notes
from dpfda.curves.tables.reading import Domain, Reading
from dpfda.curves.tables.rows import MixedIds, RowReader, Rows
from dpfda.curves.tables.shaping import shape_without_copies_check
from dpfda.curves.tables.source import Source, find_source
from dpfda.curves.tables.spoiling import fit_to_number, no_curve
from dpfda.curves.tables.wide import find_value_columns, unpivot
from dpfda.errors import InvalidInput, SourceError

if TYPE_CHECKING:
    import polars as pl

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Loaded:
    """Curves inside the public domain and the names of their design columns; for the owner, NOT PRIVATE, notes and doubts.

    Doubts are reasons to ask the owner, at a terminal, before anything is spent.
    """

    curves: Any  # `Curves`, or what a silo takes in their place
    functions: tuple[str, ...]
    owner_notes: tuple[str, ...]
    owner_doubts: tuple[str, ...] = ()


def load_curves(
    source: Source,
    reading: Reading,
    *,
    scratch: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    rows_at_once: int = BATCH_ROWS,
    n: int | None = None,
) -> Loaded:
    """Read, check and shape one table, also one that is larger than memory.

    The number of curves is public, so every subject in the table becomes a curve, if need be an empty one. What is
    refused here is reported to the owner only, before any release. Beyond twelve times `rows_at_once` rows, a table in long
    format is put in order on disk, in nameless files of the folder `scratch`, and the curves are maps of such files.
    `progress` is told how many steps are done, and of how many as far as is known. With `n`, a public number, there are
    n curves whatever the table holds: the first n, and empty ones if there are fewer.
    """
    read = partial(read_curves, source, reading, scratch=scratch, progress=progress, rows_at_once=rows_at_once)
    try:
        curves, findings = _read_twice_if_lost(read) if source.is_database and reading.never_refuses else read()
        notes = refuse_or_note([findings], reading)
    except BaseException as error:  # a panic of a compiled reader is no Exception
        instead = _stand_in(error, source, reading, n)
        if instead is not None:
            return instead
        if not is_panic(error):
            raise  # as it is: a name for it would keep its frames, and with them an open ledger
        raise explain_panic(error, source) from None
    if n is not None and findings.tally.subjects != n:
        notes = (f"the table holds {findings.tally.subjects:,} subjects where the study states {n:,}", *notes)
        curves = fit_to_number(curves, n)
    return Loaded(curves, reading.functions, notes, doubt([findings], reading))


def _read_twice_if_lost(read: Callable[[], tuple[Curves, Findings]]) -> tuple[Curves, Findings]:
    """A connection that broke is tried once more: what rows do to a reader they do again."""
    try:
        return read()
    except SourceError:
        return read()


def _stand_in(error: BaseException, source: Source, reading: Reading, n: int | None) -> Loaded | None:
    """n empty curves and a note where rows have made an error that they may not make, else nothing."""
    choose = partial(choose_columns, source=source, reading=reading)
    if n is None or not reading.never_refuses or not is_made_by_rows(error, source, reading.separator, choose):
        return None
    empty = fit_to_number(no_curve(len(reading.functions)), n)
    note = f"the rows could not be read, so that all {n:,} curves are empty ({describe_error(error)})"
    return Loaded(empty, reading.functions, (note,))


@dataclass(frozen=True)
class Findings:
    """What was found while reading some of the subjects: counts, and notes about the whole table. NOT PRIVATE."""

    tally: Tally
    notes: tuple[str, ...]


def read_curves(
    source: Source,
    reading: Reading,
    *,
    keep: Callable[[Rows], Rows] | None = None,
    narrow: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None,
    frames: Sequence[pl.DataFrame] | None = None,
    scratch: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    rows_at_once: int = BATCH_ROWS,
) -> tuple[Curves, Findings]:
    """The curves of a table, or of the subjects whose rows `keep` leaves; what single rows show is refused if they may.

    `narrow` may leave out rows that `keep` would leave out, before they are read (`open_batches`). `frames` are the rows
    where they have been read already.
    """
    reader, may_be_sorted, mending = RowReader(reading), True, False
    while True:
        try:
            opened: AbstractContextManager[Batches] = nullcontext(Batches(iter(frames or ()), None))
            if frames is None:
                opened = open_batches(
                    source,
                    partial(choose_columns, source=source, reading=reading),
                    reading.separator,
                    rows_at_once,
                    tolerant=reading.never_refuses,
                    mending=mending,
                    narrow=narrow,
                    scratch=scratch,
                    id=reading.id,
                )
            with opened as batches:
                collector = Collector(reading, rows_at_once, scratch, may_be_sorted=may_be_sorted)
                return _collect_curves(batches, reader, collector, source, keep, progress or _ignore)
        except NotSorted:
            may_be_sorted, reader = False, RowReader(reading, reader.text_ids)
        except MixedIds:
            if not reading.never_refuses or reader.text_ids:
                raise
            reader = RowReader(reading, text_ids=True)
        except NotText:
            if not reading.never_refuses or mending:
                raise
            mending, reader = True, RowReader(reading, reader.text_ids)


def _collect_curves(
    batches: Batches,
    reader: RowReader,
    collector: Collector,
    source: Source,
    keep: Callable[[Rows], Rows] | None,
    report: Progress,
) -> tuple[Curves, Findings]:
    reading = reader.reading
    if reading.wide:
        curves, tally = _read_wide_curves(batches.frames, source, reader)
        return curves, Findings(replace(tally, seen=reader.levels_seen), tuple(reader.finish()))
    for frame in batches.frames:
        if frame.height:
            rows = reader.read(frame)
            collector.add(rows if keep is None else keep(rows))
            report(reader.rows, 2 * (batches.rows or reader.rows))
    if reading.never_refuses and not collector.rows:
        reader.complain(f"{source.name} has no row with an id.")
        return no_curve(len(reading.functions)), Findings(Tally(), tuple(reader.finish()))
    _refuse_no_rows(reader.rows, source)
    notes = reader.finish()
    curves = collector.curves(lambda done: report(reader.rows + done, 2 * reader.rows))
    curves = _forget_unused_designs(curves) if reading.covariates else curves
    if reading.one_design and curves.design_changes:
        raise InvalidInput(
            "A covariate of --design changes within a subject, but the published method has one value for each subject; use "
            "the default method, or a column with one value (such as that of the first visit)."
        )
    return curves, Findings(replace(collector.tally, seen=reader.levels_seen), tuple(notes))


def _forget_unused_designs(curves: Curves) -> Curves:
    """Curves without points have no design, which no release reads: else it would depend on how the rows were read."""
    unused = (curves.counts == 0) & curves.design.any(axis=1)
    if not unused.any():
        return curves
    design = np.where(unused[:, None], 0.0, curves.design)
    return Curves.of_checked_arrays(
        curves.x, curves.y, curves.offsets, design, curves.labels, curves.rows, curves.names
    )


def _ignore(done: int, planned: int) -> None:
    """No progress is shown."""


def refuse_or_note(findings: Sequence[Findings], reading: Reading) -> tuple[str, ...]:
    """The notes for the owner on parts that together are a whole table; refuses what only the whole shows."""
    tally = sum((each.tally for each in findings), Tally())
    copies = refuse_copies(tally, reading)
    return (*copies, *findings[0].notes, *write_notes(tally, reading))


def doubt(findings: Sequence[Findings], reading: Reading) -> tuple[str, ...]:
    """Reasons to ask the owner before anything is spent, from parts that together are a whole table."""
    return tuple(find_doubts(sum((each.tally for each in findings), Tally()), reading))


def curves_from_source(
    location: str | os.PathLike[str],
    *,
    id: str,
    x: str,
    y: str,
    domain: tuple[float, float] | Domain,
    y_bounds: tuple[float, float],
    design: Sequence[Covariate] = (),
    query: str | None = None,
    scratch: str | os.PathLike[str] | None = None,
    **how: Any,
) -> Curves:
    """Curves of a file, a folder or a database in long format, by the rules of `dpfda fit`.

    `id`, `x` and `y` name columns; `domain` and `y_bounds` are PUBLIC ranges; `design` are `Covariate`s with their public
    bounds or levels, and an intercept is put before them; `query` goes with a database; `scratch` is the folder for
    tables larger than memory; `how` is what else `Reading` takes (separator, decimal, duplicates, fill_down).
    """
    public = domain if isinstance(domain, Domain) else Domain.between(*domain)
    reading = Reading(public, y_bounds, id=id, x=x, y=y, covariates=tuple(design), **how)
    curves: Curves = load_curves(find_source(os.fspath(location), query), reading, scratch=scratch).curves
    return curves


def _stack(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Frames one below the other; a column that is not of the same type in all of them as texts."""
    import polars as pl

    mixed = [name for name in frames[0].columns if len({frame[name].dtype for frame in frames}) > 1]
    texts = (frame.with_columns(write_objects(frame[name]).cast(pl.String) for name in mixed) for frame in frames)
    return pl.concat(texts)


def _read_wide_curves(frames: Iterator[pl.DataFrame], source: Source, reader: RowReader) -> tuple[Curves, Tally]:
    frame = _stack(list(frames))
    _refuse_no_rows(frame.height, source)
    owners, x, y = unpivot(frame, reader)
    design = reader.design(frame)
    reader.rows = frame.height
    part = shape_without_copies_check(owners, x, y, None if design is None else design[owners], reader.reading)
    return part.curves, part.tally


def _refuse_no_rows(rows: int, source: Source) -> None:
    if not rows:
        raise InvalidInput(f"{source.name} has a header but no rows; export it again, or correct --query.")


def choose_columns(columns: list[str], source: Source, reading: Reading) -> list[str]:
    """The columns to read; a wrong name is refused with the nearest right one."""
    named = [("id", reading.id), ("x", reading.x), *(("design", covariate.name) for covariate in reading.covariates)]
    if not reading.wide:
        named[2:2] = [("y", reading.y), *(("y", other) for other in reading.measured)]
    refuse_unknown_columns(columns, [(f"--{role}", column) for role, column in named if column is not None], source)
    if not reading.wide:
        return [column for _, column in named if column is not None]
    if reading.x is not None:
        return columns
    return [column for _, column in named if column is not None] + find_value_columns(columns, reading)


def _suggest_column(option: str, column: str, columns: list[str]) -> str:
    """The nearest column there is; of columns with commas between them, how to name several."""
    parts = [part.strip() for part in column.split(",")]
    if option == "--y" and len(parts) > 1 and set(parts) <= set(columns):
        return f" (for several outcomes repeat the option: {' '.join(f'--y {part}' for part in parts)})"
    near = difflib.get_close_matches(column, columns, n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""


def refuse_unknown_columns(columns: list[str], named: Sequence[tuple[str, str]], source: Source) -> None:
    """Refuse the first column that is named and not there, with the nearest one that is."""
    for option, column in named:
        if column not in columns:
            hint = _suggest_column(option, column, columns)
            names = (name if name.isprintable() else repr(name) for name in columns[:12])
            shown = ", ".join(names) + (", ..." if len(columns) > 12 else "")
            raise InvalidInput(
                f"{option} names the column {column!r}, which {source.name} lacks{hint}; it has: {shown}."
            )
