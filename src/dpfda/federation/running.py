"""Runs a study to its end: the server, sites that join late, leave and come back; one run of a study at a time."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import dpfda
from dpfda.errors import DpfdaError, TransportError
from dpfda.federation.carried import ANSWERED, ASK, INVITE, CarriedTransport
from dpfda.federation.consortium import ConsortiumFolder
from dpfda.federation.files import OWNER_ONLY
from dpfda.federation.flare.launch import ended_politely, stop_process
from dpfda.federation.flare.supervisor import listens, rotate_log, start_server
from dpfda.federation.lock import Lock, read_lock
from dpfda.federation.rounds import Closing, Counts, count_all
from dpfda.federation.server_link import Answers, ServerLink, SiteContact
from dpfda.federation.status import Status
from dpfda.federation.study import name_study
from dpfda.federation.wire import StudyWire
from dpfda.federation.workspace import StudyFolder
from dpfda.methods.run import run_study
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.terms import StudyTerms
from dpfda.transports.checkpoint import CheckpointTransport

_SHORTEST_ASK, _LONGEST_ASK = 2.0, 10.0  # seconds that one invitation stays open
_TRIES = 3
_TELL_EVERY = 0.2  # seconds
_TO_END = 2.0  # seconds that the server gets to end by itself
OnStatus = Callable[[Status], None]


@dataclass(frozen=True)
class RunOptions:
    """How long to wait, in seconds.

    `for_sites`: until enough sites have joined; `for_late_sites`: for further ones then; `after_enough`: in a round, once
    the minimum has answered; `in_all`: in a round, for the minimum. The terms say the last two unless they are given here.
    """

    for_sites: float = 600.0
    for_late_sites: float = 20.0
    after_enough: float | None = None
    in_all: float | None = None

    def closing(self, terms: StudyTerms) -> Closing:
        """When a round of these terms closes: by quorum or by deadline."""
        grace = terms.grace_seconds if self.after_enough is None else self.after_enough
        deadline = terms.round_seconds if self.in_all is None else self.in_all
        return Closing(terms.min_silos, grace, deadline)


class Server:
    """The consortium's server for as long as it is needed: the one that is up, or one of our own if there is none."""

    def __init__(self, consortium: ConsortiumFolder) -> None:
        self._consortium = consortium
        self._settings = consortium.settings()
        self._process: subprocess.Popen[bytes] | None = None
        self._link = ServerLink(self._settings.socket)

    def __enter__(self) -> Server:
        self.ensure()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._link.close()
        if self._process is not None:
            stop_process(self._process, patience=_TO_END)
            self._process = None

    def ask(self, sites: Sequence[str], message: bytes, closing: Closing, counts: Counts) -> Answers:
        """Ask; if the server dies meanwhile, start it and ask again: sites answer a repeated question from their records."""
        for _ in range(_TRIES - 1):
            try:
                return self._link.ask(sites, message, closing, counts)
            except TransportError:
                self.ensure()
        return self._link.ask(sites, message, closing, counts)

    def look(self) -> dict[str, SiteContact]:
        """Who is enrolled and connected."""
        return self._link.look()

    @property
    def is_own(self) -> bool:
        """Whether it ends with this process."""
        return self._process is not None

    def ensure(self) -> None:
        """Start the server unless it runs; keep its log short."""
        rotate_log(self._consortium.log)
        if self._process is not None and self._process.poll() is not None:
            stop_process(self._process)
            self._process = None
        if self._process is None and read_lock(self._settings.lock)[0] != "running":
            self._process = start_server(self._settings, self._consortium.log)


@contextlib.contextmanager
def running_link(consortium: ConsortiumFolder) -> Iterator[ServerLink | None]:
    """A link to the server if one runs now and takes questions; nothing is started."""
    settings = consortium.settings()
    if read_lock(settings.lock)[0] != "running" or not listens(settings.socket):
        yield None
        return
    link = ServerLink(settings.socket)
    try:
        yield link
    finally:
        link.close()


def send_terms(folder: StudyFolder) -> list[str]:
    """Hand a study's terms to the sites that are connected to a running server; their names."""
    terms, consortium = folder.terms(), folder.consortium()
    wire = StudyWire(consortium.questions(), terms)
    with running_link(consortium) as link:
        if link is None:
            return []
        connected = {name for name, contact in link.look().items() if contact.connected}
        sites = [silo.name for silo in terms.silos if silo.name in connected]
        if sites:
            invitation = wire.write_invitation(terms, name_study(terms))
            link.ask(sites, invitation, Closing(len(sites), 0.0, 2.0), count_all)
        return sites


