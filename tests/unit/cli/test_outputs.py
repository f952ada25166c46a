"""Where results go: whole files, free names, tables by their ending."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dpfda.cli.outputs import Outputs, check_target, free_name, write_whole
from dpfda.cli.tables_out import encode_table
from dpfda.errors import InvalidInput


def test_a_file_is_replaced_as_a_whole_and_leaves_no_rest(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    target.write_text("old")
    write_whole(str(target), b"new")
    assert target.read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_a_free_name_does_not_meet_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert free_name("fit", ".json") == "fit.json"
    Path("fit.json").touch()
    assert free_name("fit", ".json") == "fit-2.json"


def test_targets_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    (tmp_path / "there.html").touch()
    with pytest.raises(InvalidInput, match="folder"):
        check_target(str(tmp_path), overwrite=True)
    with pytest.raises(InvalidInput, match=r"there\.html"):
        check_target(str(tmp_path / "there.html"), overwrite=False)
    with pytest.raises(InvalidInput, match="must end in"):
        Outputs(figures=("curve.gif",)).check()


def test_a_table_is_written_by_its_ending() -> None:
    frame = pl.DataFrame({"x": [1, 2]})
    assert encode_table(frame, "a.csv") == b"x\n1\n2\n"
    assert encode_table(frame, "a.PARQUET")[:4] == b"PAR1"
    with pytest.raises(InvalidInput):
        encode_table(frame, "a.xlsx")
