"""Running a study to its end: server, jobs, sites that leave and come back. Every job goes on where the last one ended."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from dpfda.errors import TransportError
from dpfda.federation.flare.job import write_job
from dpfda.federation.flare.processes import ended_politely, start_server, stop, stop_leftover, wait_until
from dpfda.federation.flare.session import CoordinatorSession
from dpfda.federation.status import Status
from dpfda.federation.workspace import StudyFolder

_POLL = 0.5
_MOST_RETURNS = 3  # of one site; each costs the others a new job, which takes seconds
_LATE_HEART_BEAT = 1.0  # a sign of life this long after a site was missed means that it is back

OnStatus = Callable[[Status | None, list[str]], None]


@dataclass(frozen=True)
class RunOptions:
    """Seconds to wait, and how often to try again."""

    for_sites: float = 300.0
    for_late_sites: float = 20.0
    after_enough: float = 5.0
    in_all: float = 120.0
    fruitless_jobs: int = 3


@dataclass
class _Watch:
    """What is known about one job while it runs."""

    job: str
    missed_at: dict[str, float] = field(default_factory=dict)


class StudyRun:
    """One call of `dpfda study run` or `resume`."""

    def __init__(self, folder: StudyFolder, options: RunOptions, on_status: OnStatus) -> None:
        self._folder, self._options, self._on_status = folder, options, on_status
        self._document = folder.document()
        self._session = CoordinatorSession(folder.lead)
        self._server: subprocess.Popen[bytes] | None = None
        self._returns: Counter[str] = Counter()

    def to_end(self) -> None:
        """Start the server, run jobs until every round is on record, stop the server."""
        pid_file = self._folder.root / "server.pid"
        stop_leftover(pid_file, self._folder.server)
        with ended_politely():
            self._server = start_server(self._folder.server, self._folder.root / "server.log")
            pid_file.write_text(f"{self._server.pid}\n")
            try:
                self._session.connect(60.0)
                self._wait_for_sites()
                self._run_jobs()
            except TransportError:
                with contextlib.suppress(subprocess.TimeoutExpired):  # a dead server is the better explanation
                    self._server.wait(timeout=2.0)
                self._check_server()
                raise
            finally:
                self._session.close()
                stop([self._server])
                pid_file.unlink(missing_ok=True)

    def _run_jobs(self) -> None:
        fruitless = 0
        while fruitless < self._options.fruitless_jobs:
            before = self._folder.rounds_done()
            if self._run_job():
                return
            fruitless = 0 if self._folder.rounds_done() > before else fruitless + 1
            self._wait_for_sites()
        raise TransportError(
            f"{fruitless} jobs in a row brought the study no further (round {self._folder.rounds_done()}); "
            f"see {self._folder.root / 'server.log'}, then run dpfda study resume."
        )

    def _run_job(self) -> bool:
        """One job; whether the study is finished."""
        self._folder.transcript.mkdir(exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory() as scratch:
            arguments = {
                "study": str(self._folder.study_path), "folder": str(self._folder.transcript),
                "after_enough": self._options.after_enough, "in_all": self._options.in_all,
            }  # fmt: skip
            sites = sorted(set(self._names()) & set(self._session.sites()))
            job = self._session.submit(write_job(Path(scratch) / "job", self._document.id, sites, arguments))
        watch = _Watch(job)
        while True:
            status = self._status_of(job)
            self._on_status(status, list(self._session.sites()))
            if status is not None and status.phase == "finished":
                return True
            if status is not None and status.phase == "stopped":
                raise TransportError(f"The study stopped: {status.message}")
            if self._session.is_over(job):
                return False
            if status is not None and self._someone_is_back(status, watch):
                self._session.abort(job)
                wait_until(lambda: self._session.is_over(job), 20.0, _POLL)
                return False
            time.sleep(_POLL)
            self._check_server()

    def _status_of(self, job: str) -> Status | None:
        status = self._folder.status()
        return status if status is not None and status.job == job else None

    def _someone_is_back(self, status: Status, watch: _Watch) -> bool:
        """FLARE does not let a restarted site into a running job, so a returning site gets a new one, a few times."""
        seen, now = self._session.sites(), time.time()
        outside = [name for name in self._names() if status.sites[name]["state"] == "absent"]
        for name in outside:
            missed = watch.missed_at.setdefault(name, now)
            if seen.get(name, 0.0) > missed + _LATE_HEART_BEAT and status.rounds - status.done > 1:
                if self._returns[name] >= _MOST_RETURNS:
                    continue
                self._returns[name] += 1
                return True
        return False

    def _wait_for_sites(self) -> None:
        """All sites, or after a while the minimum."""
        wanted, terms = set(self._names()), self._document.terms
        began = time.monotonic()
        while True:
            self._check_server()
            here = wanted & set(self._session.sites())
            self._on_status(None, sorted(here))
            waited = time.monotonic() - began
            if here == wanted or (len(here) >= terms.min_silos and waited > self._options.for_late_sites):
                return
            if waited > self._options.for_sites:
                raise TransportError(
                    f"{len(here)} of {len(wanted)} sites are connected after {waited:.0f} s, the minimum is "
                    f"{terms.min_silos}; missing: {', '.join(sorted(wanted - here))}. Nothing is lost: start them, then run "
                    "dpfda study resume."
                )
            time.sleep(_POLL)

    def _check_server(self) -> None:
        if self._server is not None and self._server.poll() is not None:
            raise TransportError(
                f"The server ended by itself at round {self._folder.rounds_done()}; nothing is lost: "
                "run dpfda study resume."
            )

    def _names(self) -> list[str]:
        return [site.name for site in self._document.terms.silos]
