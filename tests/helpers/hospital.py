"""A site with one table, of which the coordinator sees bytes only, and the table that tests of reading change."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from world import PASSPHRASE, accept, enrol, set_policy

from dpfda.federation.audit_log import AuditLog
from dpfda.federation.consortium import ConsortiumFolder
from dpfda.federation.folder import SiteFolder
from dpfda.federation.frames import connect, receive_frame, send_frame
from dpfda.federation.keys import read_signing_key
from dpfda.federation.policy import Allowed, SitePolicy
from dpfda.federation.signed import SignedHandler
from dpfda.federation.silo_service import GIVEN, UNAVAILABLE, SiloService
from dpfda.federation.site import Site
from dpfda.federation.study import name_study
from dpfda.federation.wire import StudyWire
from dpfda.methods.run import make_coordinator
from dpfda.protocol.messages import Query
from dpfda.protocol.terms import CovariateTerms, SiloTerms, StudyTerms

N = 12  # subjects
HEADER = ["id", "x", "y", "age", "sex"]
BASE = [
    [f"s{subject:02d}", f"{0.1 + 0.05 * subject + 0.3 * visit:.2f}", f"{0.02 * subject:.2f}", str(40 + subject),
     "FM"[subject % 2]]
    for subject in range(N)
    for visit in range(2)
]  # fmt: skip
Table = list[list[str]]


def with_values(rows: Table, which: range, column: int, change: Callable[[str], str]) -> Table:
    changed = [[*row[:column], change(row[column]), *row[column + 1 :]] for row in rows]
    return [changed[number] if number in which else row for number, row in enumerate(rows)]


def write_csv(folder: Path, rows: Table) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    text = "\n".join(",".join(row) for row in [HEADER, *rows]) + "\n"
    (folder / "table.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    return {"source": str(folder / "table.csv")}


class Hospital:
    """A site with one table; what the coordinator sees of it is `codes`, and `sent` to the last byte."""

    def __init__(
        self,
        consortium: ConsortiumFolder,
        folder: Path,
        data: dict[str, str],
        covariates: tuple[CovariateTerms, ...] = (),
    ) -> None:
        folder.mkdir(exist_ok=True)
        shutil.copytree(consortium.root.parent / "north", folder / "site")
        self.own, self.key = SiteFolder(folder / "site"), consortium.signing_key()
        columns = {"id": "id", "x": "x", "y": "y"}
        allow = Allowed(covariates=tuple(each.name for each in covariates))
        set_policy(self.own, SitePolicy(columns | data, 1.0, 1e-6, 10.0, 1e-5, str(folder / "ledger"), allow))
        silo = SiloTerms("north", N, 1.0, 1e-6)
        self.terms = StudyTerms("adaptive", (0.0, 1.0), (-1.0, 1.0), (silo,), covariates=covariates, name="lipid")
        self.run, self.wire = name_study(self.terms), StudyWire(consortium.questions(), self.terms)
        question = make_coordinator(self.terms).question(0)
        self.query = Query(self.run, 0, {name: np.asarray(array) for name, array in question.items()})
        accept(self.own, self.terms, consortium)

    def send(self, message: bytes) -> bytes:
        """What leaves the silo's process in answer to these bytes; the process starts anew for every message."""
        handler = SignedHandler(
            "north", self.key.public_key(), read_signing_key(self.own.sign_key), Site(self.own).answer
        )
        path = self.own.root.parent / "silo.sock"
        service = SiloService(handler, path, lambda _: None)
        service.start()
        try:
            with connect(path) as connection:
                send_frame(connection, message)
                return receive_frame(connection)
        finally:
            service.close()

    def codes(self) -> tuple[str, str]:
        """Of the invitation, and of the first question, which another process answers."""
        self.sent = [
            self.send(self.wire.write_invitation(self.terms, self.run)),
            self.send(self.wire.write_question(self.query)),
        ]
        joined, answered = (frame[:1] == GIVEN for frame in self.sent)
        assert all(frame == UNAVAILABLE for frame in self.sent if frame[:1] != GIVEN)
        assert not joined or self.wire.is_acceptance(self.terms, self.run, "north", self.sent[0][1:])
        assert not answered or self.wire.read_answer(self.query, "north", self.sent[1][1:])
        return tuple("ok" if given else "unavailable" for given in (joined, answered))

    def log(self) -> list[dict]:
        return AuditLog(self.own.audit).lines()


def open_consortium(root: Path) -> ConsortiumFolder:
    """A consortium with one member: keys are slow to make, so each `Hospital` begins with a copy of the same new folder."""
    consortium = ConsortiumFolder.create(root / "lipids", "lipids", "127.0.0.1", 8102, PASSPHRASE)
    enrol(consortium, root / "north", "north")
    return consortium
