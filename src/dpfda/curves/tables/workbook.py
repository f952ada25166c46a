"""One sheet of a workbook (.xlsx and its relatives) as a frame of texts, so that it is read as a CSV file is."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from dpfda.curves.tables.failures import is_panic
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl


_KINDS = ("b", "d", "e", "inlineStr", "n", "s", "str")
_ERRORS = ("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!")  # all that the reader knows
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)?", re.IGNORECASE)
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_FAR_PLACE = re.compile(
    rb"""<(?:\w+:)?c\s(?:[^<>]*?\s)?r\s*=\s*["'](?=[A-Za-z]{3}|[A-Za-z]+[0-9]{7})([A-Za-z]+)([0-9]+)["']"""
)
_PERHAPS_FAR = re.compile(rb"""r\s*=\s*["'](?:[A-Za-z]{3}|[A-Za-z]{1,2}[0-9]{7})""")  # faster
_COLUMNS, _ROWS = 16_384, 1_048_576  # of a sheet
_BLOCK, _LONGEST_TAG = 1 << 20, 1 << 12
_FAR_PAST = -1e11  # days; the reader takes such a date as missing, and panics a little further


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

    _refuse_impossible_places(path)
    try:
        return pl.DataFrame(book.load_sheet(name, dtypes="string"))
    except BaseException as error:
        if not _gives_up(error):
            raise
        if not zipfile.is_zipfile(path):
            raise _explain(error, path) from None
    try:
        return pl.DataFrame(fastexcel.read_excel(_blank_unknown_cells(path, name)).load_sheet(name, dtypes="string"))
    except BaseException as error:
        if not _gives_up(error):
            raise
        raise _explain(error, path) from None


def _refuse_impossible_places(path: Path) -> None:
    """Refuse a cell at a place that no workbook has (ZZZZZZ2): the reader would make room for all cells up to it."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as book:
        for name in filter(_is_sheet, book.namelist()):
            rest = b""
            with book.open(name) as sheet:
                while block := sheet.read(_BLOCK):
                    block = rest + block
                    found = _FAR_PLACE.finditer(block) if _PERHAPS_FAR.search(block) else ()
                    for far in filter(_is_beyond_the_sheet, found):
                        place = (far[1] + far[2]).decode()[:20]
                        raise InvalidInput(f"{path.name} has a cell at {place}, which no sheet has; save it anew.")
                    rest = block[-_LONGEST_TAG:]


def _is_beyond_the_sheet(place: re.Match[bytes]) -> bool:
    column = 0
    for letter in place[1].upper()[:8]:
        column = 26 * column + letter - 64
    return column > _COLUMNS or len(place[2]) > 8 or int(place[2]) > _ROWS


def _is_sheet(name: str) -> bool:
    return "worksheets/" in name and name.endswith(".xml")


def _gives_up(error: BaseException) -> bool:
    """Whether the reader gave up at what stands in the workbook; its panics are no Exceptions."""
    import fastexcel

    return isinstance(error, fastexcel.FastExcelError | ElementTree.ParseError) or is_panic(error)


def _blank_unknown_cells(path: Path, sheet: str) -> bytes:
    """The workbook with #N/A, which is read as a missing value, in each cell at which the reader gives up; in no other."""
    with zipfile.ZipFile(path) as book:
        names = book.namelist()
        strings = sum(_count(book.read(name), "si") for name in names if name.endswith("sharedStrings.xml"))
        formats = sum(_count(book.read(name), "xf", "cellXfs") for name in names if name.endswith("styles.xml"))
        dates = _find_date_formats(book, sheet, formats)
        return _change_sheets(book, lambda content: _blank_in_sheet(content, strings, dates))


