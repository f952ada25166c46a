"""Ninth review, R9-2: bytes that nobody believes do not count towards the quorum, so they leave no honest site out."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

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
from dpfda.protocol.messages import Query
from dpfda.protocol.terms import StudyTerms
from dpfda.silo.silo import Silo

GRACE, SLOW = 0.2, 0.6  # seconds: the honest site needs three times the grace period
HOSTILE = {"junk": b"junk", "nothing": b""}


class ThreeSites:
    """Two silos that answer, one of them slowly in its first two rounds, and a member that answers junk at once."""

    def __init__(self, folder, junk: bytes) -> None:
        curves, self.coordinator = simulate_mean(400, 6, rng=1), make_signing_key()
        self.keys = {f"s{k}": make_signing_key() for k in range(3)}
        self.silos = [
            Silo(curves[200 * k : 200 * k + 200], epsilon=1, delta=1e-5, name=f"s{k}",
                 ledger=Ledger.create(folder / f"ledger{k}", 2, 1e-5))
            for k in range(2)
        ]  # fmt: skip
        stated = (*(silo.terms() for silo in self.silos), Silo(curves[:200], epsilon=1, delta=1e-5, name="s2").terms())
        self.terms = StudyTerms("adaptive", (0.0, 1.0), (-4.0, 4.0), stated, min_silos=2, name="t")
        self.junk, self.handlers = junk, [self._handler(k) for k in range(2)]
        self.table = RoundTable(self._send, lambda: dict.fromkeys(self.keys, 1))
        for silo in self.silos:
            silo.join(self.terms, name_study(self.terms))

    def _handler(self, k: int) -> SignedHandler:
        def act(subject, payload: bytes) -> bytes:
            if k == 1 and subject.round < 1:
                time.sleep(SLOW)
            if subject.round == INVITATION:
                return sign_acceptance(self.terms.digest(), f"s{k}", "ledger", 1, self.keys[f"s{k}"])
            return self.silos[k].release(Query.decode(payload)).encode()

        return SignedHandler(f"s{k}", self.coordinator.public_key(), self.keys[f"s{k}"], act)

    def _send(self, site: str, question: bytes) -> bool:
        ticket, _, message = parse_question(question)

        def answer() -> None:
            said = self.junk if site == "s2" else self.handlers[int(site[1])](message)
            self.table.deliver(site, encode_answer(ticket, Reply(True, said)))

        threading.Thread(target=answer, daemon=True).start()
        return True

    def wire(self) -> StudyWire:
        known = {name: key.public_key() for name, key in self.keys.items()}
        return StudyWire(SignedQuestions(self.coordinator, known), self.terms)


@pytest.fixture(params=HOSTILE)
def sites(tmp_path, request) -> ThreeSites:
    return ThreeSites(tmp_path, HOSTILE[request.param])


@pytest.fixture
def link(sites, tmp_path) -> Iterator[ServerLink]:
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
