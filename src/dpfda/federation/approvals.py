"""Who approved a study, and from when to when: `approvals/<digest>.json`, beside the site's own acceptance.

An approval is a document that a person signs with a personal key, which never lies in the site's folder; the policy lists
the people and how many of them must sign. Where the policy lists nobody, the site's own key signs the dates. The site looks
at approvals and dates before every answer, so a study ends for it on the day that was said.

A signature counts if the site's log has a line with its hash, the last of this person, and none since that the terms were
declined: one that was withdrawn does not count again when its file is put back.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpfda.errors import InvalidInput, ProtocolError
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.files import make_private_folder, write_atomically
from dpfda.federation.folder import SiteFolder
from dpfda.federation.keys import public_text, read_public_text, read_signing_key
from dpfda.federation.policy import SitePolicy
from dpfda.federation.seal import read_site_name
from dpfda.federation.signing import APPROVAL, encode_canonically, open_document, parse_canonically, sign_document
from dpfda.federation.study import name_study
from dpfda.protocol.terms import StudyTerms

_FIELDS = {"terms", "site", "person", "begins", "ends", "at"}
MOST_APPROVALS = 100
_LAST = 253_402_300_799  # the last second of the year 9999


@dataclass(frozen=True)
class Window:
    """From when to when a study is answered: seconds since 1970, the end excluded; None is without limit."""

    begins: int | None = None
    ends: int | None = None

    def __post_init__(self) -> None:
        for moment in (self.begins, self.ends):
            if moment is not None and (type(moment) is not int or not 0 <= moment <= _LAST):
                raise InvalidInput(
                    "The dates of an approval must be days from 1970 to 9999; correct --from and --until."
                )
        if self.begins is not None and self.ends is not None and self.begins >= self.ends:
            raise InvalidInput("The approval must end after it begins; correct --from and --until.")

    def check(self, now: float) -> None:
        """Refuse outside of it."""
        if self.begins is not None and now < self.begins:
            raise ProtocolError(f"The approval of these terms begins on {show_day(self.begins)}.")
        if self.ends is not None and now >= self.ends:
            raise ProtocolError(f"The approval of these terms ended before {show_day(self.ends)}.")

    def meet(self, other: Window) -> Window:
        """Where both hold."""
        begins = [each for each in (self.begins, other.begins) if each is not None]
        ends = [each for each in (self.ends, other.ends) if each is not None]
        low, high = max(begins, default=None), min(ends, default=None)
        if low is not None and high is not None and low >= high:
            raise ProtocolError("The dates of the approvals do not overlap.")
        return Window(low, high)

    def describe(self) -> str:
        """In a few words; empty without limits."""
        words = [] if self.begins is None else [f"from {show_day(self.begins)}"]
        if self.ends is not None:
            words.append(f"through {show_day(self.ends - 1)}")
        return " ".join(words)


WITHOUT_LIMIT = Window()


@dataclass(frozen=True)
class Approval:
    """One person's signature; `person` is empty for the site's own."""

    person: str
    window: Window
    at: int


class Approvals:
    """The approvals in one site's folder; each is checked whenever it is read."""

    def __init__(self, folder: SiteFolder) -> None:
        self._folder, self._site, self._audit = folder, read_site_name(folder), AuditLog(folder.audit)

    def add(
        self,
        terms: StudyTerms,
        policy: SitePolicy,
        window: Window,
        person: str = "",
        key: Ed25519PrivateKey | None = None,
    ) -> None:
        """Sign these terms, in the name of a person whom the policy lists, or of the site if it lists nobody."""
        if bool(policy.approvers) != bool(person):
            raise InvalidInput(
                f"The policy asks for {policy.persons} of {', '.join(policy.approvers)}: give --person and --key."
                if policy.approvers else "The policy lists no people under [approval]; leave --person and --key out."
            )  # fmt: skip
        signing = read_signing_key(self._folder.sign_key) if key is None else key
        if person and policy.approvers.get(person) != public_text(signing):
            raise InvalidInput(f"The policy does not list {person!r} with this key; correct --person or --key.")
        body = {"terms": terms.digest(), "site": self._site, "person": person, "begins": window.begins,
                "ends": window.ends, "at": int(time.time())}  # fmt: skip
        kept = [each for each in self._documents(terms.digest()) if each["body"]["person"] != person]
        signed = parse_canonically(sign_document(APPROVAL, body, signing))
        facts = {"person": person or None, "dates": window.describe() or None, "document": _hash(signed)}
        self._audit.append("approval", study=name_study(terms), terms=terms.digest(), outcome="signed", **facts)
        make_private_folder(self._folder.approvals)
        write_atomically(self._path(terms.digest()), encode_canonically([*kept, signed]))

    def withdraw(self, terms: StudyTerms) -> None:
        """Forget every signature: whoever accepts again needs new ones."""
        self._path(terms.digest()).unlink(missing_ok=True)

    def read(self, digest: str, policy: SitePolicy) -> list[Approval]:
        """The approvals that count under this policy; one that nobody listed has signed is refused by name."""
        found, documents = [], self._documents(digest)
        signed = self._find_signed(digest) if documents else {}
        for document in documents:
            person = document["body"]["person"]
            if signed.get(person) != _hash(document):
                continue  # withdrawn, or signed anew since
            if (not person) == bool(policy.approvers) or (person and person not in policy.approvers):
                continue  # of a time when the policy asked for others
            text = policy.approvers[person] if person else public_text(read_signing_key(self._folder.sign_key))
            body = open_document(APPROVAL, encode_canonically(document), read_public_text(text))
            if set(body) != _FIELDS or (body["terms"], body["site"]) != (digest, self._site):
                raise ProtocolError(f"approvals/{digest}.json holds an approval of something else.")
            found.append(Approval(person, Window(body["begins"], body["ends"]), int(body["at"])))
        return found

    def count_missing(self, digest: str, policy: SitePolicy) -> int:
        """How many more people must sign."""
        return max(0, policy.persons - len({each.person for each in self.read(digest, policy) if each.person}))

    def find_window(self, digest: str, policy: SitePolicy) -> Window:
        """From when to when these terms are approved, or a refusal if people are missing."""
        missing = self.count_missing(digest, policy)
        if missing:
            raise ProtocolError(
                f"{missing} of the {policy.persons} people who must approve these terms have not signed."
            )
        window = Window()
        for approval in self.read(digest, policy):
            window = window.meet(approval.window)
        return window

    def _find_signed(self, digest: str) -> dict[str, str]:
        """The hash of each person's last signature since these terms were declined, as the log has them."""
        signed: dict[str, str] = {}
        for line in self._audit.lines():
            if line.get("terms") != digest:
                continue
            if (line["event"], line.get("outcome")) == ("decision", "declined"):
                signed.clear()
            if (line["event"], line.get("outcome")) == ("approval", "signed"):
                signed[line.get("person") or ""] = str(line.get("document"))
        return signed

    def _path(self, digest: str) -> Any:
        return self._folder.approvals / f"{digest}.json"

    def _documents(self, digest: str) -> list[dict[str, Any]]:
        path = self._path(digest)
        if not path.is_file() or path.is_symlink():
            return []
        found = parse_canonically(path.read_bytes())
        whole = isinstance(found, list) and len(found) <= MOST_APPROVALS and all(
            isinstance(each, dict) and isinstance(each.get("body"), dict) and isinstance(each["body"].get("person"), str)
            for each in found
        )  # fmt: skip
        if not whole:
            raise ProtocolError(f"approvals/{digest}.json cannot be read; decline the study and approve it again.")
        documents: list[dict[str, Any]] = found
        return documents


def _hash(document: dict[str, Any]) -> str:
    return hashlib.sha256(encode_canonically(document)).hexdigest()


def parse_day(option: str, text: str | None, *, end: bool = False) -> int | None:
    """A day such as 2027-01-31 (UTC) as seconds; with `end`, the day after it, so that the day itself counts."""
    if text is None:
        return None
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
        return int((day + timedelta(days=int(end))).timestamp())
    except (ValueError, OverflowError):
        raise InvalidInput(f"{option} must be a day such as 2027-01-31, got {text!r}.") from None


def show_day(seconds: int) -> str:
    """The day (UTC) of a moment."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"
