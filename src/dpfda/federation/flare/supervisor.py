"""Keeps a site's FLARE client running until it is asked to stop."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpfda.federation.flare.processes import start_site, stop, stop_leftover

_PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)
_STEADY = 60.0  # after so many seconds a crash counts as a new one


def supervise(kit: Path, site: str, say: Callable[[str], None]) -> None:
    """Start the client, and again whenever it dies, until SIGINT or SIGTERM."""
    wanted = threading.Event()
    stop_leftover(kit / "site.pid", kit)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: wanted.set())
    crashes = 0
    while not wanted.is_set():
        began = time.monotonic()
        process = start_site(kit, site, kit / "site.log")
        _note(kit, process.pid)
        try:
            while process.poll() is None and not wanted.is_set():
                wanted.wait(0.2)
        finally:
            stop([process])
        if wanted.is_set():
            break
        crashes = 0 if time.monotonic() - began > _STEADY else crashes + 1
        pause = _PAUSES[min(crashes, len(_PAUSES) - 1)]
        say(f"The client ended (see {kit / 'site.log'}); it starts again in {pause:g} s.")
        wanted.wait(pause)
    _note(kit, None)


def _note(kit: Path, pid: Any) -> None:
    path = kit / "site.pid"
    if pid is None:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        return
    path.write_text(f"{pid}\n")
