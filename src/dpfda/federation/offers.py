"""Offers as a data steward looks at them and decides on them: the same functions for the command line and the console."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpfda.errors import DpfdaError
from dpfda.federation.approvals import Approvals, Window
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.counter import Counter, write_counter
from dpfda.federation.decisions import Decisions, Offer
from dpfda.federation.folder import SiteFolder
from dpfda.federation.keys import read_signing_key
from dpfda.federation.ledger_record import check_against_log, check_pledges
from dpfda.federation.policy import SitePolicy
from dpfda.federation.promise import Promise, check_promise
from dpfda.federation.seal import check_seal
from dpfda.federation.site import refuse_seed
from dpfda.federation.site_ledger import open_ledger


@dataclass(frozen=True)
class Person:
    """Who approves, with a personal key; nobody in particular where the policy lists nobody."""

    name: str = ""
    key: Ed25519PrivateKey | None = None


def describe_offers(folder: SiteFolder) -> list[dict[str, Any]]:
    """Every offer in plain values: what it is, what it costs here, what was decided, until when, who is missing."""
    decisions, approvals = Decisions(folder), Approvals(folder)
    try:
        policy: SitePolicy | None = SitePolicy.load(folder.policy_path)
    except DpfdaError:
        policy = None
    return [_describe(offer, decisions, approvals, policy) for offer in decisions.offers()]


def _describe(offer: Offer, decisions: Decisions, approvals: Approvals, policy: SitePolicy | None) -> dict[str, Any]:
    terms, mine = offer.terms, offer.terms.silo(decisions.site)
    dates, waits = "", ""
    if policy is not None and offer.decision != "declined":
        try:
            signed = [each.person for each in approvals.read(terms.digest(), policy) if each.person]
            if policy.persons:
                waits = f"({len(signed)} of {policy.persons} signed)"
            if offer.decision == "accepted":
                dates = decisions.find_window(terms.digest(), policy).describe()
        except DpfdaError as error:
            waits = str(error)
    return {
        "study": offer.study, "terms": terms.digest(), "what": f"{terms.model} of {terms.y} over {terms.x}", "n": mine.n,
        "epsilon": mine.epsilon, "delta": mine.delta, "decision": offer.decision, "dates": dates, "waits": waits,
    }  # fmt: skip


def look_at_offer(folder: SiteFolder, words: str, *, simulation: bool = False) -> tuple[Offer, Promise]:
    """The offer that is called so, and what the site would promise by accepting it; nothing is spent or written."""
    check_seal(folder)
    decisions, policy = Decisions(folder), SitePolicy.load(folder.policy_path)
    refuse_seed(policy, simulation=simulation)
    offer, audit = decisions.find(words), AuditLog(folder.audit)
    check_pledges(audit, decisions.pledged())
    check_against_log(open_ledger(policy), audit)
    return offer, check_promise(offer.terms, policy, decisions.site)


def approve_offer(folder: SiteFolder, offer: Offer, policy: SitePolicy, window: Window, person: Person) -> int:
    """Sign an offer that was looked at; how many more people must sign before it is accepted."""
    decisions, approvals, terms = Decisions(folder), Approvals(folder), offer.terms
    if policy.approvers or person.name or window != Window():
        approvals.add(terms, policy, window, person.name, person.key)
    else:
        approvals.withdraw(terms)  # dates of an earlier acceptance no longer hold
    missing = approvals.count_missing(terms.digest(), policy)
    if not missing:
        decisions.accept(terms, open_ledger(policy), approvals.find_window(terms.digest(), policy))
    return missing


def decline_offer(folder: SiteFolder, words: str) -> Offer:
    """Decline an offer, or withdraw from a study: nothing more is answered, and approvals are forgotten."""
    decisions = Decisions(folder)
    offer = decisions.find(words)
    decisions.decline(offer.terms)
    Approvals(folder).withdraw(offer.terms)
    return offer


def counter_offer(folder: SiteFolder, words: str, epsilon: float | None, delta: float | None, window: Window) -> bytes:
    """A signed counter-proposal of epsilon, delta and dates; nothing is accepted by it."""
    decisions = Decisions(folder)
    offer = decisions.find(words)
    stated = offer.terms.silo(decisions.site)
    asked = Counter(decisions.site, stated.epsilon if epsilon is None else epsilon,
                    stated.delta if delta is None else delta, window)  # fmt: skip
    data = write_counter(offer.terms, asked, read_signing_key(folder.sign_key))
    AuditLog(folder.audit).append(
        "counter",
        study=offer.study,
        terms=offer.terms.digest(),
        outcome="written",
        epsilon=asked.epsilon,
        delta=asked.delta,
    )
    return data
