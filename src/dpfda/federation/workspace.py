"""The coordinator's folder of one study, beside its `study.toml`: signed terms, acceptances, transcript, lock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dpfda.errors import InvalidInput, ProtocolError
from dpfda.federation.consortium import ConsortiumFolder
from dpfda.federation.files import make_private_folder, write_atomically, write_json
from dpfda.federation.lock import read_lock
from dpfda.federation.proposal import open_terms, sign_terms
from dpfda.federation.status import UNDER_WAY, Status, StatusFile
from dpfda.federation.study import make_estimator, name_study, read_study
from dpfda.methods.run import run_study
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.statement import statement
from dpfda.protocol.terms import StudyTerms
from dpfda.transports.checkpoint import ReplayTransport, Transcript


class StudyFolder:
    """Everything of one study on the coordinator's machine: public values and private releases, no keys."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.terms_path, self.place_path = self.root / "terms.json", self.root / "consortium.json"
        self.transcript, self.acceptances = self.root / "transcript", self.root / "acceptances"
        self.lock, self.log = self.root / "lock", self.root / "run.log"
        self.status_file = StatusFile(self.root / "status.json")

    @staticmethod
    def of(study: Path) -> StudyFolder:
        """The folder beside a `study.toml`, or the folder itself."""
        return StudyFolder(study if study.is_dir() else study.with_suffix(".study"))

    def consortium(self) -> ConsortiumFolder:
        """Whose sites are asked."""
        try:
            return ConsortiumFolder(Path(json.loads(self.place_path.read_bytes())["folder"]))
        except FileNotFoundError:
            raise InvalidInput(f"There is no study at {self.root}; run dpfda study propose first.") from None

    def terms(self) -> StudyTerms:
        """The proposed terms, as they were signed."""
        key = self.consortium().signing_key().public_key()
        try:
            return open_terms(self.terms_path.read_bytes(), key)
        except ProtocolError as error:
            raise InvalidInput(f"{self.terms_path} was changed: {error}") from None

    def status(self) -> Status | None:
        """What the last run wrote."""
        return self.status_file.read()

    def true_status(self) -> Status | None:
        """The same, corrected if the run that wrote it is gone without a word."""
        found = self.status()
        if found is not None:
            found.done = max(found.done, self.rounds_done())
        if found is not None and found.phase in UNDER_WAY and read_lock(self.lock)[0] != "running":
            found.end("killed", "The run ended without a message; nothing is lost: run dpfda study resume.")
        return found

    def rounds_done(self) -> int:
        """Rounds on record."""
        return Transcript(self.transcript).rounds()

    def keep_acceptances(self, found: dict[str, bytes]) -> None:
        """The sites' own signatures under these terms."""
        make_private_folder(self.acceptances)
        for site, data in found.items():
            write_atomically(self.acceptances / f"{site}.json", data)

    def load_estimator(self) -> Any:
        """The fitted estimator, computed again from the transcript."""
        terms = self.terms()
        plan, outcome = make_plan(terms), run_study(terms, ReplayTransport(self.transcript), name_study(terms))
        estimator = make_estimator(terms)
        estimator.terms_, estimator.plan_ = terms, plan
        return estimator.remember(plan.basis, plan.scaling, outcome, statement(plan, private=outcome.private))


def propose_study(study: Path) -> StudyFolder:
    """Sign the terms of a `study.toml`; nothing is sent yet."""
    file, folder = read_study(study), StudyFolder.of(study)
    consortium = ConsortiumFolder(file.consortium)
    members = consortium.members()
    missing = [silo.name for silo in file.terms.silos if silo.name not in members]
    if missing:
        raise InvalidInput(
            f"Not enrolled in the consortium: {', '.join(missing)}; enrol them first, or correct [[sites]]."
        )
    if folder.root.exists():
        raise InvalidInput(f"{folder.root} exists: this study was already proposed; other terms are another study.")
    make_private_folder(folder.root)
    write_json(folder.place_path, {"folder": str(consortium.root)})
    write_atomically(folder.terms_path, sign_terms(file.terms, consortium.signing_key()))
    return folder


def check_unchanged(study: Path) -> StudyFolder:
    """The folder of a `study.toml` whose terms are still those that were proposed."""
    folder = StudyFolder.of(study)
    terms = folder.terms()
    if study.is_file() and read_study(study).terms.digest() != terms.digest():
        raise InvalidInput(
            f"{study.name} has changed since dpfda study propose; other terms are another study: put them into another file."
        )
    return folder
