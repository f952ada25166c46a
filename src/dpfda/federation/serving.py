"""`dpfda site run`: checks everything in the site's folder, then keeps its processes running."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from dpfda.federation.checking import check_apart
from dpfda.federation.flare.launch import make_command
from dpfda.federation.flare.supervisor import Supervisor
from dpfda.federation.folder import SiteFolder, remove_leftovers, wipe
from dpfda.federation.lock import Lock


def serve_site(
    folder: SiteFolder,
    say: Callable[[str], None],
    *,
    simulation: bool = False,
    metrics_port: int | None = None,
    rehearsals: bool = True,
) -> None:
    """Serve until SIGINT or SIGTERM."""
    with Lock(folder.lock):  # nobody else starts or cleans up meanwhile
        wipe(folder.run)
        remove_leftovers(folder.root)
        check_apart(folder, simulation=simulation)
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    options = ["--simulation"] if simulation else []
    command = make_command("dpfda.federation.silo_main", str(folder.root), *options)
    try:
        Supervisor(folder, command, say, metrics_port=metrics_port, rehearsals=rehearsals).run(stop)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
