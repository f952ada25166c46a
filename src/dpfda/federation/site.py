"""The site's border: every question of the coordinator comes in here, and what goes out is a `Release` or nothing.

A question arrives with the coordinator's signature checked. The order is fixed: the terms must be accepted and the policy
must allow them, both as they are NOW; the run must be the one that the terms stand for; then the question is parsed, and the
`Silo` checks it again and hands out only what its ledger has recorded. Whatever happens is written to the site's own log;
outside, every refusal looks the same.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpfda.errors import InvalidInput, ProtocolError
from dpfda.federation.approvals import Window
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.decisions import Decisions
from dpfda.federation.folder import SiteFolder
from dpfda.federation.ledger_record import check_against_log, check_pledge, check_pledges, record_position
from dpfda.federation.policy import SitePolicy
from dpfda.federation.seal import check_seal
from dpfda.federation.signed import INVITATION
from dpfda.federation.signing import Subject
from dpfda.federation.site_ledger import open_ledger
from dpfda.federation.study import name_study
from dpfda.privacy.ledger.chain import parse_head
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.messages import Query
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.terms import StudyTerms
from dpfda.silo.silo import Silo

_MOST_ALIKE = 20  # lines of one process that say the same: the coordinator cannot fill a site's disk
_MOST_KINDS = 1000  # of lines that one process tells apart: a coordinator may vary its questions
_MOST_STUDIES = 20  # whose data are held at a time

Stamp = tuple[tuple[int, int, int] | None, ...]


@dataclass
class _Open:
    """An accepted study with its data, and the state of the files that allow it."""

    terms: StudyTerms
    run: str
    silo: Silo
    stamp: Stamp
    window: Window
    answers: int  # of the run, as far as this process knows


class Site:
    """Answers the coordinator's questions for one site, about all the studies that it has accepted."""

    def __init__(self, folder: SiteFolder, *, simulation: bool = False) -> None:
        self._folder, self._simulation = folder, simulation
        self._audit = AuditLog(folder.audit)
        self._open: dict[str, _Open] = {}
        self._said: Counter[tuple[Any, ...]] = Counter()
        self._noted = ""  # the head of the ledger in the last line that has one

    def answer(self, subject: Subject, payload: bytes) -> bytes:
        """Answer one question, or raise; an error never leaves the silo's process."""
        event = "invitation" if subject.round == INVITATION else "query"
        facts: dict[str, Any] = {"terms": subject.terms, "round": subject.round}
        try:
            if event == "invitation":
                return self._invite(subject, payload, facts)
            return self._answer(subject, payload, facts)
        except BaseException as error:  # a panic of compiled code is no Exception
            self._note(event, **facts, outcome="refused", reason=f"{type(error).__name__}: {error}")
            raise

    def _invite(self, subject: Subject, payload: bytes, facts: dict[str, Any]) -> bytes:
        """Keep the offer for the owner; if it is accepted, join and show the acceptance."""
        decisions = Decisions(self._folder)
        terms, new = decisions.keep(payload, subject.terms)
        facts["study"] = name_study(terms)
        if new:
            self._note("offer", study=facts["study"], terms=subject.terms, outcome="kept")
        opened = self._join(subject)
        self._note("invitation", **facts, outcome="joined", **record_position(opened.silo.ledger))
        return decisions.acceptance(subject.terms)

    def _answer(self, subject: Subject, payload: bytes, facts: dict[str, Any]) -> bytes:
        opened = self._join(subject)
        query = Query.decode(payload)
        facts.update(study=opened.run, query=query.digest())
        if (query.run, query.round) != (subject.run, subject.round):
            raise ProtocolError("The question is about a different round from its signature.")
        release = opened.silo.release(query)
        position = parse_head(release.head)[0]
        outcome = "replayed" if position < opened.answers else "released"
        opened.answers = max(opened.answers, position + 1)
        self._note("query", **facts, outcome=outcome, head=release.head, **record_position(opened.silo.ledger))
        return release.encode()

    def _join(self, subject: Subject) -> _Open:
        """The study of these terms, if the owner accepts it and the policy allows it at this moment."""
        stamp, known = self._stamp(subject.terms), self._open.get(subject.terms)
        if known is None or known.stamp != stamp:
            self._open.pop(subject.terms, None)
            known = self._open_study(subject.terms, stamp)
        if subject.run != known.run:
            raise ProtocolError("These terms stand for one run, and this is another.")
        known.window.check(time.time())
        return known

    def _open_study(self, digest: str, stamp: Stamp) -> _Open:
        decisions = Decisions(self._folder)
        terms = decisions.accepted(digest)  # what nobody accepted costs no more than a look
        check_seal(self._folder)
        policy = SitePolicy.load(self._folder.policy_path)
        refuse_seed(policy, simulation=self._simulation)
        objections = policy.objections(terms, decisions.site)
        if objections:
            raise ProtocolError(" ".join(objections))
        window = decisions.find_window(digest, policy)
        window.check(time.time())

        run = name_study(terms)

        def note(found: str) -> None:
            self._note("data", terms=digest, study=run, outcome="loaded", notes=found)

        ledger, pledged = open_ledger(policy), decisions.pledged_for(digest)
        check_pledge(ledger, digest, pledged)
        check_pledges(self._audit, {digest: pledged})
        check_against_log(ledger, self._audit)
        silo = open_silo(policy, terms, decisions.site, note)
        silo.join(terms, run)
        while len(self._open) >= _MOST_STUDIES:
            del self._open[next(iter(self._open))]  # it can be opened again; the ledger has its state
        answers, _ = parse_head(silo.ledger.head(run))
        self._open[digest] = _Open(terms, run, silo, stamp, window, answers)
        return self._open[digest]

    def _stamp(self, digest: str) -> Stamp:
        """Changes when the policy, its seal, the terms, the decision or the credentials change."""
        folder, name = self._folder, f"{digest}.json"
        records = (folder.terms / name, folder.acceptances / name, folder.approvals / name)
        return tuple(map(_stamp_file, (folder.policy_path, folder.seal, folder.address_path, *records)))

    def _note(self, event: str, **facts: Any) -> None:
        """Write a line to the site's log, unless it says what many before it said.

        Refusals about terms that nobody accepted are alike if their errors are of one kind, whatever the coordinator wrote.
        A line with a state of the ledger that the log may not know is always written: no answer leaves before its debit is
        noted, also if noting it failed at first.
        """
        outcome, terms, reason = facts["outcome"], facts.get("terms"), str(facts.get("reason"))
        if outcome == "refused" and not (self._folder.acceptances / f"{terms}.json").exists():
            terms, reason = None, reason.partition(":")[0]
        key = (event, outcome, terms, facts["round"] if outcome == "released" else reason)
        if key not in self._said and len(self._said) >= _MOST_KINDS and outcome == "refused":
            return
        self._said[key] += 1
        head = facts.get("ledger_head", self._noted)
        if self._said[key] <= _MOST_ALIKE or head != self._noted:
            append = self._audit.append_answer if outcome == "released" else self._audit.append
            append(event, **facts)
            self._noted = head


