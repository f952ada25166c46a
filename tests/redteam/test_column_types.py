"""Every type that Arrow can make, in every role and typed file, with one cell of one subject changed.

Later reviews than the nine on record found holes of one kind: types at which compiled readers disagree or give up (lists,
structures, extensions, decimals of many digits, dates beyond calendars). `curves/tables/column_types.py` is the list of
types that are read; any other refuses by its schema. So for any type: either both of two neighbouring tables are refused, in
the same words, or the other subjects have the same curves, bit by bit, in the same places.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("cryptography")

from hospital import BASE, Hospital, open_consortium

from dpfda.curves.curves import Curves
from dpfda.curves.tables import Covariate, Domain, Reading, find_source, load_curves
from dpfda.errors import InvalidInput

SUBJECTS, VISITS = 5, 2
ROWS = SUBJECTS * VISITS
IDS = [f"s{row // VISITS}" for row in range(ROWS)]
ROLES = ("id", "x", "y", "arm", "note")
NO_TEXT = b"\xff\xfe0"


class Mark(pa.ExtensionType):
    """An extension that no reader knows."""

    def __init__(self, storage: Any) -> None:
        super().__init__(storage, "dpfda.test.mark")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: Any, _: bytes) -> Mark:
        return cls(storage)


# ------------------------------------------------------------ types and cells

NUMBERS = [
    *(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)),
    pa.float16(), pa.float32(), pa.float64(), pa.bool_(),
]  # fmt: skip
MOMENTS = [
    pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")), pa.timestamp("us", "UTC"),
    pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("ms", "+02:00"), pa.timestamp("us", "+05:30"),
    pa.timestamp("us", "No/Where"), pa.duration("s"), pa.duration("ns"),
]  # fmt: skip
DECIMALS = [
    pa.decimal32(5, 2), pa.decimal64(12, 3), pa.decimal128(20, 4), pa.decimal128(38, 0), pa.decimal256(10, 2),
    pa.decimal256(60, 3), pa.decimal128(4, -2),
]  # fmt: skip
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3)]
LEAVES = [*NUMBERS, *MOMENTS, *DECIMALS, *TEXTS, *BYTES, pa.null(), pa.month_day_nano_interval()]
LEVELS = (
    "0", "1", "false", "true", "b'0'", "b'1'", "b'0  '", "b'1  '", "1970-01-01", "1970-01-02",
    "1970-01-01 00:00:00.000000",
)  # fmt: skip


def make_leaf(kind: Any) -> Any:
    """0 or 1 in every row, in whatever way the type writes them."""
    digits = [row // VISITS % 2 for row in range(ROWS)]
    if pa.types.is_null(kind):
        return pa.nulls(ROWS)
    if kind in TEXTS or kind in BYTES:
        width = getattr(kind, "byte_width", 1) if pa.types.is_fixed_size_binary(kind) else 1
        return make_bytes(kind, [str(digit).encode().ljust(width) for digit in digits])
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(digit) if kind.scale >= 0 else Decimal(0) for digit in digits], kind)
    if pa.types.is_interval(kind):
        return pa.array([(digit, 0, 0) for digit in digits], kind)
    if pa.types.is_temporal(kind):
        digits = [digit * 86_400_000 for digit in digits] if kind == pa.date64() else digits
        return pa.array(digits, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return (
        pa.array([bool(digit) for digit in digits]) if kind == pa.bool_() else pa.array(digits, pa.int64()).cast(kind)
    )


def make_bytes(kind: Any, cells: list[bytes | None]) -> Any:
    """Cells of texts or bytes; no reader is asked whether they are texts."""
    if pa.types.is_fixed_size_binary(kind):
        return pa.array([None if cell is None else cell[:3].ljust(3) for cell in cells], kind)
    plain = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    made = pa.array(cells, plain.get(kind, kind))
    return pa.Array.from_buffers(kind, len(made), made.buffers(), made.null_count)


def change_leaf(kind: Any) -> Iterator[Any]:
    """The same with another first cell: nothing, and bytes that may mean anything."""
    usual = make_leaf(kind)
    if pa.types.is_null(kind):
        return
    if kind in TEXTS or kind in BYTES:
        cells = [None if cell is None else bytes(cell) for cell in usual.cast(pa.large_binary()).to_pylist()]
        for odd in (None, NO_TEXT, b"\xed\xa0\x80 much longer than any other cell of the table", b"n.d.", b"1e999"):
            yield make_bytes(kind, [odd, *cells[1:]])
        return
    yield pa.concat_arrays([pa.nulls(1, kind), usual[1:]])
    validity, data = usual.buffers()
    width = max(1, usual.type.bit_width // 8)
    for odd in (b"\xff" * width, b"\xff" * (width - 1) + b"\x7f", b"\0" * (width - 1) + b"\x80", b"\x5a" * width):
        content = bytearray(data.to_pybytes())
        if kind == pa.bool_():
            content[0] ^= 1
        else:
            content[:width] = odd
        yield pa.Array.from_buffers(kind, ROWS, [validity, pa.py_buffer(bytes(content))])


Wrap = Callable[[Any], Any]
ENDS = pa.array(range(1, ROWS + 1), pa.int32())
STARTS = pa.array(range(ROWS + 1), pa.int32())
WRAPPERS: dict[str, Wrap] = {
    "plain": lambda leaf: leaf,
    "dictionary": lambda leaf: pa.DictionaryArray.from_arrays(pa.array(range(ROWS), pa.int16()), leaf),
    "list": lambda leaf: pa.ListArray.from_arrays(STARTS, leaf),
    "large list": lambda leaf: pa.LargeListArray.from_arrays(STARTS.cast(pa.int64()), leaf),
    "list view": lambda leaf: pa.ListViewArray.from_arrays(STARTS[:-1], pa.array([1] * ROWS, pa.int32()), leaf),
    "fixed list": lambda leaf: pa.FixedSizeListArray.from_arrays(leaf, 1),
    "struct": lambda leaf: pa.StructArray.from_arrays([leaf, leaf], ["a", "b"]),
    "list of structs": lambda leaf: pa.ListArray.from_arrays(STARTS, pa.StructArray.from_arrays([leaf], ["a"])),
    "map": lambda leaf: pa.MapArray.from_arrays(STARTS, pa.array(["k"] * ROWS), leaf),
    "extension": lambda leaf: pa.ExtensionArray.from_storage(Mark(leaf.type), leaf),
    "dictionary of extension": lambda leaf: pa.ExtensionArray.from_storage(
        Mark(pa.dictionary(pa.int16(), leaf.type)),
        pa.DictionaryArray.from_arrays(pa.array(range(ROWS), pa.int16()), leaf),
    ),
    "run ends": lambda leaf: pa.RunEndEncodedArray.from_arrays(ENDS, leaf),
    "dense union": lambda leaf: pa.UnionArray.from_dense(
        pa.array([0] * ROWS, pa.int8()), STARTS[:-1], [leaf, pa.array([1])]
    ),
    "sparse union": lambda leaf: pa.UnionArray.from_sparse(pa.array([0] * ROWS, pa.int8()), [leaf, leaf]),
}
READ = ("plain", "dictionary")
NOT_READ = {str(kind) for kind in (
    pa.duration("s"), pa.duration("ns"), pa.month_day_nano_interval(), pa.decimal128(4, -2),
    pa.timestamp("us", "+05:30"), pa.timestamp("us", "No/Where"), pa.decimal256(60, 3),
)}  # fmt: skip
SAMPLE = [pa.string(), pa.string_view(), pa.int64(), pa.decimal256(10, 2), pa.date32(), pa.binary()]


# ------------------------------------------------------------ files


def make_table(role: str, column: Any, arm: list[bytes] | None = None) -> Any:
    columns = {
        "id": pa.array(IDS), "x": pa.array([0.25 + row % VISITS / 2 for row in range(ROWS)]),
        "y": pa.array([row / 100 for row in range(ROWS)]),
        "arm": make_bytes(pa.string(), arm or [b"0", b"1"] * (ROWS // 2)), "note": pa.array(["fine"] * ROWS),
    }  # fmt: skip
    return pa.Table.from_arrays(
        [column if name == role else values for name, values in columns.items()], names=[*columns]
    )


def write_file(folder: Path, table: Any) -> str:
    with pa.OSFile(str(folder / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as made:
        made.write_table(table)
    return str(folder / "t.arrow")


def write_stream(folder: Path, table: Any) -> str:
    with pa.OSFile(str(folder / "s.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as made:
        made.write_table(table)
    return str(folder / "s.arrow")


def write_parquet(folder: Path, table: Any) -> str:
    pq.write_table(table, folder / "t.parquet")
    return str(folder / "t.parquet")


WRITERS = {"file": write_file, "stream": write_stream, "parquet": write_parquet}


def read(location: str, **how: Any) -> Curves | str:
    """The curves as a site gets them, or the words in which they are refused."""
    options = {"id": "id", "x": "x", "y": "y", "covariates": (Covariate("arm", levels=LEVELS),), "rows": "never refuse"}
    reading = Reading(Domain(0.0, 1.0), (-1.0, 1.0), **(options | how))
    try:
        return load_curves(find_source(location), reading, n=SUBJECTS).curves
    except InvalidInput as refusal:
        return str(refusal)


def same_for_others(one: Curves | str, other: Curves | str, *, by_id: bool = True) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    kept = range(1, SUBJECTS)
    labels = not by_id or np.array_equal(one.labels, other.labels)
    return one.n == other.n == SUBJECTS and one.take(kept) == other.take(kept) and bool(labels)


def pairs(kinds: list[Any], wrap: Wrap, role: str, write: Callable[[Path, Any], str], folder: Path) -> Iterator[Any]:
    """What is read of the usual table and of each neighbour, with the type; types that a format lacks are left out."""
    arms = [NO_TEXT, b"1"] + [b"0", b"1"] * (ROWS // 2 - 1)  # a cell of another column may make another reader read
    for kind in kinds:
        usual = None
        for odd in (make_leaf(kind), *change_leaf(kind), None):
            try:
                column = wrap(make_leaf(kind) if odd is None else odd)
                place = write(folder, make_table(role, column, arms if odd is None and role in ("x", "y") else None))
            except (pa.ArrowException, OSError):
                continue
            found = read(place)
            usual = found if usual is None else usual
            yield kind, usual, found


@pytest.mark.parametrize(
    ("role", "write"), [*itertools.product(ROLES[1:4], ("file", "parquet")), ("y", "stream"), ("note", "parquet")]
)
def test_a_cell_of_any_plain_type_is_its_subject_s_affair(role, write, tmp_path) -> None:
    count = 0
    for wrapper in READ:
        kinds = LEAVES if wrapper == "plain" else [*SAMPLE, *DECIMALS, pa.date64(), pa.binary_view(), pa.bool_()]
        for kind, usual, odd in pairs(kinds, WRAPPERS[wrapper], role, WRITERS[write], tmp_path):
            count += 1
            assert same_for_others(usual, odd), (wrapper, kind)
            refused = isinstance(usual, str)
            if role != "note":
                assert refused == (str(kind) in NOT_READ or pa.types.is_decimal256(kind)), (wrapper, kind, usual)
            assert not refused or "is not read" in usual
    assert count > 240


@pytest.mark.parametrize("write", ["file", "parquet"])
@pytest.mark.parametrize("wrapper", [name for name in WRAPPERS if name not in READ])
def test_a_column_of_any_other_type_refuses_by_its_schema(wrapper, write, tmp_path) -> None:
    for role in ROLES:
        for kind, usual, odd in pairs(SAMPLE, WRAPPERS[wrapper], role, WRITERS[write], tmp_path):
            assert same_for_others(usual, odd), (role, kind)
            opens = (wrapper, write) != ("list view", "parquet")  # polars does not, whichever columns are read
            if role == "note" and opens:
                assert not isinstance(usual, str), (kind, usual)
                assert (usual.counts == VISITS).all()
            else:
                assert isinstance(usual, str), (role, kind)
                assert f"The column '{role}' has the type" in usual or not opens
                assert "make it text, a number or a date" in usual


@pytest.mark.parametrize("wrapper", ["dictionary", "list", "list view", "struct", "map", "extension"])
@pytest.mark.parametrize("role", ROLES[1:4])
def test_a_type_in_one_file_of_a_folder_is_its_subject_s_affair(wrapper, role, tmp_path) -> None:
    """A file may be one subject's: what cannot be read in it is missing there, and nobody is refused."""
    usual_table = make_table("", None)

    def write_folder(first: Any) -> str:
        (tmp_path / "t").mkdir(exist_ok=True)
        for subject in range(SUBJECTS):
            part = first if subject == 0 else usual_table
            pq.write_table(part.slice(subject * VISITS, VISITS), tmp_path / "t" / f"{subject}.parquet")
        return str(tmp_path / "t")

    usual = read(write_folder(usual_table))
    assert (usual.counts == VISITS).all()
    for kind in [*SAMPLE, pa.decimal256(60, 3), pa.timestamp("us", "No/Where")]:
        for leaf in (make_leaf(kind), *change_leaf(kind)):
            try:
                place = write_folder(make_table(role, WRAPPERS[wrapper](leaf)))
            except (pa.ArrowException, OSError):
                continue
            odd = read(place)
            if kind in SAMPLE and wrapper != "list view":
                assert same_for_others(usual, odd), kind
            else:  # polars opens no such file: the subject has no row
                assert np.array_equal(odd.y[-VISITS:], usual.y[-VISITS:]), kind


