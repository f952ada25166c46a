"""What a site checks before it promises anything: the kit, the plan, the policy, the data, the ledger."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpfda.errors import BudgetExceeded, InvalidInput
from dpfda.federation.hardening import find_unsafe_settings, harden_site
from dpfda.federation.ledger_record import check_against_log
from dpfda.federation.policy import SitePolicy
from dpfda.federation.site import FOLDER, SiteFolder, open_ledger, open_silo
from dpfda.federation.study import StudyDocument, make_document
from dpfda.privacy.accounting import mu_squared, price
from dpfda.privacy.ledger.ledger import Ledger, Spent
from dpfda.protocol.messages import Query
from dpfda.silo.silo import Silo

STUDY_FILE = "study.json"


@dataclass(frozen=True)
class Promise:
    """What a site is about to promise, in numbers. For the site only."""

    document: StudyDocument
    site: str
    policy: SitePolicy
    exact_epsilon: float
    spent: Spent
    spent_after: float
    owner_notes: tuple[str, ...]
    begun: bool


def unpack(kit: Path) -> Path:
    """The kit's folder; a zip file is unpacked beside itself."""
    if kit.is_dir():
        return kit.absolute()
    if not kit.exists():
        raise InvalidInput(f"There is no kit at {kit}; correct the path.")
    if not zipfile.is_zipfile(kit):
        raise InvalidInput(f"{kit} is neither a kit's folder nor its zip file.")
    target = kit.with_suffix("")
    if not target.exists():
        target.mkdir(mode=0o700)
        with zipfile.ZipFile(kit) as archive:
            archive.extractall(target)
    return target.absolute()


def site_folder(kit: Path) -> SiteFolder:
    """Where the site keeps its own files."""
    return SiteFolder(kit / "local" / FOLDER)


def check_study(kit: Path) -> StudyDocument:
    """The study of a kit: its public terms, of which the code installed HERE makes the plan."""
    return make_document(StudyDocument.load(kit / STUDY_FILE).terms)


def check_promise(document: StudyDocument, policy: SitePolicy, site: str) -> Promise:
    """Policy, data, ledger and one round on the data; nothing is spent and nothing leaves."""
    objections = policy.objections(document, site)
    if objections:
        raise InvalidInput("The policy does not allow this study: " + " ".join(objections))
    terms = document.terms.silo(site)
    loaded = policy.load_curves(document.terms)
    if loaded.curves.n != terms.n:
        raise InvalidInput(
            f"The study states n = {terms.n} for {site!r}, the data hold {loaded.curves.n} subjects; "
            "agree on the number with the coordinator (it is public) or correct the data source."
        )
    trial = Silo(
        loaded.curves, name=site, epsilon=terms.epsilon, delta=terms.delta, points_per_curve=terms.points_per_curve
    )
    _try_one_round(trial, document)
    events, ledger = document.plan.events(site), open_ledger(policy)
    try:
        ledger.check(events, document.id)
    except BudgetExceeded as error:
        raise InvalidInput(f"The ledger {policy.ledger_shown} cannot pay for this study: {error}") from None
    begun, after = _price_after(ledger, document, site)
    return Promise(document, site, policy, price(events, terms.delta), ledger.spent(), after, loaded.owner_notes, begun)


def join(kit: Path, promise: Promise) -> None:
    """Harden the kit, keep the policy, accept the study."""
    harden_site(kit)
    folder = site_folder(kit)
    folder.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    promise.policy.save(folder.policy_path)
    folder.accept(promise.document)
    folder.audit.append(
        "promise",
        study=promise.document.id,
        outcome="joined",
        epsilon=promise.document.terms.silo(promise.site).epsilon,
    )


def check_ready(kit: Path, site: str) -> SitePolicy:
    """Before every start: safe files, and a policy that still allows what was accepted."""
    found = find_unsafe_settings(kit)
    if found:
        raise InvalidInput(f"This kit is not safe to run ({'; '.join(found)}); run dpfda site join again.")
    folder = site_folder(kit)
    policy = folder.policy()
    for document in folder.studies():
        objections = policy.objections(document, policy.name or site)
        if objections:
            raise InvalidInput(f"The policy does not allow {document.id}: " + " ".join(objections))
        silo = open_silo(policy, document, policy.name or site)
        check_against_log(silo.ledger, folder.audit)
        silo.join(document.terms, document.id)
    folder.audit.verify()
    return policy


def _try_one_round(silo: Silo, document: StudyDocument) -> None:
    """Answer the first question against a ledger in memory and throw the answer away."""
    from dpfda.methods.run import make_coordinator

    silo.join(document.terms, "dry run")
    question = make_coordinator(document.terms).question(0)
    silo.release(Query("dry run", 0, {name: np.asarray(array) for name, array in question.items()}))


def _price_after(ledger: Ledger, document: StudyDocument, site: str) -> tuple[bool, float]:
    """Whether the study has begun here, and the mu^2 of the ledger once it is over."""
    recorded = [entry for entry in ledger.log() if entry.run == document.id]
    total = ledger.spent().mu_squared
    planned = mu_squared(document.plan.events(site))
    return bool(recorded), total if recorded else total + planned
