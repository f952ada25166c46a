"""A site's folder holds exactly our files; everything else is refused by name, and `run/` is ours at every start."""

from __future__ import annotations

import os
import socket

import pytest

from dpfda.errors import InvalidInput
from dpfda.federation.folder import (
    FILES,
    LEDGER_COMPANIONS,
    Address,
    SiteFolder,
    check_tree,
    find_objections,
    is_known_path,
    wipe,
    write_tree,
)  # fmt: skip
from dpfda.federation.keys import make_signing_key, public_text

KEY = public_text(make_signing_key())
DIGEST = "0123456789abcdef" * 4

# Every file that makes FLARE run code or move folders, and some more.
FOREIGN = [
    "log_config.json", "local/log_config.json", "local/resources.json", "startup/x__resources.json", "x__p_resources.json",
    "local/x__j_resources.json", "job_resources.json", "privacy.json", "local/privacy.json", "comm_config.json",
    "comm_config.json.default", "comm_config.conf", "comm_config.yml", "deep/er/comm_config.json", "local/custom/code.py",
    "custom/code.py", "_x.py", "sitecustomize.py", "start.sh", "startup/start.sh", "readme.txt", "studies/x.json",
    "terms/x.json", f"terms/{DIGEST}.py", f"terms/{DIGEST.upper()}.json", f"terms/sub/{DIGEST}.json",
    f"acceptances/{DIGEST}.json.bak", ".hidden", "policy.toml", "site.key.bak", "ledger.sqlite", "Site.key", "site.log.2",
    "authorization.json", "fed_client.json", "transfer/x", "disabled_clients.json", "studies.json", "pid.fl",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    made = SiteFolder.create(tmp_path / "alpha")
    for name in (*FILES, *LEDGER_COMPANIONS):
        put(made.root / name)
    put(made.terms / f"{DIGEST}.json")
    put(made.acceptances / f"{DIGEST}.json")
    return made


def put(path, data=b"x", mode=0o600):
    for parent in reversed(path.parents):
        if not parent.exists():
            parent.mkdir(mode=0o700)
    path.write_bytes(data)
    path.chmod(mode)


def test_a_folder_with_all_of_our_files_is_good(folder):
    folder.check()
    folder.prepare()


def test_a_new_folder_must_be_empty(tmp_path):
    put(tmp_path / "old" / "x")
    with pytest.raises(InvalidInput, match="not empty"):
        SiteFolder.create(tmp_path / "old")


@pytest.mark.parametrize("name", FOREIGN)
def test_any_other_file_is_refused_by_name(folder, name):
    put(folder.root / name)
    with pytest.raises(InvalidInput) as refusal:
        folder.prepare()
    assert name.split("/")[0] in str(refusal.value)
    assert "is not one of dpfda's files" in str(refusal.value)


def test_an_empty_foreign_folder_is_refused(folder):
    (folder.root / "local").mkdir(mode=0o700)
    with pytest.raises(InvalidInput, match="local is not one"):
        folder.check()


def test_links_sockets_and_pipes_are_refused(folder, tmp_path):
    put(tmp_path / "elsewhere")
    for make in (
        lambda path: path.symlink_to(tmp_path / "elsewhere"),
        lambda path: path.hardlink_to(tmp_path / "elsewhere"),
        lambda path: os.mkfifo(path, 0o600),
        bind,
    ):
        folder.policy_path.unlink()
        make(folder.policy_path)
        with pytest.raises(InvalidInput, match=r"policy\.json"):
            folder.check()


def bind(path):
    before = os.umask(0o177)
    with socket.socket(socket.AF_UNIX) as listener:
        kept = os.getcwd()
        os.chdir(path.parent)
        try:
            listener.bind(path.name)
        finally:
            os.chdir(kept)
            os.umask(before)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602, 0o777])
def test_files_that_others_can_touch_are_refused(folder, mode):
    folder.site_key.chmod(mode)
    with pytest.raises(InvalidInput, match=r"site\.key can be read or changed by others"):
        folder.check()