# ------------------------------------------------------------ what the reviews found, one by one


def test_a_text_of_an_extension_that_is_no_text_empties_nothing(tmp_path) -> None:
    """R15-1: bytes that are no text in an extension of texts emptied all curves, or made a silo read beyond them."""
    for kind in (pa.string(), pa.large_string()):
        for write in WRITERS.values():
            for column in (WRAPPERS["extension"](odd) for odd in change_leaf(kind)):
                curves = read(write(tmp_path, make_table("note", column)))
                assert (curves.counts == VISITS).all()


def test_records_are_no_ids(tmp_path) -> None:
    """R15-2: where ids were structures, such bytes anywhere made all ids one; long lists were cut short in labels."""
    for wrapper in ("struct", "list", "map"):
        refused = read(write_file(tmp_path, make_table("id", WRAPPERS[wrapper](pa.array(IDS)))))
        assert "The column 'id' has the type" in refused


def test_bytes_that_are_no_text_change_no_type_of_another_column(tmp_path) -> None:
    """R16-1: they make another reader read; of days in milliseconds it had dates where polars has moments."""
    day, other = "1970-01-01 00:00:00.000", "1970-01-02 00:00:00.000"
    how = {"covariates": (Covariate("note", levels=(day, other)),), "y": "y", "y_levels": ()}
    texts = make_bytes(pa.string(), [b"0"] * ROWS), make_bytes(pa.string(), [NO_TEXT] + [b"0"] * (ROWS - 1))
    tables = [make_table("note", make_leaf(pa.date64())).set_column(2, "y", text) for text in texts]
    usual, odd = (read(write_parquet(tmp_path, table), **how) for table in tables)
    assert (usual.counts == VISITS).all()
    assert same_for_others(usual, odd)


