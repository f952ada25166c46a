"""Queries out and releases back through FLARE's broadcasts, with patience for sites that are slow, gone or back again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nvflare.apis.controller_spec import Task

from dpfda.errors import ProtocolError, TransportError
from dpfda.federation.exchange import OK, Answer, Invitation
from dpfda.federation.flare import wire
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.terms import StudyTerms

_TICK = 0.25  # how often an abort is noticed while waiting; answers wake the loop at once


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds.

    `after_enough`: for further sites once the minimum has answered; `in_all`: for the minimum.
    """

    after_enough: float = 5.0
    in_all: float = 120.0


class FlareTransport:
    """The coordinator's side of the transport contract.

    A round waits for every site that took part in the round before, but not longer than `patience.after_enough` once
    `min_sites` have answered. A site that misses a round is still asked, and is waited for again as soon as it answers.
    """

    def __init__(
        self,
        controller: Any,
        fl_ctx: Any,
        abort_signal: Any,
        *,
        min_sites: int,
        patience: Patience | None = None,
        clients: Mapping[str, str] | None = None,
        on_answers: Callable[[str, Mapping[str, str]], None] | None = None,
    ) -> None:
        self._controller, self._fl_ctx, self._abort = controller, fl_ctx, abort_signal
        self._min_sites = min_sites
        self._patience = patience or Patience()
        self._clients = clients
        self._on_answers = on_answers
        self._sites: dict[str, str] = {}
        self._absent: set[str] = set()

    def open(self, terms: StudyTerms, run: str) -> None:
        """Invite every site; below the minimum nothing is asked."""
        names = [silo.name for silo in terms.silos]
        clients = self._clients if self._clients is not None else dict(zip(names, names, strict=True))
        for name in names:
            if name not in clients:
                raise TransportError(f"Site {name!r} is not connected.")
        self._sites = {name: clients[name] for name in names}
        self._absent = set()
        answers = self._ask(wire.INVITE, Invitation(run, terms.digest()).encode())
        self._enough(answers)

    def gather(self, query: Query) -> Mapping[str, Release]:
        """Ask all sites; the releases of those that answered, in the terms' order."""
        answers = self._ask(wire.ASK, query.encode())
        releases = {}
        for name, answer in answers.items():
            release = _release(answer, query, name)
            if release is not None:
                releases[name] = release
        self._enough(answers, releases)
        return releases

    def returned(self, client: str) -> None:
        """A late answer shows that a site is alive: wait for it again."""
        self._absent -= {name for name, known in self._sites.items() if known == client}

    def _enough(self, answers: Mapping[str, Answer], usable: Mapping[str, Release] | None = None) -> None:
        good = list(usable) if usable is not None else [name for name, answer in answers.items() if answer.code == OK]
        if len(good) >= self._min_sites:
            return
        missing = ", ".join(name for name in self._sites if name not in good)
        raise TransportError(
            f"{len(good)} of {len(self._sites)} sites answered, the minimum is {self._min_sites}; missing: {missing}. "
            "Nothing is lost: when they are back, run dpfda study resume."
        )

    def _ask(self, kind: str, message: bytes) -> dict[str, Answer]:
        results: dict[str, Any] = {}
        news = threading.Event()

        def received(client_task: Any, fl_ctx: Any) -> None:
            results[client_task.client.name] = client_task.result
            news.set()

        task = Task(name=kind, data=wire.question(message), result_received_cb=received)
        self._controller.broadcast(task, self._fl_ctx, targets=list(self._sites.values()), min_responses=0)
        try:
            self._wait(results, news)
        finally:
            self._controller.cancel_task(task, fl_ctx=self._fl_ctx)
        arrived = dict(results)
        answers = {name: wire.read_answer(arrived[client]) for name, client in self._sites.items() if client in arrived}
        self._absent = set(self._sites) - set(answers)
        if self._on_answers is not None:
            self._on_answers(kind, {name: answers[name].code if name in answers else "" for name in self._sites})
        return answers

    def _wait(self, results: Mapping[str, Any], news: threading.Event) -> None:
        begun, enough_since = time.monotonic(), None
        while True:
            news.clear()
            awaited = [client for name, client in self._sites.items() if name not in self._absent]
            if len(results) >= self._min_sites and all(client in results for client in awaited):
                return
            now = time.monotonic()
            if len(results) >= self._min_sites:
                enough_since = now if enough_since is None else enough_since
                if now - enough_since >= self._patience.after_enough:
                    return
            if now - begun >= self._patience.in_all:
                return
            if self._abort.triggered:
                raise TransportError("The job was aborted.")
            news.wait(_TICK)


def _release(answer: Answer, query: Query, name: str) -> Release | None:
    """A release that answers this question; anything else counts as no answer."""
    if answer.code != OK:
        return None
    try:
        release = Release.decode(answer.payload)
    except ProtocolError:
        return None
    return release if (release.run, release.round, release.silo) == (query.run, query.round, name) else None
