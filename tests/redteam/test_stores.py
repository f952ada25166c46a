"""Eighth review, R8-3: neither the names of objects of a store nor their number decide whether a site answers."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from urllib.parse import quote

import numpy as np
import polars as pl
import pytest

from dpfda.curves.curves import Curves
from dpfda.curves.tables import Covariate, Domain, Reading, find_source, load_curves
from dpfda.curves.tables.stores import forget_copies

FEW_HANDLES = """
import fsspec, resource, sys
from pathlib import Path
from dpfda.curves.tables import Domain, Reading, find_source, load_curves

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
system = fsspec.filesystem("memory")
for file in Path(sys.argv[1]).rglob("*.parquet"):
    system.pipe(f"/clinic/visits/{file.relative_to(sys.argv[1])}", file.read_bytes())
reading = Reading(Domain(0, 1), (-1.0, 2.0), id="pid", x="x", y="y")
print(load_curves(find_source("memory://clinic/visits"), reading).curves.fingerprint(bytes(32)).hex())
"""


def encode(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


@pytest.fixture
def memory():
    import fsspec

    system = fsspec.filesystem("memory")
    yield system
    forget_copies()
    if system.exists("/clinic"):
        system.rm("/clinic", recursive=True)


ODD_VALUES = [
    "x" * 300, "x" * 1000, "é" * 43, "*", "**", "[ab]", "?", "..", ".", "c/b", "c//b", "c/y=0.5", "../b", "%2e%2e", "_a",
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD_VALUES)
@pytest.mark.parametrize("escaped", [True, False])
def test_the_value_in_one_object_s_name_is_its_subjects_affair(odd, escaped, memory, monkeypatch, tmp_path) -> None:
    """Links were named like objects: 42 letters é in one subject's arm made the site refuse."""
    arms = (Covariate("arm", levels=("a", "b")),)
    reading = Reading(Domain(0, 1), (-1.0, 2.0), id="pid", x="x", y="y", covariates=arms, rows="never refuse")
    monkeypatch.setenv("DPFDA_SCRATCH", str(tmp_path))

    def read(value: str) -> Curves:
        if memory.exists("/clinic"):
            memory.rm("/clinic", recursive=True)
        for number in range(6):
            arm = value if number == 2 else "ab"[number % 2]
            arm = quote(arm, safe="") if escaped else arm
            content = encode(pl.DataFrame({"pid": [number], "x": [0.5], "y": [0.1 * number]}))
            memory.pipe(f"/clinic/visits/arm={arm}/{number}.parquet", content)
        return load_curves(find_source("memory://clinic/visits"), reading, n=6).curves

    usual, other = read("a"), read(odd)
    assert usual.counts.tolist() == [1] * 6
    assert other.counts.tolist() == [1, 1, 0, 1, 1, 1]
    assert np.array_equal(other.y, np.delete(usual.y, 2))
    assert np.array_equal(np.delete(other.design, 2, axis=0), np.delete(usual.design, 2, axis=0))
    assert list(tmp_path.iterdir()) == []


def test_more_objects_are_read_than_a_process_has_handles(tmp_path) -> None:
    """Another subject's arm is another object, which must not decide whether a site answers."""
    for number in range(600):
        file = tmp_path / "visits" / f"arm={number:03}" / "part.parquet"
        file.parent.mkdir(parents=True)
        kind = pl.Float32 if number == 300 else pl.Float64
        pl.DataFrame(
            {"pid": [number % 200], "x": [number / 600], "y": [0.5]}, {"pid": pl.Int64, "x": pl.Float64, "y": kind}
        ).write_parquet(file)
    reading = Reading(Domain(0, 1), (-1.0, 2.0), id="pid", x="x", y="y")
    here = load_curves(find_source(str(tmp_path / "visits")), reading).curves
    (tmp_path / "scratch").mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", FEW_HANDLES, str(tmp_path / "visits")], capture_output=True, text=True, check=False,
        env={**os.environ, "DPFDA_SCRATCH": str(tmp_path / "scratch")},
    )  # fmt: skip
    assert ran.stdout.strip() == here.fingerprint(bytes(32)).hex(), ran.stderr[-2000:]
    assert list((tmp_path / "scratch").iterdir()) == []
