"""One process per folder, and the truth about it after every kind of end."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dpfda
from dpfda.federation.lock import AlreadyRunning, Lock, describe_process, is_alive, read_lock

ROOT = str(Path(dpfda.__file__).parents[1])
HOLD = """
import subprocess, sys
from pathlib import Path
from dpfda.federation.lock import Lock
with Lock(Path(sys.argv[1])):
    if len(sys.argv) > 2:
        child = subprocess.Popen([sys.executable, "-c", "import time; print('child', flush=True); time.sleep(60)"])
        print(child.pid, flush=True)
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def hold(tmp_path):
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path / "lock"), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": ROOT},
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.stdin.close()
        process.kill()
        process.wait()
        process.stdout.close()


def test_never_running_ended(tmp_path):
    path = tmp_path / "lock"
    assert read_lock(path) == ("never", None)
    with Lock(path):
        state, holder = read_lock(path)
        assert state == "running"
        assert holder.pid == os.getpid()
        assert is_alive(holder)
    assert read_lock(path) == ("ended", None)
    assert path.exists(), "a lock file is never unlinked"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_second_process_is_told_who_holds_the_lock(tmp_path, hold):
    process = hold()
    assert process.stdout.readline() == "held\n"
    with (
        pytest.raises(AlreadyRunning, match=f"Process {process.pid} on .* since .*; end it first"),
        Lock(tmp_path / "lock"),
    ):
        pass


def test_kill_9_is_told_as_such_and_leaves_the_lock_free(tmp_path, hold):
    process = hold()
    process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    state, holder = read_lock(tmp_path / "lock")
    assert state == "killed"
    assert holder.pid == process.pid
    assert not is_alive(holder)
    with Lock(tmp_path / "lock"):
        assert read_lock(tmp_path / "lock")[1].pid == os.getpid()


def test_children_do_not_inherit_the_lock(tmp_path, hold):
    process = hold("with a child")
    child = int(next(line for line in process.stdout if line.strip().isdigit()))
    while process.stdout.readline() != "held\n":
        pass
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    try:
        with Lock(tmp_path / "lock"):
            pass
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_reused_id_and_a_reboot_are_noticed():
    me = describe_process()
    assert is_alive(me)
    assert not is_alive(dataclasses.replace(me, started=me.started - 10))
    assert not is_alive(dataclasses.replace(me, boot="another boot"))
    assert not is_alive(dataclasses.replace(me, pid=2**22 + 1))


@pytest.mark.parametrize("content", [b"", b"nonsense", b"[]", b'{"pid": "x"}', b"\xff" * 100])
def test_a_damaged_file_still_locks(tmp_path, content):
    (tmp_path / "lock").write_bytes(content)
    (tmp_path / "lock").chmod(0o600)
    assert read_lock(tmp_path / "lock") == ("ended", None)
    with Lock(tmp_path / "lock"):
        assert json.loads((tmp_path / "lock").read_bytes())["pid"] == os.getpid()


def test_looking_does_not_keep_others_out(tmp_path):
    with Lock(tmp_path / "lock"):
        pass
    for _ in range(50):
        read_lock(tmp_path / "lock")
        with Lock(tmp_path / "lock"):
            pass


def test_a_lock_is_not_taken_through_a_link(tmp_path):
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError), Lock(tmp_path / "lock"):
        pass
    assert not (tmp_path / "elsewhere").exists()