def test_a_folder_that_others_can_enter_is_refused(folder):
    folder.root.chmod(0o755)
    with pytest.raises(InvalidInput, match="by others"):
        folder.check()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_another_user_are_refused(folder):
    os.chown(folder.policy_path, 12345, 12345)
    with pytest.raises(InvalidInput, match="belongs to another user"):
        folder.check()


def test_a_link_in_place_of_the_folder_is_refused(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder.root)
    assert find_objections(tmp_path / "link", is_known_path) == [". is a symbolic link"]


def test_what_a_crash_left_behind_is_removed(folder):
    for name in (".contact.json.ab12_xyz", ".address.json.00000000", f"terms/.{DIGEST}.json.abcdefgh"):
        put(folder.root / name)
    folder.prepare()
    put(folder.root / ".evil.json.abcdefgh")
    with pytest.raises(InvalidInput, match=r"\.evil\.json"):
        folder.prepare()


def test_run_is_wiped_at_every_start(folder, tmp_path):
    put(folder.run / "local" / "comm_config.json", b"evil")
    folder.prepare()
    assert not folder.run.exists()
    put(tmp_path / "precious" / "file")
    folder.run.symlink_to(tmp_path / "precious")
    folder.prepare()
    assert not folder.run.is_symlink()
    assert (tmp_path / "precious" / "file").exists(), "a link is removed, not followed"


def test_a_tree_is_exactly_what_was_written(tmp_path):
    files = {"startup/a.json": b"1", "local/b.json": b"2"}
    put(tmp_path / "run" / "startup" / "evil__resources.json")
    manifest = write_tree(tmp_path / "run", files)
    check_tree(tmp_path / "run", manifest)
    assert not (tmp_path / "run" / "startup" / "evil__resources.json").exists()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda run: put(run / "local" / "privacy.json"), "privacy.json is not one"),
        (lambda run: put(run / "comm_config.json"), "comm_config.json is not one"),
        (lambda run: put(run / "local" / "b.json", b"3"), "b.json was changed"),
        (lambda run: (run / "local" / "b.json").unlink(), "b.json is missing"),
        (lambda run: (run / "local" / "b.json").chmod(0o644), "by others"),
        (wipe, "missing"),
        (lambda run: (run / "custom").mkdir(mode=0o700), "custom is not one"),
    ],
)
def test_a_changed_tree_is_refused(tmp_path, change, word):
    manifest = write_tree(tmp_path / "run", {"startup/a.json": b"1", "local/b.json": b"2"})
    change(tmp_path / "run")
    with pytest.raises(InvalidInput, match=word):
        check_tree(tmp_path / "run", manifest)


def test_an_address_survives_its_file(tmp_path):
    address = Address("study.example.org", 8002, "server.lipids", "lipids", KEY)
    address.write(tmp_path / "address.json")
    assert Address.read(tmp_path / "address.json") == address


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{}", '{"host": "x"}',
        f'{{"host":"a","port":1,"identity":"b","consortium":"c","coordinator_key":"{KEY}","more":1}}',
        f'{{"host":"a b","port":1,"identity":"b","consortium":"c","coordinator_key":"{KEY}"}}',
        f'{{"host":"a","port":0,"identity":"b","consortium":"c","coordinator_key":"{KEY}"}}',
        f'{{"host":"a","port":true,"identity":"b","consortium":"c","coordinator_key":"{KEY}"}}',
        f'{{"host":"a","port":1,"identity":"b","consortium":"../c","coordinator_key":"{KEY}"}}',
        '{"host":"a","port":1,"identity":"b","consortium":"c","coordinator_key":"00"}',
    ],
)  # fmt: skip
def test_a_malformed_address_is_refused(tmp_path, content):
    (tmp_path / "address.json").write_text(content)
    with pytest.raises(InvalidInput):
        Address.read(tmp_path / "address.json")
