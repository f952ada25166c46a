"""The coordinator's folder of a study: what `dpfda study init` makes and the other study commands use."""

from __future__ import annotations

import json
import shutil
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dpfda.errors import InvalidInput
from dpfda.federation.files import make_private_folder, write_json
from dpfda.federation.joining import STUDY_FILE
from dpfda.federation.status import Status, StatusFile
from dpfda.federation.study import ServerAddress, StudyDocument, make_document, make_estimator, read_study
from dpfda.methods.run import run_study
from dpfda.protocol.statement import statement
from dpfda.transports.checkpoint import ReplayTransport, Transcript


class StudyFolder:
    """Everything of one study on the coordinator's machine. It holds private keys: only its owner can enter."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.study_path = self.root / STUDY_FILE
        self.server, self.lead, self.kits = self.root / "server", self.root / "lead", self.root / "kits"
        self.transcript = self.root / "transcript"
        self.status_file = StatusFile(self.transcript / "status.json")

    @staticmethod
    def of(study: Path) -> StudyFolder:
        """The folder beside a `study.toml`, or the folder itself."""
        return StudyFolder(study if study.is_dir() else study.with_suffix(".study"))

    def document(self) -> StudyDocument:
        """The frozen study."""
        return StudyDocument.load(self.study_path)

    def status(self) -> Status | None:
        """How far it is."""
        return self.status_file.read()

    def rounds_done(self) -> int:
        """Rounds on record."""
        return Transcript(self.transcript).rounds()

    def address(self) -> ServerAddress:
        """Where the server listens."""
        return ServerAddress(**json.loads((self.root / "server.json").read_bytes()))

    def load_estimator(self) -> Any:
        """The fitted estimator, computed again from the transcript."""
        document = self.document()
        outcome = run_study(document.terms, ReplayTransport(self.transcript), document.id)
        estimator = make_estimator(document.terms)
        estimator.terms_, estimator.plan_ = document.terms, document.plan
        promise = statement(document.plan, private=outcome.private)
        return estimator.remember(document.plan.basis, document.plan.scaling, outcome, promise)


def check_unchanged(study: Path) -> StudyFolder:
    """The folder of a `study.toml` whose terms are still those that the sites were given."""
    folder = StudyFolder.of(study)
    document = folder.document()
    if study.is_file() and make_document(read_study(study)[0]).id != document.id:
        raise InvalidInput(
            f"{study.name} has changed since dpfda study init; changed terms are another study: put them into another file."
        )
    return folder


def init_study(study: Path, extra_classes: tuple[str, ...] = ()) -> tuple[StudyFolder, StudyDocument]:
    """Freeze the terms, make the PKI, pack a kit for every site."""
    from dpfda.federation.flare.provision import provision

    terms, address = read_study(study)
    document, folder = make_document(terms), StudyFolder.of(study)
    if folder.root.exists():
        raise InvalidInput(f"{folder.root} exists: this study was already created; remove the folder to start over.")
    make_private_folder(folder.root)
    try:
        document.save(folder.study_path)
        write_json(folder.root / "server.json", asdict(address))
        provision(terms.name, [site.name for site in terms.silos], address, folder.root, extra_classes=extra_classes)
        for site in terms.silos:
            _pack(folder.kits / site.name, document)
    except BaseException:
        shutil.rmtree(folder.root, ignore_errors=True)
        raise
    return folder, document


def _pack(kit: Path, document: StudyDocument) -> None:
    """A zip for one site; it holds the site's private key, so it goes to that site alone."""
    document.save(kit / STUDY_FILE)
    target = kit.with_suffix(".zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(kit.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(kit))
    target.chmod(0o600)
    shutil.rmtree(kit)
