"""What a site was offered and what its owner decided: `terms/<digest>.json` and `acceptances/<digest>.json`.

An offer is a document of the coordinator, with its signature; a decision is the site's own, with the site's signature and
the digest of the terms. Both are checked each time they are read, so a file that somebody else put there decides nothing.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dpfda.errors import InvalidInput, ProtocolError
from dpfda.federation.approvals import WITHOUT_LIMIT, Approvals, Window
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.files import write_atomically
from dpfda.federation.folder import Address, SiteFolder
from dpfda.federation.keys import read_public_text, read_signing_key
from dpfda.federation.ledger_record import Pledge, record_position
from dpfda.federation.policy import SitePolicy
from dpfda.federation.proposal import open_terms
from dpfda.federation.seal import read_site_name
from dpfda.federation.signing import (
    DECLINE,
    MAX_DOCUMENT,
    open_acceptance,
    open_document,
    sign_acceptance,
    sign_document,
)
from dpfda.federation.study import name_study
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.terms import StudyTerms

MOST_OPEN = 100  # offers without a decision: more are not kept
Decision = Literal["open", "accepted", "declined"]


@dataclass(frozen=True)
class Offer:
    """Terms that the coordinator signed, and what the owner said to them."""

    terms: StudyTerms
    decision: Decision

    @property
    def study(self) -> str:
        """The study's id."""
        return name_study(self.terms)

    def is_called(self, words: str) -> bool:
        """Whether its name is this, or its id or digest begins so."""
        return self.terms.name == words or self.study.startswith(words) or self.terms.digest().startswith(words)


