"""A malicious coordinator against real site processes: refused, logged, nothing spent, the site alive.

It holds the coordinator's signing key, so its signatures are good. What other members and a malicious server can do without
that key is in test_transport_without_jobs.py.
"""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

pytest.importorskip("nvflare")

from world import curves, study, three, wait_until

from dpfda.federation.decisions import Decisions
from dpfda.federation.keys import make_signing_key
from dpfda.federation.proposal import sign_terms
from dpfda.federation.signed import INVITATION
from dpfda.federation.signing import QUERY, Subject, sign_document, sign_message
from dpfda.federation.site_ledger import open_ledger
from dpfda.federation.study import name_study
from dpfda.protocol.messages import Query
from dpfda.protocol.plans.registry import make_plan

SITE, R = "alpha", 4
SHORT = 0.5  # seconds: a refusal comes when its round closes


def new_victim(flare):
    """A site that has answered rounds 0 and 1 of an honest study."""
    terms = study(three(), constants={"C_T": 1.0})
    policy = flare.sites[SITE].configure(curves(60, 1), terms)
    victim = Victim(flare, terms, policy)
    for round_ in (0, 1):
        assert flare.ask(SITE, terms, ask(terms, round_)) is not None
    return victim


@pytest.fixture(scope="module")
def victim(flare):
    return new_victim(flare)


class Victim:
    def __init__(self, flare, terms, policy):
        self.flare, self.terms, self.policy = flare, terms, policy

    def debits(self):
        return open_ledger(self.policy).spent().debits

    def lines(self):
        return self.flare.sites[SITE].log()

    def alive(self):
        """An honest question is still answered (by the stored release: nothing more is spent)."""
        return self.flare.ask(SITE, self.terms, ask(self.terms, 1)) is not None and self.debits() == 2

    def refuses(self, query, **subject):
        """Whether there is no answer, and a line in the site's own log says why."""
        before = len(self.lines())
        if self.flare.ask(SITE, self.terms, query, seconds=SHORT, **subject) is not None:
            return False
        assert wait_until(lambda: len(self.lines()) > before, 120), "the site's log says nothing"
        return {line["outcome"] for line in self.lines()[before:]} == {"refused"}


def ask(terms, round_, value=0.0, size=R):
    return Query(name_study(terms), round_, {"iterate": np.full(size, value)})


