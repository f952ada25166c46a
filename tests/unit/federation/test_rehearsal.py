"""A rehearsal: made-up curves of the study's shape, questions of a kind of their own, and no way to data or ledger."""

from __future__ import annotations

import contextlib
import inspect
import socket
import threading

import numpy as np
import pytest

from dpfda.errors import ProtocolError, TransportError
from dpfda.federation import rehearsal, rehearsal_main
from dpfda.federation.flare import rehearsal_desk
from dpfda.federation.frames import receive_frame, send_frame
from dpfda.federation.keys import make_signing_key
from dpfda.federation.rehearsal import MOST_SUBJECTS, Rehearsal, make_rehearsal_terms, make_up_curves
from dpfda.federation.rehearsing import RehearsalReport, RehearsalWire
from dpfda.federation.signed import INVITATION, SignedHandler
from dpfda.federation.signing import QUERY, REHEARSAL, Subject, peek_kind, sign_message
from dpfda.federation.silo_service import Reply
from dpfda.federation.study import name_study
from dpfda.methods.run import make_coordinator
from dpfda.protocol.messages import Query
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.terms import CovariateTerms, SiloTerms, StudyTerms

TERMS = StudyTerms(
    "adaptive", (20.0, 90.0), (0.0, 150.0), (SiloTerms("north", 15_000, 1.0, 1e-5, 6.0),),
    (CovariateTerms("male", levels=("0", "1", "x")), CovariateTerms("bmi", bounds=(10.0, 70.0))), n_basis=4, name="lipid",
)  # fmt: skip


def test_a_rehearsal_has_the_shape_of_the_study_and_another_name():
    terms = make_rehearsal_terms(TERMS)
    assert terms.name == "rehearsal-lipid"
    assert terms.digest() != TERMS.digest()
    assert terms.silos[0].n == MOST_SUBJECTS
    curves = make_up_curves(terms, "north", 0)
    assert (curves.n, curves.n_points, curves.p) == (MOST_SUBJECTS, 6 * MOST_SUBJECTS, 4)
    assert curves.x.min() >= 20
    assert curves.x.max() <= 90
    assert 0 <= curves.y.min() <= curves.y.max() <= 150
    assert set(np.unique(curves.design[:, 1:3].sum(axis=1))) == {0.0, 1.0}


def test_it_answers_rehearsals_and_nothing_else():
    key, terms = make_signing_key(), make_rehearsal_terms(TERMS)
    wire, handler, run = RehearsalWire(key, terms), Rehearsal("north", key.public_key()), name_study(terms)
    first = Query(run, 0, {name: np.asarray(array) for name, array in make_coordinator(terms).question(0).items()})
    with pytest.raises(ProtocolError, match="has not begun"):
        handler(wire.write_question(first))
    assert wire.is_acceptance(terms, run, "north", handler(wire.write_invitation(terms, run)))
    release = wire.read_answer(first, "north", handler(wire.write_question(first)))
    assert release.values.size == make_plan(terms).release_width(0)
    assert handler.rounds == 1
    assert wire.read_answer(first, "south", b"") is None
    subject = Subject(terms.digest(), run, 0)
    for bad in (
        sign_message(QUERY, subject, first.encode(), key),
        sign_message(REHEARSAL, subject, first.encode(), make_signing_key()),
        RehearsalWire(key, TERMS).write_invitation(TERMS, name_study(TERMS)),
    ):
        with pytest.raises(ProtocolError):
            handler(bad)


def test_a_silo_with_data_never_answers_a_rehearsal():
    """The kind is part of what is signed: a rehearsal's question is no question for real data, nor the reverse."""
    key = make_signing_key()
    silo = SignedHandler("north", key.public_key(), make_signing_key(), lambda *_: pytest.fail("it was answered"))
    message = sign_message(REHEARSAL, Subject("0" * 64, "run", INVITATION), b"x", key)
    assert peek_kind(message) == REHEARSAL
    with pytest.raises(ProtocolError):
        silo(message)


def test_its_process_is_given_no_path():
    """A name, a public key and a connection: nothing of it leads to the folder, the policy, the data or the ledger."""
    source = inspect.getsource(rehearsal_desk)
    assert 'make_command("dpfda.federation.rehearsal_main", site, key, str(descriptor))' in source
    for module in (rehearsal, rehearsal_main):
        code = inspect.getsource(module)
        imports = [line for line in code.splitlines() if line.strip().startswith(("import ", "from "))]
        assert not any(
            word in line
            for line in imports
            for word in ("policy", "ledger", "folder", "tables", "pathlib", "decisions")
        )


def test_what_goes_wrong_is_unavailable():
    ours, theirs = socket.socketpair()

    def serve():
        with contextlib.suppress(TransportError):
            rehearsal_main.serve(theirs, lambda _: 1 / 0)

    thread = threading.Thread(target=serve)
    thread.start()
    with ours:
        send_frame(ours, b"x")
        assert Reply.parse(receive_frame(ours)) == Reply(False)
    thread.join(10)
    theirs.close()


def test_a_report_says_how_long_rounds_took():
    report = RehearsalReport("s", 3, 2, [0.2, 0.4, 0.3], {"north": 2}, {})
    assert report.fields()["median_seconds"] == 0.3
    assert RehearsalReport("s", 3, 0, [], {}, {}).fields()["median_seconds"] is None