def test_more_digits_in_one_cell_do_not_change_how_others_are_written(tmp_path) -> None:
    """pandas gives a column of decimals the digits of its longest: 1.5 was 1.500, and no level any more."""

    def write(first: str) -> str:
        arms = [Decimal(first), *(Decimal("1.5") for _ in range(ROWS - 1))]
        return write_parquet(tmp_path, make_table("arm", pa.array(arms)))

    how = {"covariates": (Covariate("arm", levels=("1.5", "2")),)}
    usual, odd = read(write("1.5"), **how), read(write("2.125"), **how)
    assert (usual.counts == VISITS).all()
    assert same_for_others(usual, odd)
    assert odd.counts[0] < VISITS


def test_types_of_duckdb_that_are_not_read_are_texts(tmp_path) -> None:
    duckdb = pytest.importorskip("duckdb")
    kinds = {
        "INTEGER[]": "[1]", "STRUCT(a INT)": "{'a': 1}", "MAP(VARCHAR, INT)": "MAP {'a': 1}", "INTERVAL": "INTERVAL 3 DAY",
        "UNION(n INT, t VARCHAR)": "union_value(n := 1)", "UHUGEINT": "1", "INTEGER[1]": "[1]", "BIT": "'1'::BIT",
        "TIMETZ": "'10:00:00+01'::TIMETZ",
    }  # fmt: skip
    place, query = tmp_path / "t.duckdb", "SELECT * FROM visits"
    for kind, value in kinds.items():
        read_twice = []
        for odd in (value, "NULL"):
            with duckdb.connect(str(place)) as database:
                database.execute(f"CREATE OR REPLACE TABLE visits (id VARCHAR, x DOUBLE, y DOUBLE, arm {kind})")
                rows = zip(IDS, itertools.cycle([0.25, 0.75]), strict=False)
                for number, (id_, x) in enumerate(rows):
                    cell = odd if number == 0 else value
                    database.execute(f"INSERT INTO visits VALUES ('{id_}', {x}, 0.5, {cell})")
                text = database.sql("SELECT CAST(arm AS VARCHAR) FROM visits").fetchall()[1][0]
            reading = Reading(
                Domain(0.0, 1.0), (-1.0, 1.0), id="id", x="x", y="y", rows="never refuse",
                covariates=(Covariate("arm", levels=(text, "other")),),
            )  # fmt: skip
            source = find_source(f"duckdb:///{place}", query)
            read_twice.append(load_curves(source, reading, n=SUBJECTS).curves)
        usual, other = read_twice
        assert (usual.counts == VISITS).all(), kind
        assert same_for_others(usual, other)


