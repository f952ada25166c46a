"""One sheet of a workbook (.xlsx and its relatives) as a frame of texts, so that it is read as a CSV file is."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl


_CELL = re.compile(rb"<c\b([^>]*?)(?:/>|>(.*?)</c>)", re.DOTALL)
_KIND = re.compile(rb'\st="([^"]*)"')
_PLACE = re.compile(rb'\sr="[^"]*"')
_VALUE = re.compile(rb"<v[^>]*>(.*?)</v>", re.DOTALL)
_KINDS = (b"b", b"d", b"e", b"inlineStr", b"n", b"s", b"str")
_ERRORS = (b"#DIV/0!", b"#N/A", b"#NAME?", b"#NULL!", b"#NUM!", b"#REF!", b"#VALUE!")  # all that the reader knows


def read_sheet(path: Path, sheet: str | None) -> pl.DataFrame:
    """The rows of a sheet; the only one if none is named. Dates become 2019-01-31, with their time if they have one."""
    import polars as pl

    book, name = _open_sheet(path, sheet)
    frame = _load(book, name, path)
    if not frame.width:
        raise InvalidInput(f"The sheet {name!r} of {path.name} is empty; choose another one with --sheet.")
    frame = frame.rename({column: column.strip() for column in frame.columns})
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))  # rows that were only formatted


def find_sheet(path: Path, sheet: str | None) -> str:
    """The name of the sheet that is read; no cell is looked at."""
    return _open_sheet(path, sheet)[1]


def _open_sheet(path: Path, sheet: str | None) -> tuple[Any, str]:
    try:
        import fastexcel
    except ModuleNotFoundError:
        raise InvalidInput(
            f"{path.name} needs the package fastexcel (pip install 'dpfda[cli]'); or save it as 'CSV UTF-8'."
        ) from None
    try:
        book = fastexcel.read_excel(path)
    except fastexcel.FastExcelError as error:
        raise _explain(error, path) from None
    return book, _choose_sheet(book.sheet_names, sheet, path)


def _load(book: Any, name: str, path: Path) -> pl.DataFrame:
    """The cells as texts. The reader gives up at a cell that it does not know; such cells are blanked, each by itself."""
    import fastexcel
    import polars as pl

    try:
        return pl.DataFrame(book.load_sheet(name, dtypes="string"))
    except fastexcel.FastExcelError as error:
        if not zipfile.is_zipfile(path):
            raise _explain(error, path) from None
    try:
        return pl.DataFrame(fastexcel.read_excel(_blank_unknown_cells(path)).load_sheet(name, dtypes="string"))
    except fastexcel.FastExcelError as error:
        raise _explain(error, path) from None


def _blank_unknown_cells(path: Path) -> bytes:
    """The workbook with #N/A, which is read as a missing value, in each cell of a kind or an error that is not known."""
    made = io.BytesIO()
    with zipfile.ZipFile(path) as book, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as copy:
        strings = sum(book.read(name).count(b"<si>") for name in book.namelist() if name.endswith("sharedStrings.xml"))
        for name in book.namelist():
            content = book.read(name)
            if "worksheets/" in name and name.endswith(".xml"):
                content = _CELL.sub(lambda cell: _blank_if_unknown(cell, strings), content)
            copy.writestr(name, content)
    return made.getvalue()


def _blank_if_unknown(cell: re.Match[bytes], strings: int) -> bytes:
    kind, found = _KIND.search(cell[1]), _VALUE.search(cell[2] or b"")
    value = found[1].strip() if found else b""
    if kind is None or (kind[1] in _KINDS and kind[1] not in (b"e", b"s")):
        return cell[0]
    if (kind[1] == b"e" and value in _ERRORS) or (kind[1] == b"s" and value.isdigit() and int(value) < strings):
        return cell[0]
    place = _PLACE.search(cell[1])
    return b"<c" + (place[0] if place else b"") + b' t="e"><v>#N/A</v></c>'


def _explain(error: Exception, path: Path) -> InvalidInput:
    reason = str(error).splitlines()[0].rstrip(".")
    return InvalidInput(f"{path.name} cannot be read as a workbook ({reason}); save it as 'CSV UTF-8'.")


def _choose_sheet(names: list[str], sheet: str | None, path: Path) -> str:
    shown = ", ".join(map(repr, names[:12]))
    if sheet is not None and sheet not in names:
        raise InvalidInput(f"{path.name} has no sheet {sheet!r}; it has: {shown}.")
    if sheet is None and len(names) != 1:
        raise InvalidInput(f"{path.name} has {len(names)} sheets ({shown}); choose one with --sheet.")
    return names[0] if sheet is None else sheet
