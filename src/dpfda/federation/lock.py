"""One process per folder, and a truthful status after kill -9.

The lock is the kernel's (`flock`): it ends with the process that holds it, however that ends. The file says who holds it
(process id, start time, boot id), so that a reused id or a reboot cannot mislead; it is never unlinked, because unlinking a
lock file lets two processes hold "the" lock on two files.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

import psutil

from dpfda.errors import InvalidInput
from dpfda.federation.files import OWNER_ONLY

State = Literal["running", "ended", "killed", "never"]
_MOST_BYTES = 4096
_PATIENCE = 0.5  # seconds: who only looks holds the lock for an instant
_SAME_START = 0.02  # seconds between two readings of one start time


class AlreadyRunning(InvalidInput):
    """Another process holds the lock; the sentence says which one."""


@dataclass(frozen=True)
class Holder:
    """A process, told apart from every other that ever had its id."""

    pid: int
    started: float
    boot: str
    host: str
    since: float


def describe_process(pid: int | None = None) -> Holder:
    """Describe this process, or another one that is alive."""
    process = psutil.Process(pid)
    return Holder(process.pid, process.create_time(), read_boot_id(), os.uname().nodename, time.time())


def is_alive(holder: Holder) -> bool:
    """Whether exactly that process is alive on this machine."""
    if holder.boot != read_boot_id():
        return False
    try:
        process = psutil.Process(holder.pid)
        same = abs(process.create_time() - holder.started) <= _SAME_START
        return bool(same and process.status() != psutil.STATUS_ZOMBIE)
    except (psutil.NoSuchProcess, ValueError):
        return False


def read_boot_id() -> str:
    """What distinguishes this boot of the machine from every other."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return repr(psutil.boot_time())


class Lock:
    """Hold it for the life of the process: `with Lock(folder / "lock"): ...`. Child processes do not inherit it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def __enter__(self) -> Lock:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, OWNER_ONLY)
        try:
            _take(descriptor, self._path)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(asdict(describe_process())).encode(), 0)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Give it back, with a file that says that this process ended well."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def read_lock(path: Path) -> tuple[State, Holder | None]:
    """Whether somebody runs here, ended well, was killed, or never was."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return "never", None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return "running", _read_holder(descriptor)
        holder = _read_holder(descriptor)
        return ("killed" if holder is not None else "ended"), holder
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise AlreadyRunning(_describe_busy(_read_holder(descriptor), path)) from None
            time.sleep(0.02)


def _describe_busy(holder: Holder | None, path: Path) -> str:
    if holder is None:
        return f"Another process uses {path.parent}; end it first."
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.since))
    return f"Process {holder.pid} on {holder.host} uses {path.parent} since {since}; end it first."


def _read_holder(descriptor: int) -> Holder | None:
    try:
        fields = json.loads(os.pread(descriptor, _MOST_BYTES, 0))
        return Holder(int(fields["pid"]), float(fields["started"]), str(fields["boot"]), str(fields["host"]),
                      float(fields["since"]))  # fmt: skip
    except (ValueError, KeyError, TypeError):
        return None