def test_a_site_says_at_its_start_that_a_type_is_not_read_whatever_the_rows(tmp_path) -> None:
    """The coordinator sees the one code, for any rows."""
    consortium = open_consortium(tmp_path / "consortium")
    for number, first in enumerate((0.0, None, float("nan"))):
        cells = {name: [row[place] for row in BASE] for place, name in enumerate(("id", "x"))}
        values = pl.Series("y", [[first], *([0.1] for _ in BASE[1:])], dtype=pl.List(pl.Float64))
        place = tmp_path / f"{number}.parquet"
        pl.DataFrame(cells).with_columns(values).write_parquet(place)
        site = Hospital(consortium, tmp_path / f"site{number}", {"source": str(place)})
        assert site.codes() == ("unavailable", "unavailable")
        assert "The column 'y' has the type" in str(site.log()[-1])


def test_a_long_category_that_many_rows_have_is_kept_once() -> None:
    """One subject with 300 rows of a category of 10 million letters (a file of 45 KB) overflowed Arrow's array of texts, and
    all curves were empty.
    """
    from dpfda.curves.tables.arrow_text import check_texts

    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()):
        levels = pa.array(["a", "c" * 100_000, None]).cast(kind)
        codes = pa.array([0, *[1] * 1000, 2, None], pa.int8())
        records = pa.record_batch({"arm": pa.DictionaryArray.from_arrays(codes, levels)})
        (column,) = check_texts(records, "t", tolerant=True).columns
        assert column.nbytes < 1_000_000, kind
        assert column.cast(pa.large_string()).to_pylist() == ["a", *["c" * 100_000] * 1000, None, None]
        for none in (3, -1):
            wrong = pa.DictionaryArray.from_arrays(pa.array([none], pa.int8()), levels, safe=False)
            odd = pa.record_batch({"arm": wrong})
            with pytest.raises(pa.ArrowException):
                check_texts(odd, "t", tolerant=True)


