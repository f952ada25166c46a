"""The coordinator's messages: only what a site has signed, about the very question that was asked, is believed."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.errors import ProtocolError, TransportError
from dpfda.federation.carried import ANSWERED
from dpfda.federation.keys import make_signing_key
from dpfda.federation.plausible import Plausible
from dpfda.federation.running import PatientTransport, RunOptions
from dpfda.federation.server_link import Answers
from dpfda.federation.signed import INVITATION, SignedHandler, SignedQuestions
from dpfda.federation.signing import sign_acceptance
from dpfda.federation.study import name_study
from dpfda.federation.wire import StudyWire
from dpfda.methods.run import make_coordinator
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.terms import SiloTerms, StudyTerms

COORDINATOR, KEYS = make_signing_key(), {name: make_signing_key() for name in ("a", "b")}
TERMS = StudyTerms("adaptive", (0, 1), (-5, 5), tuple(SiloTerms(name, 100, 1.0, 1e-3) for name in "ab"), min_silos=1)
RUN = name_study(TERMS)
QUERY = Query(RUN, 0, {name: np.asarray(array) for name, array in make_coordinator(TERMS).question(0).items()})
CENTRE, SD, REACH = Plausible(TERMS).expect(QUERY, "a")


@pytest.fixture
def wire():
    return StudyWire(SignedQuestions(COORDINATOR, {name: key.public_key() for name, key in KEYS.items()}), TERMS)


def answer(message, payload, site="a", key=None):
    handler = SignedHandler(site, COORDINATOR.public_key(), key or KEYS[site], lambda subject, _: payload)
    return handler(message)


def release(run=RUN, round_=0, silo="a", values=0.0, sd=1.0, extra=0):
    """Of an empty silo, moved by some of its noise's sd, with its sd or a multiple of it, and some numbers too many."""
    numbers, noise = np.append(CENTRE + values * SD, [0.0] * extra), np.append(sd * SD, [1.0] * extra)
    return Release(run, round_, silo, numbers, noise, True).encode()


def test_a_release_is_believed(wire):
    found = wire.read_answer(QUERY, "a", answer(wire.write_question(QUERY), release()))
    assert (found.run, found.round, found.silo) == (RUN, 0, "a")


@pytest.mark.parametrize(
    "payload", [release(run="other"), release(round_=4), release(silo="b"), b"", b"nonsense"], ids=str
)
def test_a_release_about_something_else_is_not(wire, payload):
    with pytest.raises(ProtocolError):
        wire.read_answer(QUERY, "a", answer(wire.write_question(QUERY), payload))


@pytest.mark.parametrize(
    "numbers",
    [
        {"values": np.nan},
        {"values": np.inf},
        {"values": 1e300},
        {"values": 1e60},
        {"values": 2 * REACH},
        {"values": -2 * REACH},
        {"sd": 1e-60},
        {"sd": 1.001},
        {"sd": 1e60},
        {"sd": 0.0},
        {"sd": -1.0},
        {"sd": np.nan},
        {"extra": 1},
    ],
    ids=str,
)
def test_a_member_cannot_end_a_study_by_numbers_that_no_silo_releases(wire, numbers):
    """N9: one malformed release ended a study for good, since it was recorded and replayed."""
    with pytest.raises(ProtocolError, match="no silo of this study releases"):
        wire.read_answer(QUERY, "a", answer(wire.write_question(QUERY), release(**numbers)))


def test_nor_is_one_that_another_has_signed_or_of_another_round(wire):
    question = wire.write_question(QUERY)
    later = wire.write_question(Query(RUN, 1, QUERY.arrays))
    for reply in (answer(question, release(), key=KEYS["b"]), answer(later, release()), b""):
        with pytest.raises(ProtocolError):
            wire.read_answer(QUERY, "a", reply)


def test_an_acceptance_is_the_sites_own_and_of_these_terms(wire):
    invitation = wire.write_invitation(TERMS, RUN)
    good = sign_acceptance(TERMS.digest(), "a", "ledger", 1, KEYS["a"])
    assert wire.is_acceptance(TERMS, RUN, "a", answer(invitation, good))
    assert wire.acceptances == {"a": good}
    for bad in (
        sign_acceptance("0" * 64, "a", "ledger", 1, KEYS["a"]),
        sign_acceptance(TERMS.digest(), "b", "ledger", 1, KEYS["a"]),
        sign_acceptance(TERMS.digest(), "a", "ledger", 1, COORDINATOR),
    ):
        with pytest.raises(ProtocolError):
            wire.is_acceptance(TERMS, RUN, "a", answer(invitation, bad))


class Scripted:
    """A server whose sites join when the script says so."""

    def __init__(self, wire, joining):
        self.wire, self.joining, self.asked = wire, list(joining), 0

    def ask(self, sites, message, closing, counts):
        self.asked += 1
        here = self.joining.pop(0) if len(self.joining) > 1 else self.joining[0]
        signed = {name: sign_acceptance(TERMS.digest(), name, "x", 1, KEYS[name]) for name in here}
        given = {name: answer(message, data, name) for name, data in signed.items()}
        assert all(counts(name, data) for name, data in given.items())
        return Answers(given, {name: "unavailable" for name in sites if name not in given})


def test_the_terms_are_offered_until_all_have_joined(wire):
    told, server = [], Scripted(wire, [[], ["a"], ["a", "b"]])
    PatientTransport(server, wire, RunOptions(), lambda kind, codes: told.append(codes)).open(TERMS, RUN)
    assert told == [
        {"a": "unavailable", "b": "unavailable"}, {"a": ANSWERED, "b": "unavailable"}, {"a": ANSWERED, "b": ANSWERED},
    ]  # fmt: skip
    assert server.asked == 3
    assert INVITATION == -1


def test_enough_sites_are_enough_after_a_while_and_too_few_are_not(wire):
    patient = RunOptions(for_sites=60.0, for_late_sites=0.0)
    PatientTransport(Scripted(wire, [["b"]]), wire, patient, lambda *_: None).open(TERMS, RUN)
    hasty = RunOptions(for_sites=0.0, for_late_sites=0.0)
    with pytest.raises(TransportError, match=r"0 of 2 sites have joined .* missing: a, b"):
        PatientTransport(Scripted(wire, [[]]), wire, hasty, lambda *_: None).open(TERMS, RUN)
