"""The site's border: every message of the coordinator comes in here, and what goes out is a code and a `Release`.

The order is fixed: bound the size, parse, look up the study that this site accepted, check it against the policy as it is
now, and only then ask the `Silo`, which checks again and hands out only what its ledger has recorded. Whatever happens is
written to the site's own log; the coordinator sees a code.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpfda.errors import InvalidInput, LedgerError, ProtocolError
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.exchange import MAX_MESSAGE, OK, UNAVAILABLE, Answer, Invitation
from dpfda.federation.files import make_private_folder
from dpfda.federation.ledger_record import check_against_log, record_position
from dpfda.federation.policy import SitePolicy
from dpfda.federation.study import StudyDocument
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.messages import Query
from dpfda.silo.silo import Silo

FOLDER = "dpfda"


class SiteFolder:
    """Where a site keeps its policy, the studies that it accepted, and its log: `local/dpfda` in its kit."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.policy_path = root / "policy.json"
        self.audit = AuditLog(root / "audit.jsonl")

    def policy(self) -> SitePolicy:
        """The policy as it is now."""
        return SitePolicy.load(self.policy_path)

    def accept(self, document: StudyDocument) -> None:
        """Remember the terms that this study id stands for."""
        document.save(make_private_folder(self.root / "studies") / f"{document.id}.json")

    def studies(self) -> list[StudyDocument]:
        """Every accepted study."""
        return [StudyDocument.load(path) for path in sorted((self.root / "studies").glob("*.json"))]

    def study(self, identity: str) -> StudyDocument:
        """An accepted study, or a refusal."""
        for path in (self.root / "studies").glob("*.json"):
            if path.stem == identity:  # never built from the coordinator's text
                return StudyDocument.load(path)
        raise ProtocolError(f"This site has not accepted a study {identity!r}.")


class Site:
    """Answers the coordinator's messages for one site, one job after another."""

    def __init__(self, folder: SiteFolder, name: str, job: str = "") -> None:
        self._folder = folder
        self._name = name
        self._job = job
        self._silos: dict[str, Silo] = {}

    def invite(self, message: bytes) -> Answer:
        """Check whether this site takes part; spends nothing."""
        return self._guard("invitation", message, self._invite)

    def answer(self, message: bytes) -> Answer:
        """Answer one query."""
        return self._guard("query", message, self._answer)

    def refuse(self, event: str, reason: str) -> Answer:
        """Refuse without looking further."""
        return self._guard(event, b"", lambda _message, _facts: _raise(ProtocolError(reason)))

    def _guard(self, event: str, message: Any, handle: Callable[[bytes, dict[str, Any]], bytes]) -> Answer:
        """The only place where errors become answers. It catches all of them: none may reach the coordinator."""
        facts: dict[str, Any] = {"job": self._job}
        try:
            if not isinstance(message, bytes) or len(message) > MAX_MESSAGE:
                raise ProtocolError("The message is not bytes of an allowed length.")
            payload = handle(message, facts)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            self._folder.audit.append(event, **facts, outcome=UNAVAILABLE, reason=reason)
            return Answer(UNAVAILABLE)
        self._folder.audit.append(event, **facts)
        return Answer(OK, payload)

    def _invite(self, message: bytes, facts: dict[str, Any]) -> bytes:
        invitation = Invitation.decode(message)
        facts["study"] = invitation.study
        self._join(invitation.study, invitation.terms)
        facts.update(outcome="joined", **record_position(self._silos[invitation.study].ledger))
        return b""

    def _answer(self, message: bytes, facts: dict[str, Any]) -> bytes:
        query = Query.decode(message)
        facts.update(study=query.run, round=query.round, query=query.digest())
        if query.run not in self._silos:  # this process came in later than the study began
            self._join(query.run, None)
        silo = self._silos[query.run]
        before = silo.ledger.position().debits
        release = silo.release(query)
        record = record_position(silo.ledger)
        facts.update(
            outcome="released" if record["ledger_debits"] > before else "replayed", head=release.head, **record
        )
        return release.encode()

    def _join(self, study: str, digest: str | None) -> None:
        policy = self._folder.policy()
        name = policy.name or self._name
        document = self._folder.study(study)
        if digest is not None and digest != document.terms.digest():
            raise ProtocolError("The coordinator's terms are not those that this site accepted.")
        objections = policy.objections(document, name)
        if objections:
            raise ProtocolError(" ".join(objections))
        silo = open_silo(policy, document, name, self._folder.audit)
        check_against_log(silo.ledger, self._folder.audit)
        silo.join(document.terms, document.id)
        self._silos[study] = silo


def open_silo(policy: SitePolicy, document: StudyDocument, name: str, audit: AuditLog | None = None) -> Silo:
    """The site's data behind its ledger, with the promise that this study states; notes on the data go to `audit`."""
    terms = document.terms.silo(name)
    loaded = policy.load_curves(document.terms, terms.n)
    curves = loaded.curves
    if audit is not None and loaded.owner_notes:
        audit.append("data", study=document.id, notes="; ".join(loaded.owner_notes))
    ledger = open_ledger(policy)
    promise: dict[str, Any] = {
        "epsilon": terms.epsilon,
        "delta": terms.delta,
        "points_per_curve": terms.points_per_curve,
    }
    if policy.seed is None:
        return Silo(curves, name=name, ledger=ledger, **promise)
    silo = Silo(curves, name=name, random_state=policy.seed, **promise)
    silo.ledger = ledger  # a simulation's own file, so that even crashes can be simulated
    return silo


def open_ledger(policy: SitePolicy) -> Ledger:
    """The ledger with the policy's total budget, which cannot be changed later. It is made by `dpfda budget init`."""
    place = policy.ledger_place
    if "://" not in place and not os.path.lexists(place):
        raise LedgerError(
            f"There is no ledger {policy.ledger_shown}, and it is never made in passing: make it once with: dpfda budget "
            f"init --ledger {policy.ledger_shown} --epsilon {policy.total_epsilon:g} --delta {policy.total_delta:g} (if "
            "there was one, see dpfda budget restore)"
        )
    ledger = Ledger.open(place)
    if (ledger.epsilon, ledger.delta) != (policy.total_epsilon, policy.total_delta):
        raise InvalidInput(
            f"The ledger {policy.ledger_shown} has the total budget ({ledger.epsilon:g}, {ledger.delta:g}), the policy "
            f"states ({policy.total_epsilon:g}, {policy.total_delta:g}); a budget cannot be changed, correct the policy."
        )
    return ledger


def _raise(error: Exception) -> bytes:
    raise error
