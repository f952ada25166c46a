"""Where results go: whole files, free names, tables by their ending."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from dpfda.cli.outputs import NotWritten, Outputs, check_target, free_name, write_whole
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


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="this system has no /proc, where permissions do not tell")
def test_a_folder_that_takes_no_files_is_found_out_by_trying() -> None:
    for target in ("/proc/x.html", "/proc/deep/below/x.html"):
        with pytest.raises(InvalidInput, match="may not write to the folder /proc"):
            Outputs(report=target).check()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full, so no full disk was tried")
def test_a_result_is_rescued_into_the_first_folder_that_takes_it(tmp_path: Path, capsys) -> None:
    (tmp_path / "result.json").touch()
    folders = [tmp_path / "result.json" / "below", tmp_path]
    with pytest.raises(NotWritten, match=r"result-2\.json"):
        Outputs(json="/dev/full").write({"schema": 2}, folders)
    assert json.loads((tmp_path / "result-2.json").read_text()) == {"schema": 2}
    with pytest.raises(NotWritten, match="give the command again, which spends nothing"):
        Outputs(json="/dev/full").write({"schema": 2})
    assert capsys.readouterr().out == ""


def test_a_table_is_written_by_its_ending() -> None:
    frame = pl.DataFrame({"x": [1, 2]})
    assert encode_table(frame, "a.csv") == b"x\n1\n2\n"
    assert encode_table(frame, "a.PARQUET")[:4] == b"PAR1"
    with pytest.raises(InvalidInput):
        encode_table(frame, "a.xlsx")