@pytest.mark.parametrize("place", [0, 2999, 199_999])
def test_a_query_of_duckdb_that_fails_at_any_row_refuses_nothing(place, tmp_path) -> None:
    """Behind the first 2,048 rows Arrow said that it was an error of the system, and a site refused."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        odd = f"CASE WHEN i = {place} THEN 'n.d.' ELSE '0.5' END"
        rows = "SELECT 's' || i % 5 AS id, i / 200000 AS x, {} AS y, '0' AS arm FROM range(200000) AS t(i)"
        database.execute("CREATE TABLE visits AS " + rows.format(odd))
    options = {"id": "id", "x": "x", "y": "y", "rows": "never refuse", "duplicates": "keep"}
    reading = Reading(Domain(0.0, 1.0), (-1.0, 1.0), **options)
    source = find_source(f"duckdb:///{tmp_path / 't.duckdb'}", "SELECT id, x, CAST(y AS DOUBLE) AS y FROM visits")
    assert load_curves(source, reading, n=SUBJECTS).curves.counts.tolist() == [0] * SUBJECTS


def test_texts_of_duckdb_may_be_more_than_two_gigabytes(tmp_path) -> None:
    """A subject whose texts are longer in sum, in a file of 1 MB, made a site refuse; shown by the type of the texts."""
    from dpfda.curves.tables.database import _duckdb_result

    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute("CREATE TABLE visits AS SELECT 'a' AS arm")
    with _duckdb_result(find_source(f"duckdb:///{tmp_path / 't.duckdb'}", "SELECT * FROM visits")) as result:
        assert result.arrow().schema.field("arm").type in (pa.large_string(), pa.string_view())


def test_a_long_text_that_many_rows_have_is_not_copied_for_each(tmp_path) -> None:
    """A text of 1 MB in 8,000 rows of one subject, in a Parquet file of 55 KB, took more than 14 GB and ended a site."""
    texts = pl.Series(["a", "c" * 100_000, None]).gather([0, *[1] * 1000, 2])
    assert Reading(Domain(0.0, 1.0), (-1.0, 1.0), id="i", x="x", y="y").cells.text(texts).str.len_bytes().max() < 100
    usual, odd = (
        read(write_parquet(tmp_path, make_table("arm", pa.array([first, *["1"] * (ROWS - 1)]))))
        for first in ("0", "1" * 2000)
    )
    assert same_for_others(usual, odd)
    assert odd.counts[0] == usual.counts[0] - 1
