"""Small files of a study: whole, private, and every mistake in one sentence."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from dpfda.errors import InvalidInput
from dpfda.federation.files import make_private_folder, write_atomically, write_json
from dpfda.federation.status import Status, StatusFile
from dpfda.federation.toml_tables import parse_pair, read_toml, refuse_unknown_names, require


def test_a_file_is_replaced_whole_and_is_its_owners(tmp_path: Path) -> None:
    target = tmp_path / "policy.json"
    write_json(target, {"b": 1, "a": 2})
    assert target.read_text() == '{\n "a": 2,\n "b": 1\n}\n'
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert stat.S_IMODE(make_private_folder(tmp_path / "site").stat().st_mode) == 0o700


def test_a_write_that_fails_leaves_the_old_file_and_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(OSError, match="no space"):
        write_atomically(target, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert target.read_bytes() == b"old"


def test_mistakes_in_a_toml_file_are_sentences(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("x = = 1")
    for path, words in (
        (tmp_path / "none.toml", "no file"),
        (tmp_path, "folder"),
        (tmp_path / "bad.toml", "not valid TOML"),
    ):
        with pytest.raises(InvalidInput, match=words):
            read_toml(path)
    with pytest.raises(InvalidInput, match="did you mean 'epsilon'"):
        refuse_unknown_names("site.toml", {"epsilom": 1}, ["epsilon", "delta"])
    with pytest.raises(InvalidInput, match="lacks 'delta'"):
        require("site.toml", {}, "delta")
    with pytest.raises(InvalidInput, match="list of two"):
        parse_pair("domain", [1, 2, 3])


def test_a_status_tells_who_answered_and_reads_back(tmp_path: Path) -> None:
    sites = {name: {"weight": 1.0, "state": "invited", "answered": 0, "last_round": None} for name in ("a", "b")}
    status = Status("study-1", rounds=3, done=0, sites=sites)
    status.note({"a": "ok", "b": "absent"}, asked=True)
    status.advance(1)
    file = StatusFile(tmp_path / "status.json")
    assert file.read() is None
    file.write(status)
    read = file.read()
    assert read is not None
    assert (read.phase, read.done, read.absent) == ("running", 1, ["b"])
    assert read.sites["a"]["answered"] == 1
    status.end("stopped", "Too few sites.")
    assert status.message == "Too few sites."