class Decisions:
    """The offers and decisions in one site's folder."""

    def __init__(self, folder: SiteFolder) -> None:
        self._folder = folder
        self.site = read_site_name(folder)
        self._coordinator = read_public_text(Address.read(folder.address_path).coordinator_key)
        self._key = read_signing_key(folder.sign_key)

    def keep(self, data: bytes, digest: str | None = None) -> tuple[StudyTerms, bool]:
        """Keep an offer, from a file or a message that names its digest; its terms, and whether it is new."""
        if len(data) > MAX_DOCUMENT:
            raise ProtocolError("The terms are too long.")
        terms = open_terms(data, self._coordinator)
        if self.site not in {silo.name for silo in terms.silos}:
            raise ProtocolError(f"The terms have no site {self.site!r}.")
        if digest not in (None, terms.digest()):
            raise ProtocolError("The invitation holds other terms than it names.")
        path = self._folder.terms / f"{terms.digest()}.json"
        if path.exists():
            return terms, False
        if self._count_open() >= MOST_OPEN:
            raise ProtocolError(f"More than {MOST_OPEN} offers await a decision; decline some of them first.")
        write_atomically(path, data)
        return terms, True

    def _count_open(self) -> int:
        """By names alone: an invitation costs a look at two folders, however many offers there are."""
        offered, decided = (
            {entry.name for entry in os.scandir(folder)} for folder in (self._folder.terms, self._folder.acceptances)
        )
        return len(offered - decided)

    def offers(self) -> list[Offer]:
        """Every offer, in the order of arrival."""
        paths = sorted(self._folder.terms.glob("*.json"), key=lambda path: (path.stat().st_mtime_ns, path.name))
        return [Offer(terms, self._decision(terms)) for terms in map(self._read, paths)]

    def find(self, words: str) -> Offer:
        """The one offer whose id or digest this is; else whose name it is; else whose id or digest begins so.

        A name is the coordinator's to choose, so it never stands in the way of another study's id.
        """
        offers = self.offers() if words else []
        found = [offer for offer in offers if words in (offer.study, offer.terms.digest())]
        found = found or [offer for offer in offers if offer.is_called(words)]
        if len(found) > 1:
            raise InvalidInput(
                f"{len(found)} offers begin with this: {', '.join(offer.study for offer in found)}; give one of these ids."
            )
        if not found:
            raise InvalidInput("There is no such offer; dpfda site inbox lists those that have arrived.")
        return found[0]

    def accepted(self, digest: str) -> StudyTerms:
        """Terms that this site accepts now, or a refusal."""
        path = self._folder.terms / f"{digest}.json"
        if not path.is_file() or path.is_symlink():
            raise ProtocolError("This site has not been offered these terms.")
        terms = self._read(path)
        self.acceptance(digest)
        return terms

    def acceptance(self, digest: str) -> bytes:
        """The signed acceptance of these terms, or a refusal."""
        data = self._decided(digest)
        if data is None:
            raise ProtocolError("The owner of this site has not accepted these terms.")
        open_acceptance(data, digest, self.site, self._key.public_key())
        return data

    def accept(self, terms: StudyTerms, ledger: Ledger, window: Window = WITHOUT_LIMIT) -> None:
        """The owner said yes, from when to when: note it with the state of the ledger, then sign it, durably.

        An acceptance is therefore never without its line in the log. What leaves names the ledger by its identity only.
        """
        dates = (window.begins, window.ends)
        self._note(terms, "accepted", begins=dates[0], ends=dates[1], **record_position(ledger))
        self._write(terms, sign_acceptance(terms.digest(), self.site, ledger.id, int(time.time()), self._key, dates))

    def decline(self, terms: StudyTerms) -> None:
        """The owner said no, or no longer yes: nothing more is answered, and then it is noted."""
        body = {"terms": terms.digest(), "site": self.site, "at": int(time.time())}
        self._write(terms, sign_document(DECLINE, body, self._key))
        self._note(terms, "declined")

    def pledged(self) -> dict[str, Pledge]:
        """What each acceptance that holds binds, by the digest of its terms."""
        found = {}
        for offer in self.offers():
            if offer.decision == "accepted":
                digest = offer.terms.digest()
                found[digest] = self.pledged_for(digest)
        return found

    def pledged_for(self, digest: str) -> Pledge:
        """The ledger that pays for these terms, which are accepted, and the dates with which they were accepted."""
        body = open_acceptance(self.acceptance(digest), digest, self.site, self._key.public_key())
        return Pledge(str(body["ledger"]), body["begins"], body["ends"])

    def find_window(self, digest: str, policy: SitePolicy) -> Window:
        """When these terms, which are accepted, are answered: where the acceptance holds and the approvals do.

        The dates of the acceptance hold whatever becomes of the approvals, and of the people in the policy.
        """
        pledge = self.pledged_for(digest)
        return Approvals(self._folder).find_window(digest, policy).meet(Window(pledge.begins, pledge.ends))

    def check(self) -> None:
        """Refuse to go on, by name, if an offer or a decision is not what its signature says."""
        known = set()
        for path in sorted(self._folder.terms.glob("*.json")):
            known.add(self._read(path).digest())
        for path in sorted(self._folder.acceptances.glob("*.json")):
            if path.stem not in known:
                raise InvalidInput(f"acceptances/{path.name} decides on terms that are not here; do not run this site.")
            self._decision(self._read(self._folder.terms / path.name))

    def _note(self, terms: StudyTerms, outcome: str, **facts: Any) -> None:
        audit = AuditLog(self._folder.audit)
        audit.append("decision", study=name_study(terms), terms=terms.digest(), outcome=outcome, **facts)

    def _write(self, terms: StudyTerms, data: bytes) -> None:
        write_atomically(self._folder.acceptances / f"{terms.digest()}.json", data)

    def _read(self, path: Path) -> StudyTerms:
        try:
            terms = open_terms(path.read_bytes(), self._coordinator)
        except ProtocolError as error:
            raise InvalidInput(f"terms/{path.name} is not what the coordinator signed: {error}") from None
        if terms.digest() != path.stem:
            raise InvalidInput(f"terms/{path.name} holds other terms than its name says.")
        return terms

    def _decided(self, digest: str) -> bytes | None:
        path = self._folder.acceptances / f"{digest}.json"
        return path.read_bytes() if path.is_file() and not path.is_symlink() else None

    def _decision(self, terms: StudyTerms) -> Decision:
        data, digest, public = self._decided(terms.digest()), terms.digest(), self._key.public_key()
        if data is None:
            return "open"
        try:
            open_acceptance(data, digest, self.site, public)
        except ProtocolError:
            pass
        else:
            return "accepted"
        try:
            body = open_document(DECLINE, data, public)
        except ProtocolError:
            body = {}
        if (body.get("terms"), body.get("site")) != (digest, self.site):
            raise InvalidInput(f"acceptances/{digest}.json was not signed by this site; do not run it.")
        return "declined"