def _change_sheets(book: zipfile.ZipFile, change: Callable[[bytes], bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as copy:
        for name in book.namelist():
            copy.writestr(name, change(book.read(name)) if _is_sheet(name) else book.read(name))
    return made.getvalue()


def _count(content: bytes, kind: str, within: str | None = None) -> int:
    root = ElementTree.fromstring(content)
    parents = [root] if within is None else [element for element in root if _is_called(element, within)]
    return sum(_is_called(element, kind) for parent in parents for element in parent)


def _find_date_formats(book: zipfile.ZipFile, sheet: str, formats: int) -> frozenset[int]:
    """The places of the formats that make a number a date, by the reader's own word on a workbook with one cell of each."""
    import fastexcel

    if not formats:
        return frozenset()
    rows = "".join(f'<row r="{k + 1}"><c r="A{k + 1}" s="{k}"><v>2.5</v></c></row>' for k in range(formats))
    probe = f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'.encode()
    made = fastexcel.read_excel(_change_sheets(book, lambda _: probe))
    cells = made.load_sheet(sheet, header_row=None, dtypes="string").to_polars().to_series()
    return frozenset(place for place, cell in enumerate(cells) if cell != "2.5")


def _blank_in_sheet(content: bytes, strings: int, dates: frozenset[int]) -> bytes:
    sheet = ElementTree.fromstring(content)
    cells = [element for element in sheet.iter() if _is_called(element, "c")]
    for cell in (cell for cell in cells if _is_unknown(cell, strings) or _is_far_date(cell, dates)):
        cell.attrib["t"] = "e"
        space = cell.tag.removesuffix("c")
        for part in list(cell):
            cell.remove(part)
        ElementTree.SubElement(cell, f"{space}v").text = "#N/A"
    return bytes(ElementTree.tostring(sheet, encoding="utf-8"))


def _is_unknown(cell: ElementTree.Element, strings: int) -> bool:
    """Whether the reader gives up at this cell."""
    kind = cell.get("t")
    if kind is None or kind not in _KINDS:
        return kind is not None
    return any(_is_no_value(value, kind, strings) for value in _read_values(cell))


def _is_no_value(value: str, kind: str, strings: int) -> bool:
    if kind == "s":
        return _read_place(value) >= strings
    return (kind == "e" and value.strip() not in _ERRORS) or (kind == "n" and not _NUMBER.fullmatch(value))


def _read_values(cell: ElementTree.Element) -> list[str]:
    """What stands in it: one text, but nothing keeps a writer from several, each of which the reader reads."""
    return [part.text or "" for part in cell if _is_called(part, "v")] or [""]


def _is_far_date(cell: ElementTree.Element, dates: frozenset[int]) -> bool:
    """Whether this is a number in a cell of dates that is long before all of them: a missing value, or a panic."""
    if cell.get("t", "n") != "n" or _read_place(cell.get("s", "0")) not in dates:
        return False
    return any(float(value) < _FAR_PAST for value in _read_values(cell) if _is_number(value))


def _is_number(value: str) -> bool:
    return bool(value.strip("+-") and _NUMBER.fullmatch(value))


def _read_place(value: str) -> int:
    """The place of a shared text as the reader takes it: the first one, if this is no such number."""
    place = int(value) if re.fullmatch("[0-9]{1,20}", value) else 0
    return place if place < 1 << 64 else 0


def _is_called(element: ElementTree.Element, name: str) -> bool:
    """Whether this is its name, whatever stands for the name's space."""
    return isinstance(element.tag, str) and element.tag.rpartition("}")[2] == name


def _explain(error: BaseException, path: Path) -> InvalidInput:
    reason = str(error).splitlines()[0].rstrip(".")
    return InvalidInput(f"{path.name} cannot be read as a workbook ({reason}); save it as 'CSV UTF-8'.")


def _choose_sheet(names: list[str], sheet: str | None, path: Path) -> str:
    shown = ", ".join(map(repr, names[:12]))
    if sheet is not None and sheet not in names:
        raise InvalidInput(f"{path.name} has no sheet {sheet!r}; it has: {shown}.")
    if sheet is None and len(names) != 1:
        raise InvalidInput(f"{path.name} has {len(names)} sheets ({shown}); choose one with --sheet.")
    return names[0] if sheet is None else sheet
