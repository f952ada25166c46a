"""Starts a process for a rehearsal when one is asked for. That process gets a connection and two public facts, no path.

It is told the site's name and the coordinator's public key, and works in the empty folder: neither the site's folder nor its
policy, data or ledger is named to it. One at a time; it ends when the connection does.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable

from dpfda.errors import DpfdaError
from dpfda.federation.flare.launch import make_command, make_environment, start_process, stop_process
from dpfda.federation.flare.settings import ClientSettings
from dpfda.federation.folder import Address, SiteFolder
from dpfda.federation.frames import FrameServer

LONGEST = 600.0  # seconds that one rehearsal may take


class RehearsalDesk:
    """Listens at the rehearsal's socket while it is entered."""

    def __init__(self, folder: SiteFolder, say: Callable[[str], None]) -> None:
        self._folder, self._say = folder, say
        self._turn = threading.Lock()
        self._server = FrameServer(folder.run / "rehearsal.sock", self._serve, "rehearsal")

    def __enter__(self) -> RehearsalDesk:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def _serve(self, connection: socket.socket) -> None:
        if not self._turn.acquire(blocking=False):
            return  # one at a time
        try:
            with contextlib.suppress(DpfdaError, OSError):
                self._run(connection)
        finally:
            self._turn.release()

    def _run(self, connection: socket.socket) -> None:
        key = Address.read(self._folder.address_path).coordinator_key
        site, descriptor = ClientSettings.of(self._folder).site, connection.fileno()
        command = make_command("dpfda.federation.rehearsal_main", site, key, str(descriptor))
        os.set_inheritable(descriptor, True)
        process = start_process(command, self._folder.work, self._folder.log, make_environment(), (descriptor,))
        self._say("The coordinator rehearses a study, on made-up data.")
        try:
            process.wait(LONGEST)
        finally:
            stop_process(process)
