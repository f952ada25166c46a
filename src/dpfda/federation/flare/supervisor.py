"""Keeps a site's two processes running, the FLARE client and the silo, until it is asked to stop. It imports no FLARE.

Before the client is started, a TLS preflight looks whether the server can be reached, and says in one sentence why not. A
client that the server refuses ends by itself and is started again, with the newest certificate. Both processes end when the
supervisor ends, however it ends.

Started like this, client and silo run as the same user, so a client that was taken over could read the silo's files. Where
the system allows it, start the two as services of different users (the silo without any network) instead.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dpfda.errors import DpfdaError, TransportError
from dpfda.federation.contact import Contact
from dpfda.federation.files import OWNER_ONLY
from dpfda.federation.flare.launch import (
    FAILED_EXIT,
    REFUSED_EXIT,
    make_command,
    make_environment,
    start_process,
    stop_process,
)
from dpfda.federation.flare.rehearsal_desk import RehearsalDesk
from dpfda.federation.flare.settings import ClientSettings, ServerSettings, encode_settings
from dpfda.federation.folder import SiteFolder, wipe
from dpfda.federation.frames import connect
from dpfda.federation.keys import read_certificate
from dpfda.federation.lock import Lock, read_lock
from dpfda.federation.metrics import Metric, MetricsServer, seconds_since
from dpfda.federation.preflight import Credentials, Finding, check_connection
from dpfda.federation.silence import describe_clock, is_fresh

_PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_STEADY = 60.0  # a process that ran so many seconds begins again with the shortest pause
_LOOK = 0.5  # seconds between looks: a site that waits costs next to nothing
_AWAY = 15.0  # seconds without contact until the preflight looks for the cause
_LARGEST_LOG = 10_000_000

_ENDS = {
    REFUSED_EXIT: "The server does not know this site's certificate (ask the coordinator to enrol or renew it)",
    FAILED_EXIT: "The server did not complete the log-in",
}

Say = Callable[[str], None]


@dataclass
class _Child:
    """One process that is started again whenever it ends."""

    name: str
    start: Callable[[], subprocess.Popen[bytes] | None]
    process: subprocess.Popen[bytes] | None = None
    began: float = 0.0
    due: float = 0.0
    failures: int = 0
    starts: int = 0

    def look(self, say: Say) -> None:
        """Start it when it is due; notice when it has ended."""
        now = time.monotonic()
        if self.process is not None and self.process.poll() is not None:
            why = _ENDS.get(self.process.returncode, f"The {self.name} ended (code {self.process.returncode})")
            stop_process(self.process)
            self.process = None
            self._postpone(now, now - self.began > _STEADY)
            say(f"{why}; it starts again in {self.due - now:g} s.")
        if self.process is None and now >= self.due:
            self.began = now
            self.process = self.start()
            if self.process is None:
                self._postpone(now, steady=False)
            else:
                self.starts += 1

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            stop_process(self.process)
            self.process = None

    def renew(self) -> None:
        """End it, to be started at once with the credentials as they are now."""
        self.stop()
        self.due, self.failures = 0.0, 0

    def _postpone(self, now: float, steady: bool) -> None:
        self.failures = 0 if steady else self.failures + 1
        self.due = now + _PAUSES[min(self.failures, len(_PAUSES) - 1)]


@dataclass
class Supervisor:
    """`dpfda site run`: call `run` in a process of its own.

    Parameters
    ----------
    folder : SiteFolder
        The site's folder; locked while this runs.
    silo_command : sequence of str
        Starts the silo's process, which must serve `folder.run / "silo.sock"` and call `end_with_parent`.
    say : callable
        Gets a sentence for people whenever something changes.
    silo_environment : mapping, optional
        What the silo's process needs beyond the allowed variables, such as a database's password.
    metrics_port : int, optional
        Serve public counters for a monitoring system at this port of 127.0.0.1.
    rehearsals : bool
        Let the coordinator rehearse studies on made-up data, in a process that is started for it.
    """

    folder: SiteFolder
    silo_command: Sequence[str]
    say: Say
    silo_environment: Mapping[str, str] = field(default_factory=dict)
    metrics_port: int | None = None
    rehearsals: bool = True
    _finding: Finding | None = None
    _looked: float = 0.0
    _shown: tuple[int, int, int] | None = None  # the stamp of the certificate that the client uses
    _clock: str | None = None

    def run(self, stop: threading.Event) -> None:
        """Keep both processes running until `stop` is set."""
        with Lock(self.folder.lock):
            self.folder.prepare()
            self.folder.run.mkdir(mode=0o700)
            self.folder.work.mkdir(mode=0o700)
            children = [_Child("silo", self._start_silo), _Child("client", self._start_client)]
            try:
                with contextlib.ExitStack() as stack:
                    if self.metrics_port is not None:
                        stack.enter_context(MetricsServer(self.metrics_port, lambda: self._collect(children)))
                    if self.rehearsals:
                        stack.enter_context(RehearsalDesk(self.folder, self.say))
                    while not stop.is_set():
                        self._look(*children)
                        stop.wait(_LOOK)
            finally:
                for child in children:
                    child.stop()
                wipe(self.folder.run)  # it holds a copy of the site's key

    def _look(self, silo: _Child, client: _Child) -> None:
        for child in (silo, client):
            child.look(self.say)
        if client.process is not None and self._shown not in (None, _stamp(self.folder.certificate)):
            self.say("There is a new certificate: the client starts again with it.")
            client.renew()
        self._explain_silence(client)
        rotate_log(self.folder.log)

    def _collect(self, children: Sequence[_Child]) -> list[Metric]:
        """Public facts: processes, contact, certificate."""
        contact = Contact.read(self.folder.contact)
        ends = read_certificate(self.folder.certificate.read_bytes()).not_valid_after_utc.timestamp()
        found = [
            Metric("dpfda_site_connected", "1 while the site is in contact with its server.", float(is_fresh(contact))),
            Metric("dpfda_site_last_contact_seconds", "Seconds since the site heard from its server.",
                   seconds_since(None if contact is None else contact.last_contact)),
            Metric("dpfda_site_clock_offset_seconds", "The server's clock minus this one's.",
                   math.nan if contact is None or contact.clock_offset is None else contact.clock_offset),
            Metric("dpfda_site_certificate_ends_timestamp_seconds", "When the site's certificate ends.", ends),
        ]  # fmt: skip
        for child in children:
            alive = child.process is not None and child.process.poll() is None
            named = {"process": child.name}
            found.append(Metric("dpfda_site_process_up", "1 while the process runs.", float(alive), labels=named))
            found.append(
                Metric("dpfda_site_process_starts_total", "How often it was started.", child.starts, "counter", named)
            )
        return found

    def _start_silo(self) -> subprocess.Popen[bytes]:
        environment = make_environment(more=self.silo_environment)
        return start_process(self.silo_command, self.folder.work, self.folder.log, environment)

    def _start_client(self) -> subprocess.Popen[bytes] | None:
        """The client, if the server can be reached; FLARE itself would try without end and say nothing."""
        try:
            settings = ClientSettings.of(self.folder)
        except (DpfdaError, OSError) as error:  # a certificate that is being replaced, for instance
            self.say(f"The client cannot start: {error}")
            return None
        shown = _stamp(settings.certificate)
        if not self._check(settings):
            return None
        self._shown = shown
        command = make_command("dpfda.federation.flare.client", encode_settings(settings))
        return start_process(command, self.folder.work, self.folder.log, make_environment(settings.authority))

    def _check(self, settings: ClientSettings) -> bool:
        credentials = Credentials(settings.authority, settings.certificate, settings.key, settings.identity)
        finding = check_connection(settings.host, settings.port, credentials)
        self._looked = time.monotonic()
        if self._finding is None or finding.code != self._finding.code:
            self.say(finding.sentence)
        self._finding = finding
        return finding.good

    def _explain_silence(self, client: _Child) -> None:
        """A client that runs but has no contact: say why, at most once per cause. A wrong clock is said, too."""
        now = time.monotonic()
        if client.process is None or now - max(client.began, self._looked) < _AWAY:
            return
        contact = Contact.read(self.folder.contact)
        if contact is not None and is_fresh(contact):
            clock = describe_clock(contact.clock_offset)
            if clock is not None and self._clock is None:
                self.say(clock)
            self._looked, self._clock = now, clock
            return
        with contextlib.suppress(DpfdaError, OSError):
            self._check(ClientSettings.of(self.folder))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Changes when the file does."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size, facts.st_ino


def rotate_log(path: Path, largest: int = _LARGEST_LOG) -> None:
    """Keep one older log; those who write to it append, so it can be emptied under them."""
    if path.exists() and path.stat().st_size > largest:
        older = path.with_name(path.name + ".1")
        shutil.copyfile(path, older)
        older.chmod(OWNER_ONLY)
        os.truncate(path, 0)


def start_server(settings: ServerSettings, log: Path, patience: float = 60.0) -> subprocess.Popen[bytes]:
    """Start the coordinator's server and wait until studies can ask it; it ends when this process does."""
    command = make_command("dpfda.federation.flare.server", encode_settings(settings))
    process = start_process(command, settings.socket.parent, log, make_environment(settings.authority))
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and process.poll() is None:
        _, holder = read_lock(settings.lock)
        if holder is not None and holder.pid == process.pid and listens(settings.socket):
            return process
        time.sleep(0.05)
    stop_process(process)
    raise TransportError(f"The server did not start; {log} says why.")


def listens(path: Path) -> bool:
    """Whether somebody takes connections at this socket."""
    try:
        connect(path).close()
    except TransportError:
        return False
    return True
