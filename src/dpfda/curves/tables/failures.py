"""Errors while a table is read: whether its rows made them, or the source as a whole.

At a site, rows never refuse: what they make fail gives empty curves and a note to the owner. So anything that is raised
counts as made by rows if the source can be opened and has the columns, panics of compiled readers included. Not counted are
the type of a column, which stands in a file's schema (`column_types`), the machine (memory, the disk), the user's own
interruption, and a server that cannot be reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpfda.curves.tables.batches import read_column_names
from dpfda.curves.tables.column_types import UnreadType
from dpfda.curves.tables.stores import open_locally
from dpfda.errors import InvalidInput, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dpfda.curves.tables.source import Source

_OF_THE_MACHINE = (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, OSError)
_LONGEST = 200  # letters of a reason


def is_made_by_rows(
    error: BaseException, source: Source, separator: str | None, choose: Callable[[list[str]], object]
) -> bool:
    """Whether the source opens and has the columns, so that only its rows can have raised this."""
    if isinstance(error, (*_OF_THE_MACHINE, UnreadType)) or (isinstance(error, SourceError) and not source.is_database):
        return False
    try:
        if source.kind == "excel":
            from dpfda.curves.tables.workbook import find_sheet

            with open_locally(source) as local:
                find_sheet(local.path, source.sheet)
        else:
            choose(read_column_names(source, separator, rows_refuse=False))
    except BaseException as found:  # a panic of a compiled reader is no Exception
        if not isinstance(found, Exception) and not is_panic(found):
            raise
        return False
    return True


def is_panic(error: BaseException) -> bool:
    """Whether a compiled reader gave up on a value."""
    return not isinstance(error, Exception) and type(error).__name__.startswith("Panic")


def explain_panic(error: BaseException, source: Source) -> InvalidInput:
    """The sentence for the owner where a compiled reader gave up on a value."""
    reason = describe_error(error)
    return InvalidInput(
        f"{source.name} holds a value that cannot be read ({reason}); correct or empty it, or export the table as CSV."
    )


def describe_error(error: BaseException) -> str:
    """One line about an error."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:_LONGEST]}".rstrip(".: ")
