"""One sheet of a workbook (.xlsx and its relatives) as a frame of texts, so that it is read as a CSV file is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl


def read_sheet(path: Path, sheet: str | None) -> pl.DataFrame:
    """The rows of a sheet; the only one if none is named. Dates become 2019-01-31, with their time if they have one."""
    try:
        import fastexcel
    except ModuleNotFoundError:
        raise InvalidInput(
            f"{path.name} needs the package fastexcel (pip install 'dpfda[cli]'); or save it as 'CSV UTF-8'."
        ) from None
    import polars as pl

    try:
        book = fastexcel.read_excel(path)
        name = _choose_sheet(book.sheet_names, sheet, path)
        frame = pl.DataFrame(book.load_sheet(name, dtypes="string"))
    except fastexcel.FastExcelError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InvalidInput(f"{path.name} cannot be read as a workbook ({reason}); save it as 'CSV UTF-8'.") from None
    if not frame.width:
        raise InvalidInput(f"The sheet {name!r} of {path.name} is empty; choose another one with --sheet.")
    frame = frame.rename({column: column.strip() for column in frame.columns})
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))  # rows that were only formatted


def _choose_sheet(names: list[str], sheet: str | None, path: Path) -> str:
    shown = ", ".join(map(repr, names[:12]))
    if sheet is not None and sheet not in names:
        raise InvalidInput(f"{path.name} has no sheet {sheet!r}; it has: {shown}.")
    if sheet is None and len(names) != 1:
        raise InvalidInput(f"{path.name} has {len(names)} sheets ({shown}); choose one with --sheet.")
    return names[0] if sheet is None else sheet
