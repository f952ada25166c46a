"""One sheet of a workbook (.xlsx and its relatives) as a frame of texts, so that it is read as a CSV file is."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl


_KINDS = ("b", "d", "e", "inlineStr", "n", "s", "str")
_ERRORS = ("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!")  # all that the reader knows
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)?", re.IGNORECASE)


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
    except (fastexcel.FastExcelError, ElementTree.ParseError) as error:
        raise _explain(error, path) from None


def _blank_unknown_cells(path: Path) -> bytes:
    """The workbook with #N/A, which is read as a missing value, in each cell at which the reader gives up; in no other."""
    made = io.BytesIO()
    with zipfile.ZipFile(path) as book, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as copy:
        names = book.namelist()
        strings = sum(_count_strings(book.read(name)) for name in names if name.endswith("sharedStrings.xml"))
        for name in names:
            content = book.read(name)
            if "worksheets/" in name and name.endswith(".xml"):
                content = _blank_in_sheet(content, strings)
            copy.writestr(name, content)
    return made.getvalue()


def _count_strings(content: bytes) -> int:
    return sum(_is_called(element, "si") for element in ElementTree.fromstring(content))


def _blank_in_sheet(content: bytes, strings: int) -> bytes:
    sheet = ElementTree.fromstring(content)
    for cell in (element for element in sheet.iter() if _is_called(element, "c") and _is_unknown(element, strings)):
        cell.attrib["t"] = "e"
        space = cell.tag.removesuffix("c")
        for part in list(cell):
            cell.remove(part)
        ElementTree.SubElement(cell, f"{space}v").text = "#N/A"
    return bytes(ElementTree.tostring(sheet, encoding="utf-8"))


def _is_unknown(cell: ElementTree.Element, strings: int) -> bool:
    """Whether the reader gives up at this cell."""
    kind = cell.get("t")
    value = next((part.text or "" for part in cell if _is_called(part, "v")), "")
    if kind is None or kind not in _KINDS:
        return kind is not None
    if kind == "s":
        return _read_place(value) >= strings
    return (kind == "e" and value.strip() not in _ERRORS) or (kind == "n" and not _NUMBER.fullmatch(value))


def _read_place(value: str) -> int:
    """The place of a shared text as the reader takes it: the first one, if this is no such number."""
    place = int(value) if re.fullmatch("[0-9]{1,20}", value) else 0
    return place if place < 1 << 64 else 0


def _is_called(element: ElementTree.Element, name: str) -> bool:
    """Whether this is its name, whatever stands for the name's space."""
    return isinstance(element.tag, str) and element.tag.rpartition("}")[2] == name


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