ATTACKS = {
    "another iterate": lambda t: ask(t, 1, 0.5),
    "an earlier round again, changed": lambda t: ask(t, 0, 0.5),
    "NaN": lambda t: ask(t, 2, np.nan),
    "infinity": lambda t: ask(t, 2, np.inf),
    "1e308": lambda t: ask(t, 2, 1e308),
    "too long": lambda t: ask(t, 2, size=R + 1),
    "empty": lambda t: Query(name_study(t), 2, {}),
    "another array": lambda t: Query(name_study(t), 2, {"iterate": np.zeros(R), "clip": np.ones(1)}),
    "another run in the question": lambda t: Query("another-study", 0, {"iterate": np.zeros(R)}),
    "a path as run": lambda t: Query("../policy", 0, {"iterate": np.zeros(R)}),
    "more rounds than planned": lambda t: ask(t, len(make_plan(t).rounds)),
    "a far round": lambda t: ask(t, 2**31 - 1),
    "garbage": lambda t: b"\x80\x04\x95cposix\nsystem\n.",
    "nothing": lambda t: b"",
    "a huge message": lambda t: b"dpfda\x01" + b"\0" * 8_000_000,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_bad_question_is_refused_and_logged(victim, attack):
    assert victim.refuses(ATTACKS[attack](victim.terms))
    assert victim.debits() == 2


SUBJECTS = {
    "another run": {"run": "another-run"},
    "a second run of the same terms": {"run": "second"},
    "terms of nobody": {"terms": "0" * 64},
    "another round than the question's": {"round": 3},
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_signature_about_something_else_is_refused(victim, name):
    assert victim.refuses(ask(victim.terms, 2), **SUBJECTS[name])
    assert victim.debits() == 2
    assert victim.alive()


def test_terms_that_nobody_accepted_are_kept_for_the_owner_and_not_answered(flare, victim):
    """An offer costs nothing and gives nothing; the same terms with one changed value are other terms."""
    dearer = dataclasses.replace(victim.terms, silos=three(epsilon=50.0))
    other = dataclasses.replace(victim.terms, y_bounds=(-6.0, 6.0))
    decisions = Decisions(flare.sites[SITE].folder)
    for terms in (dearer, other):
        assert flare.invite(SITE, terms, seconds=SHORT) is None
        assert wait_until(lambda terms=terms: decisions.find(name_study(terms)).decision == "open", 120)
        assert flare.ask(SITE, terms, ask(terms, 0), seconds=SHORT) is None
    assert victim.debits() == 2
    assert victim.alive()


def test_terms_that_cannot_be_are_not_even_kept(flare, victim):
    """Fields out of range, unknown fields, another schema: signed all the same."""
    fields, folder = json.loads(victim.terms.encode()), flare.sites[SITE].folder
    before = {path.name for path in folder.terms.iterdir()}
    for change in ({"n_basis": 10_000}, {"bins": 0}, {"schema": 1}, {"name": "../x"}, {"y": "[bold]x"}, {"silos": []}):
        document = sign_document("terms", fields | change, flare.key)
        message = sign_message(QUERY, Subject("1" * 64, "run", INVITATION), document, flare.key)
        assert flare.send(SITE, message, SHORT) is None
    assert {path.name for path in folder.terms.iterdir()} == before
    assert victim.alive()


def test_an_invitation_that_names_other_terms_is_refused(flare, victim):
    other = dataclasses.replace(victim.terms, y_bounds=(-7.0, 7.0))
    subject = Subject(victim.terms.digest(), name_study(victim.terms), INVITATION)
    message = sign_message(QUERY, subject, sign_terms(other, flare.key), flare.key)
    assert flare.send(SITE, message, SHORT) is None
    assert flare.invite(SITE, victim.terms) is not None


def test_another_signing_key_gets_nothing_and_leaves_no_line(flare, victim):
    """Not the coordinator's signature: refused before anything is parsed, and the audit log cannot be filled with it."""
    lines, stranger = len(victim.lines()), make_signing_key()
    assert flare.invite(SITE, victim.terms, seconds=SHORT, key=stranger) is None
    assert len(victim.lines()) == lines
    assert "signature of this query is wrong" in flare.sites[SITE].folder.log.read_text()
    assert victim.alive()


def test_repeated_refusals_do_not_fill_the_disk(flare):
    victim = new_victim(flare)
    before = len(victim.lines())
    link_closes = 0.05
    for _ in range(40):
        flare.ask(SITE, victim.terms, ask(victim.terms, 1, 0.5), seconds=link_closes)
    assert wait_until(lambda: len(victim.lines()) - before >= 20, 120)
    assert victim.alive()
    assert len(victim.lines()) - before <= 22


def test_rounds_go_forward_only(flare):
    victim = new_victim(flare)
    terms = victim.terms
    assert flare.ask(SITE, terms, ask(terms, 4)) is not None  # a site may have missed rounds
    assert victim.refuses(ask(terms, 3))
    assert flare.ask(SITE, terms, ask(terms, 1)) is not None  # the stored answer of round 1, for nothing
    assert victim.debits() == 3


def test_a_policy_that_became_stricter_holds_from_the_next_question_on(flare):
    """The ledger, the acceptance and the running processes are the same; only the policy has changed."""
    from world import set_policy

    victim = new_victim(flare)
    set_policy(flare.sites[SITE].folder, dataclasses.replace(victim.policy, epsilon=0.5), new_ledger=False)
    assert victim.refuses(ask(victim.terms, 2))
    assert "promises at most" in victim.lines()[-1]["reason"]
    set_policy(flare.sites[SITE].folder, victim.policy, new_ledger=False)
    assert flare.ask(SITE, victim.terms, ask(victim.terms, 2)) is not None


def test_a_withdrawn_acceptance_holds_from_the_next_question_on(flare):
    victim = new_victim(flare)
    Decisions(flare.sites[SITE].folder).decline(victim.terms)
    assert victim.refuses(ask(victim.terms, 2))
    assert flare.ask(SITE, victim.terms, ask(victim.terms, 1), seconds=SHORT) is None, "not even what is on record"
    assert victim.debits() == 2
