"""Bytes that nobody believes do not count towards the quorum, so they leave no honest site out (ninth review, R9-2); nor do
answers that the study leaves out once the round is closed (tenth review, R10-1).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

pytest.importorskip("cryptography")

from dpfda.curves.simulated import simulate_mean
from dpfda.federation.carried import CarriedTransport
from dpfda.federation.frames import FrameServer
from dpfda.federation.keys import make_signing_key
from dpfda.federation.rounds import Closing, RoundTable, encode_answer, parse_question
from dpfda.federation.server_link import LinkService, ServerLink, SiteContact
from dpfda.federation.signed import INVITATION, SignedHandler, SignedQuestions
from dpfda.federation.signing import sign_acceptance
from dpfda.federation.silo_service import Reply
from dpfda.federation.study import name_study
from dpfda.federation.wire import StudyWire
from dpfda.methods.run import run_study
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.terms import StudyTerms
from dpfda.silo.silo import Silo
from dpfda.transports.checkpoint import CheckpointTransport

GRACE, SLOW = 0.2, 0.6  # seconds: the honest site needs three times the grace period
HOSTILE = {"junk": b"junk", "nothing": b""}


class ThreeSites:
    """Two silos that answer, one of them slowly in its first two rounds, and a member that answers junk at once.

    Without junk the member is a silo whose releases `change` alters before they are signed.
    """

    def __init__(
        self, folder, junk: bytes | None = None, change: Callable[[Release], Release] = lambda release: release
    ) -> None:
        curves, self.coordinator = simulate_mean(600, 6, rng=1), make_signing_key()
        self.keys = {f"s{k}": make_signing_key() for k in range(3)}
        self.silos = [
            Silo(curves[200 * k : 200 * k + 200], epsilon=1, delta=1e-5, name=f"s{k}",
                 ledger=Ledger.create(folder / f"ledger{k}", 2, 1e-5))
            for k in range(3)
        ]  # fmt: skip
        stated = tuple(silo.terms() for silo in self.silos)
        self.terms = StudyTerms("adaptive", (0.0, 1.0), (-4.0, 4.0), stated, min_silos=2, name="t")
        self.junk, self.change, self.handlers = junk, change, [self._handler(k) for k in range(3)]
        self.table = RoundTable(self._send, lambda: dict.fromkeys(self.keys, 1))
        for silo in self.silos:
            silo.join(self.terms, name_study(self.terms))

    def _handler(self, k: int) -> SignedHandler:
        def act(subject, payload: bytes) -> bytes:
            if k == 1 and subject.round < 2:
                time.sleep(SLOW)
            if subject.round == INVITATION:
                return sign_acceptance(self.terms.digest(), f"s{k}", "ledger", 1, self.keys[f"s{k}"])
            release = self.silos[k].release(Query.decode(payload))
            return (self.change(release) if k == 2 else release).encode()

        return SignedHandler(f"s{k}", self.coordinator.public_key(), self.keys[f"s{k}"], act)

    def _send(self, site: str, question: bytes) -> bool:
        ticket, _, message = parse_question(question)

        def answer() -> None:
            junk = self.junk if site == "s2" else None
            said = self.handlers[int(site[1])](message) if junk is None else junk
            self.table.deliver(site, encode_answer(ticket, Reply(True, said)))

        threading.Thread(target=answer, daemon=True).start()
        return True

    def wire(self) -> StudyWire:
        known = {name: key.public_key() for name, key in self.keys.items()}
        return StudyWire(SignedQuestions(self.coordinator, known), self.terms)


@pytest.fixture(params=HOSTILE)
def sites(tmp_path, request) -> ThreeSites:
    return ThreeSites(tmp_path, HOSTILE[request.param])


def use_a_seed(release: Release) -> Release:
    return replace(release, private=False)


def show_an_older_head(release: Release) -> Release:
    return replace(release, head=f"0:{'0' * 64}") if release.round else release


@pytest.fixture
def link(sites, tmp_path) -> Iterator[ServerLink]:
    yield from open_link(sites, tmp_path)


def open_link(sites: ThreeSites, tmp_path) -> Iterator[ServerLink]:
    contacts = {name: SiteContact(True, True) for name in sites.keys}
    server = FrameServer(tmp_path / "server.sock", LinkService(sites.table.ask, lambda: contacts).serve, "study")
    server.start()
    made = ServerLink(tmp_path / "server.sock")
    yield made
    made.close()
    server.close()


def test_bytes_that_nobody_believes_leave_no_honest_site_out(sites, link) -> None:
    told = []
    transport = CarriedTransport(link, sites.wire(), Closing(2, GRACE, 60.0), lambda kind, codes: told.append(codes))
    outcome = run_study(sites.terms, transport, name_study(sites.terms))
    assert outcome.private
    assert set(outcome.heads) == {"s0", "s1"}
    assert all(codes == {"s0": "ok", "s1": "ok", "s2": "answer rejected"} for codes in told)


@pytest.mark.parametrize("change", [use_a_seed, show_an_older_head])
def test_answers_that_are_left_out_later_leave_no_honest_site_out(tmp_path, change) -> None:
    """Such a member made the quorum, and without its answer too few were left: the study stopped, at every resume."""
    sites, told = ThreeSites(tmp_path, change=change), []
    for link in open_link(sites, tmp_path):
        inner = CarriedTransport(link, sites.wire(), Closing(2, GRACE, 60.0), lambda kind, codes: told.append(codes))
        outcome = run_study(sites.terms, CheckpointTransport(inner, tmp_path / "record"), name_study(sites.terms))
    assert outcome.private
    assert {"s0", "s1"} <= set(outcome.heads)
    assert told[-1] == {"s0": "ok", "s1": "ok", "s2": "answer rejected"}
