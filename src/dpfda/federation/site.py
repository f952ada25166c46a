"""The site's border: every message of the coordinator comes in here, and what goes out is a code and a `Release`.

The order is fixed: bound the size, parse, look up the study that this site accepted, check it against the policy as it is
now, and only then ask the `Silo`, which checks again and hands out only what its ledger has recorded. Whatever happens is
written to the site's own log; the coordinator sees a code.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpfda.errors import DpfdaError, InvalidInput, ProtocolError
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.exchange import MAX_MESSAGE, OK, Answer, Invitation, choose_code
from dpfda.federation.files import make_private_folder
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
            code = choose_code(error)
            reason = f"{type(error).__name__}: {error}"
            self._folder.audit.append(event, **facts, outcome=code, reason=reason)
            return Answer(code)
        self._folder.audit.append(event, **facts)
        return Answer(OK, payload)

    def _invite(self, message: bytes, facts: dict[str, Any]) -> bytes:
        invitation = Invitation.decode(message)
        facts["study"] = invitation.study
        self._join(invitation.study, invitation.terms)
        facts.update(outcome="joined", **_money(self._silos[invitation.study].ledger))
        return b""

    def _answer(self, message: bytes, facts: dict[str, Any]) -> bytes:
        query = Query.decode(message)
        facts.update(study=query.run, round=query.round, query=query.digest())
        if query.run not in self._silos:  # this process came in later than the study began
            self._join(query.run, None)
        silo = self._silos[query.run]
        before = silo.ledger.spent().debits
        release = silo.release(query)
        after = silo.ledger.spent().debits
        facts.update(outcome="released" if after > before else "replayed", **_money(silo.ledger))
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
        silo = open_silo(policy, document, name)
        silo.join(document.terms, document.id)
        self._silos[study] = silo


def open_silo(policy: SitePolicy, document: StudyDocument, name: str) -> Silo:
    """The site's data behind its ledger, with the promise that this study states."""
    terms = document.terms.silo(name)
    try:
        curves = policy.load_curves(document.terms).curves
    except InvalidInput as error:  # about the data, so not a refusal of the question
        raise DpfdaError(f"The data cannot be read: {error}") from error
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
    """The ledger with the policy's total budget, which cannot be changed later. A file is made on first use."""
    place = policy.ledger_place
    if "://" not in place and not Path(place).exists():
        note = "federated site" if policy.seed is None else "SIMULATION with a seed: not private"
        return Ledger.create(place, policy.total_epsilon, policy.total_delta, note)
    ledger = Ledger.open(place)
    if (ledger.epsilon, ledger.delta) != (policy.total_epsilon, policy.total_delta):
        raise InvalidInput(
            f"The ledger {policy.ledger_shown} has the total budget ({ledger.epsilon:g}, {ledger.delta:g}), the policy "
            f"states ({policy.total_epsilon:g}, {policy.total_delta:g}); a budget cannot be changed, correct the policy."
        )
    return ledger


def _money(ledger: Ledger) -> dict[str, float]:
    spent = ledger.spent()
    return {
        "epsilon_spent": spent.epsilon,
        "epsilon_total": spent.total_epsilon,
        "mu2_left": max(0.0, spent.budget_mu_squared - spent.mu_squared),
    }


def _raise(error: Exception) -> bytes:
    raise error