def refuse_seed(policy: SitePolicy, *, simulation: bool) -> None:
    """A seed voids every promise: it needs the owner's word on the command line, not only a line in a file."""
    if policy.seed is not None and not simulation:
        raise InvalidInput(
            "The policy has a seed, which voids every promise; remove [simulation], or add --simulation."
        )


def open_silo(policy: SitePolicy, terms: StudyTerms, name: str, note: Callable[[str], None] | None = None) -> Silo:
    """The site's data behind its ledger, with the promise that these terms state; `note` is told what was found in them."""
    mine, ledger = terms.silo(name), open_ledger(policy)
    ledger.check(make_plan(terms).events(name), name_study(terms))  # before the table is read
    loaded = policy.load_curves(terms, mine.n)
    curves = loaded.curves
    if note is not None and loaded.owner_notes:
        note("; ".join(loaded.owner_notes))
    promise: dict[str, Any] = {"epsilon": mine.epsilon, "delta": mine.delta, "points_per_curve": mine.points_per_curve}
    if policy.seed is None:
        return Silo(curves, name=name, ledger=ledger, **promise)
    silo = Silo(curves, name=name, random_state=policy.seed, **promise)
    silo.ledger = ledger  # a simulation's own file, so that even crashes can be simulated
    return silo


def check_ready(folder: SiteFolder, *, simulation: bool) -> SitePolicy:
    """Before every start: the folder, its seal, the decisions, the log, the policy and the ledger."""
    folder.check()
    check_seal(folder)
    decisions, policy = Decisions(folder), SitePolicy.load(folder.policy_path)
    decisions.check()
    AuditLog(folder.audit).verify()
    refuse_seed(policy, simulation=simulation)
    ledger = open_ledger(policy)
    ledger.verify()
    check_ledger(ledger, AuditLog(folder.audit), decisions)
    for offer in decisions.offers():
        objections = policy.objections(offer.terms, decisions.site) if offer.decision == "accepted" else []
        if objections:
            raise InvalidInput(f"The policy does not allow {offer.study}, which was accepted: " + " ".join(objections))
    return policy


def check_ledger(ledger: Ledger, audit: AuditLog, decisions: Decisions) -> None:
    """The ledger against all that the site's own records say of it: its log, and every acceptance that it pays for."""
    pledges = decisions.pledged()
    check_pledges(audit, pledges)
    for terms, pledged in pledges.items():
        check_pledge(ledger, terms, pledged)
    check_against_log(ledger, audit)


def _stamp_file(path: Path) -> tuple[int, int, int] | None:
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        return None
    return facts.st_mtime_ns, facts.st_size, facts.st_ino
