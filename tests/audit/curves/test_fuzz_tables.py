"""Any file with the right ending gives curves or one sentence (`DpfdaError`); nothing else, and no curve is lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpfda.errors import DpfdaError

pytest.importorskip("polars")

from dpfda.curves.tables import Domain, Reading, find_source, load_curves

CORPUS = Path(__file__).parents[2] / "corpus" / "tables"
READING = Reading(Domain(0.0, 10.0), (0.0, 100.0), id="id", x="x", y="y", duplicates="keep")


def load_or_refuse(path: Path):
    try:
        curves = load_curves(find_source(str(path)), READING).curves
    except DpfdaError as refusal:
        sentence = str(refusal)
        assert 10 < len(sentence) < 600
        assert "\n" not in sentence.strip()
        return None
    assert curves.n >= 1
    assert np.isfinite(curves.x).all()
    assert np.isfinite(curves.y).all()
    assert ((curves.x >= 0) & (curves.x <= 10)).all()
    return curves


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()) if CORPUS.exists() else [], ids=lambda path: path.name)
def test_the_corpus_of_nasty_tables(path) -> None:
    load_or_refuse(path)


def test_the_corpus_is_there() -> None:
    assert len(list(CORPUS.iterdir())) >= 20


ODD = ["", "NA", "inf", "-0", "1e400", "1,5", '"', "'", "\x00"]
CELL = st.one_of(st.floats(allow_nan=True).map(str), st.integers().map(str), st.sampled_from(ODD), st.text(max_size=5))


@given(rows=st.lists(st.tuples(CELL, CELL, CELL), max_size=6), separator=st.sampled_from([",", ";", "\t"]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cells(rows, separator, tmp_path) -> None:
    path = tmp_path / "table.csv"
    lines = [separator.join(("id", "x", "y")), *(separator.join(row) for row in rows)]
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    load_or_refuse(path)


@given(data=st.binary(max_size=200), name=st.sampled_from(["t.csv", "t.parquet", "t.arrow", "t.csv.gz", "t.tsv"]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_under_any_ending(data, name, tmp_path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    load_or_refuse(path)
    if name == "t.csv":
        path.write_bytes(b"id,x,y\n" + data)
        load_or_refuse(path)


def test_a_good_table_is_read(tmp_path) -> None:
    path = tmp_path / "good.csv"
    path.write_text("id,x,y\na,1,2\nb,3,4\na,5,6\n")
    curves = load_or_refuse(path)
    assert curves is not None
    assert curves.n == 2
