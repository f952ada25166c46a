"""Starting FLARE's processes with this Python, and ending exactly what was started."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from dpfda.errors import InvalidInput

HEART_BEAT = 2.0  # seconds between a site's signs of life


def start_server(kit: Path, log: Path) -> subprocess.Popen[bytes]:
    """The coordinator's FLARE server."""
    module = "nvflare.private.fed.app.server.server_train"
    return _start([*_python(module, kit, "fed_server.json"), "org=coordinator", "config_folder=config"], kit, log)


def start_site(kit: Path, site: str, log: Path) -> subprocess.Popen[bytes]:
    """A site's guarded FLARE client."""
    module = "dpfda.federation.flare.site_main"
    organisation = f"site_{site.replace('-', '_')}"
    settings = [f"heart_beat_interval={HEART_BEAT}", f"uid={site}", f"org={organisation}", "config_folder=config"]
    return _start([*_python(module, kit, "fed_client.json"), *settings], kit, log)


def site_name(kit: Path) -> str:
    """The name that a kit's certificate was made for."""
    try:
        return str(json.loads((kit / "startup" / "fed_client.json").read_bytes())["client"]["fqsn"])
    except (OSError, ValueError, KeyError):
        raise InvalidInput(f"{kit} is not a site's start-up kit; ask the coordinator for yours.") from None


def stop(processes: Sequence[Any], grace: float = 5.0) -> None:
    """End these processes and everything that they started; by id, first politely."""
    family = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = psutil.Process(process.pid)
            family += [*parent.children(recursive=True), parent]
    for member in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.terminate()
    _, left = psutil.wait_procs(family, timeout=grace)
    for member in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    psutil.wait_procs(left, timeout=grace)
    for process in processes:
        if isinstance(process, subprocess.Popen):
            process.wait(timeout=grace)


def stop_leftover(pid_file: Path, kit: Path) -> None:
    """End the process of an earlier call that was killed, if the id in the file is still that of this kit's process."""
    with contextlib.suppress(OSError, ValueError, psutil.Error):
        process = psutil.Process(int(pid_file.read_text()))
        if str(kit) in process.cmdline():
            stop([process])


@contextlib.contextmanager
def ended_politely() -> Iterator[None]:
    """Let SIGTERM and a closed terminal run the `finally` blocks that end child processes."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def wait_until(condition: Any, seconds: float, step: float = 0.2) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(step)
    return bool(condition())


def _python(module: str, kit: Path, config: str) -> list[str]:
    return [sys.executable, "-P", "-u", "-m", module, "-m", str(kit), "-s", config, "--set", "secure_train=true"]


def _start(command: Sequence[str], kit: Path, log: Path) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "MALLOC_ARENA_MAX": "2",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "NVFLARE_SECURE_LOGGING": "true",  # FLARE's own messages name an error's type, never its text
    }
    (kit / "transfer").mkdir(exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as output:
        return subprocess.Popen(
            command, cwd=kit, env=environment, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
