"""Starts dpfda's own processes: an environment from an allow-list, this very installation, and an end with the parent."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import dpfda
from dpfda.errors import InvalidInput

ALLOWED = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "USER", "LOGNAME", "SYSTEMROOT")
REFUSED_EXIT = 77  # of a client that the server refuses; it is started again with the newest certificate
FAILED_EXIT = 78  # of a client whose log-in the server did not complete
_FIXED = {
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NVFLARE_SECURE_LOGGING": "true",  # FLARE's own messages name an error's type, never its text
}
_BOOT = (
    "import runpy, sys; sys.path.insert(0, sys.argv[1]); module = sys.argv[2]; sys.argv = [module, *sys.argv[3:]]; "
    "runpy.run_module(module, run_name='__main__', alter_sys=True)"
)


def require_flare() -> None:
    """Refuse in one sentence where the extra is not installed."""
    for module in ("nvflare", "cryptography", "psutil"):
        if importlib.util.find_spec(module) is None:
            raise InvalidInput("Studies across sites need FLARE: pip install 'dpfda[federated]'.")


def make_environment(authority: Path | None = None, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Allowed variables of this process, fixed ones, and for FLARE the consortium's CA as the only one."""
    environment = {name: os.environ[name] for name in ALLOWED if name in os.environ} | _FIXED
    if authority is not None:
        environment |= {"SSL_CERT_FILE": str(authority), "SSL_CERT_DIR": os.devnull}
    return environment | dict(more or {})


def make_command(module: str, *arguments: str) -> list[str]:
    """Let this Python run a module of this installation, whatever the environment says about paths."""
    root = str(Path(dpfda.__file__).absolute().parents[1])
    return [sys.executable, "-E", "-P", "-s", "-u", "-c", _BOOT, root, module, *arguments]


def start_process(
    command: Sequence[str], folder: Path, log: Path, environment: Mapping[str, str], handed: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a process that writes to `log` and ends when this process does; `handed` are descriptors that it gets."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "ab") as output:
        return subprocess.Popen(
            list(command), cwd=folder, env=dict(environment), stdin=subprocess.PIPE, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True, pass_fds=handed,
        )  # fmt: skip


def stop_process(process: subprocess.Popen[bytes], grace: float = 5.0, patience: float = 0.0) -> None:
    """End a process that was started here, politely first: its input closes, and after `patience` seconds it is told."""
    if process.stdin is not None:
        process.stdin.close()
    if patience:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def end_with_parent(before: Callable[[], None] = lambda: None) -> None:
    """End this process when the one that started it is gone: its end of our standard input closes, whatever killed it.

    `before` is called then. Without a pipe there (a service manager started this process), nothing is watched.
    """
    if not stat.S_ISFIFO(os.fstat(0).st_mode):
        return

    def watch() -> None:
        while os.read(0, 1024):
            pass
        with contextlib.suppress(Exception):
            before()
        os._exit(0)

    threading.Thread(target=watch, name="parent", daemon=True).start()


@contextlib.contextmanager
def ended_politely() -> Iterator[None]:
    """SIGTERM as Ctrl-C, and Ctrl-C where the shell had it ignored, so that what was started here is ended, too."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