class PatientTransport(CarriedTransport[StudyTerms, Query, Release]):
    """A transport that offers the terms again and again until enough sites have joined."""

    def __init__(self, server: Server, wire: StudyWire, options: RunOptions, note: Callable[..., None]) -> None:
        super().__init__(server, wire, options.closing(wire.terms), note)
        self._study_wire, self._options, self._note = wire, options, note

    def open(self, plan: StudyTerms, run: str) -> None:
        """Offer the terms until all sites have joined, or enough of them and no other for a while."""
        self._sites = tuple(self._study_wire.name_sites(plan))
        invitation, began, pause = self._study_wire.write_invitation(plan, run), time.monotonic(), _SHORTEST_ASK
        joined: set[str] = set()
        while True:
            waited = time.monotonic() - began
            enough = len(joined) >= plan.min_silos
            if len(joined) == len(self._sites) or (enough and waited > self._options.for_late_sites):
                return
            if waited > self._options.for_sites:
                raise TransportError(self._describe_missing(joined, plan.min_silos, waited))
            usable, missing = self._ask(
                invitation,
                Closing(len(self._sites), 0.0, pause),
                lambda site, answer: self._study_wire.is_acceptance(plan, run, site, answer) or None,
            )
            joined |= set(usable)
            self._note(INVITE, {site: missing.get(site, ANSWERED) for site in self._sites})
            pause = min(_LONGEST_ASK, 1.5 * pause)

    def _describe_missing(self, joined: set[str], least: int, waited: float) -> str:
        missing = ", ".join(site for site in self._sites if site not in joined)
        return (
            f"{len(joined)} of {len(self._sites)} sites have joined after {waited:.0f} s, the minimum is {least}; missing: "
            f"{missing}. They are not running, or their owners have not accepted. Nothing is lost: run dpfda study resume."
        )


def append_traceback(log: Path, error: Exception) -> None:
    """Add a mistake of this program to a log that only its owner may read."""
    rotate_log(log)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, OWNER_ONLY)
    with os.fdopen(descriptor, "a", encoding="utf-8") as file:
        file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} dpfda {dpfda.__version__}\n")
        file.writelines(traceback.format_exception(error))


class StudyRun:
    """One call of `dpfda study run` or `resume`."""

    def __init__(self, folder: StudyFolder, options: RunOptions, on_status: OnStatus) -> None:
        self._folder, self._options, self._on_status = folder, options, on_status
        self.server: Server | None = None
        self._told: tuple[str, ...] | None = None
        self._told_at = 0.0

    def to_end(self) -> None:
        """Offer the terms, ask every round, keep the transcript. A second run of the same study is refused."""
        folder = self._folder
        terms = folder.terms()
        with Lock(folder.lock), ended_politely():
            status = Status.begin(terms, folder.rounds_done())
            try:
                self._run_or_explain(terms, status)
            except (DpfdaError, KeyboardInterrupt) as error:  # all it can say is public: it was made on this side
                told = str(error) or "Interrupted."
                status.end("stopped", told)
                self._tell(status)
                raise
            status.end("finished")
            self._tell(status)

    def _run_or_explain(self, terms: StudyTerms, status: Status) -> None:
        """A mistake in this program ends the run in one sentence; its traceback is for the log."""
        try:
            self._run(terms, status)
        except (DpfdaError, OSError):
            raise
        except Exception as error:
            log = self._folder.log
            append_traceback(log, error)
            raise TransportError(
                f"dpfda made a mistake at the coordinator ({type(error).__name__}); {log} has its traceback. Answered "
                "rounds are on record: report the mistake, upgrade dpfda, and run dpfda study resume."
            ) from error

    def _run(self, terms: StudyTerms, status: Status) -> None:
        folder, consortium = self._folder, self._folder.consortium()
        wire = StudyWire(consortium.questions(), terms)

        def answered(kind: str, codes: Mapping[str, str]) -> None:
            status.note(codes, asked=kind == ASK)
            if kind == INVITE:
                folder.keep_acceptances(wire.acceptances)
            self._tell(status)

        def advanced(done: int, planned: int) -> None:
            status.advance(done)
            self._tell(status)

        def left_out(sites: Sequence[str], reason: str) -> None:
            status.note(dict.fromkeys(sites, reason), asked=True)
            self._tell(status)

        self._tell(status)
        if status.done == status.rounds:
            return
        with Server(consortium) as server:
            self.server = server
            transport = PatientTransport(server, wire, self._options, answered)
            recorded = CheckpointTransport(transport, folder.transcript, left_out)
            run_study(terms, recorded, name_study(terms), advanced)

    def _tell(self, status: Status) -> None:
        """Write the status: at once if anything but the number of rounds has changed, else a few times a second."""
        now, state = time.monotonic(), status.describe_state()
        if state != self._told or now - self._told_at > _TELL_EVERY:
            self._folder.status_file.write(status)
            self._told, self._told_at = state, now
        self._on_status(status)
