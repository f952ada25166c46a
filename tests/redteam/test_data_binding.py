"""F3: data that change between rounds would put one subject into two batches that are priced as disjoint."""

from __future__ import annotations

import shutil
import sqlite3
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cryptography")
pytest.importorskip("psutil")

from world import PASSPHRASE, accept, enrol, set_policy

from dpfda.curves.curves import Curves
from dpfda.curves.tables import Covariate, Domain, Reading, find_source, load_curves
from dpfda.errors import SourceError
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.consortium import ConsortiumFolder
from dpfda.federation.folder import SiteFolder
from dpfda.federation.policy import SitePolicy
from dpfda.federation.signing import Subject
from dpfda.federation.site import Site
from dpfda.federation.site_ledger import open_ledger
from dpfda.federation.study import name_study
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.terms import SiloTerms, StudyTerms
from dpfda.silo.data_binding import OTHER_DATA
from dpfda.silo.silo import Silo

N = 60
Row = tuple[str, float, float]
READING = Reading(Domain(0.0, 1.0), (-1.0, 1.0), id="id", x="x", y="y", rows="never refuse")
TERMS = StudyTerms(
    "published", (0.0, 1.0), (-1.0, 1.0), (SiloTerms("north", N, 1.0, 1e-3, 4.0),), n_basis=4, name="lipid",
    constants=PublishedConstants(C_T=1.0),
)  # fmt: skip
RUN, ROUNDS = name_study(TERMS), len(make_plan(TERMS).rounds)


def make_rows(value: float, name: str) -> list[Row]:
    rng = np.random.default_rng(3)
    rows = []
    for number in range(N):
        for x, y in zip(rng.uniform(0, 1, 4), rng.normal(0, 0.2, 4), strict=True):
            one = number == 0
            rows.append((name if one else f"s{number:03d}", float(x), value if one else float(y)))
    return rows


def write_csv(folder: Path, rows: list[Row]) -> dict[str, str]:
    path = folder / "table.csv"
    path.write_text("id,x,y\n" + "".join(f"{name},{x!r},{y!r}\n" for name, x, y in rows))
    return {"source": str(path)}


def write_sqlite(folder: Path, rows: list[Row]) -> dict[str, str]:
    path = folder / "clinic.db"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE visits (id TEXT, x REAL, y REAL)")
        database.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
    database.close()
    return {"source": f"sqlite:///{path}", "query": "SELECT id, x, y FROM visits"}


def ask(index: int) -> Query:
    return Query(RUN, index, {"iterate": np.zeros(4)})


@pytest.fixture(scope="module")
def consortium(tmp_path_factory) -> ConsortiumFolder:
    """With one member, whose new folder lies beside it: keys are slow to make."""
    root = tmp_path_factory.mktemp("consortium")
    made = ConsortiumFolder.create(root / "lipids", "lipids", "127.0.0.1", 8102, PASSPHRASE)
    enrol(made, root / "north", "north")
    return made


class Hospital:
    """A site whose process starts anew for every question. A seed, so that runs can be compared bit by bit."""

    def __init__(self, consortium: ConsortiumFolder, folder: Path, write, value: float) -> None:
        folder.mkdir()
        self.folder, self.write, self.value = folder, write, value
        shutil.copytree(consortium.root.parent / "north", folder / "site")
        self.own = SiteFolder(folder / "site")
        data = {"id": "id", "x": "x", "y": "y"} | write(folder, make_rows(value, "s000"))
        self.policy = SitePolicy(data, 1.0, 1e-3, 1.0, 1e-3, str(folder / "ledger"), seed=5)
        set_policy(self.own, self.policy)
        accept(self.own, TERMS, consortium)

    def answer(self, index: int) -> tuple[str, bytes]:
        try:
            given = Site(self.own, simulation=True).answer(Subject(TERMS.digest(), RUN, index), ask(index).encode())
        except SourceError:
            return "refused", b""
        return "ok", Release.decode(given).values.tobytes()

    def export_again(self, name: str = "w2-000") -> None:
        self.write(self.folder, make_rows(self.value, name))


@pytest.mark.parametrize("write", [write_csv, write_sqlite])
def test_a_site_whose_data_change_answers_no_further(write, consortium, tmp_path) -> None:
    moved = {}
    assert ROUNDS > 2
    for changed in (False, True):
        found = []
        for value in (-1.0, 1.0):
            site = Hospital(consortium, tmp_path / f"{changed}{value}", write, value)
            answers = [site.answer(0)]
            if changed:
                site.export_again()
            answers += [site.answer(index) for index in range(1, ROUNDS)]
            found.append(answers)
        codes = [code for code, _ in found[0]]
        assert codes == ["ok"] + ["refused" if changed else "ok"] * (len(codes) - 1)
        moved[changed] = [index for index, (low, high) in enumerate(zip(*found, strict=True)) if low != high]
    assert moved == {False: [0], True: [0]}, "one subject moved more than one batch"
    reason = AuditLog(site.own.audit).lines()[-1]["reason"]
    assert "not those with which this run began" in reason
    assert "put the old data back" in reason
    assert open_ledger(site.policy).spent().debits == 1
    site.export_again("s000")
    assert site.answer(1)[0] == "ok", "with the old data the study goes on"


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: [*rows[:-1], (rows[-1][0], rows[-1][1], rows[-1][2] + 1e-12)],
        lambda rows: [(rows[0][0], rows[0][1] / 2, rows[0][2]), *rows[1:]],
        lambda rows: rows[:-1],
        lambda rows: [*rows, ("s000", 0.5, 0.5)],
        lambda rows: [(name.replace("s059", "s0590"), x, y) for name, x, y in rows],
        lambda rows: [(name, x, y * 38.67) for name, x, y in rows],
        lambda rows: rows[4:],  # a subject has withdrawn: n of the terms stays, the data do not
    ],
    ids=["value", "x", "row less", "row more", "id", "unit", "subject less"],
)
@pytest.mark.parametrize("at_once", [16, 1 << 19], ids=["streamed", "in memory"])
def test_any_change_ends_the_run_for_a_silo(change, at_once: int, tmp_path) -> None:
    Ledger.create(tmp_path / "ledger", 1.0, 1e-3)

    def open_with(rows: list[Row]) -> Silo:
        source = find_source(write_csv(tmp_path, rows)["source"])
        curves = load_curves(source, READING, rows_at_once=at_once, scratch=tmp_path, n=N).curves
        return Silo(curves, epsilon=1.0, delta=1e-3, name="north", points_per_curve=4.0, ledger=tmp_path / "ledger")

    rows = make_rows(0.3, "s000")
    silo = open_with(rows)
    silo.join(TERMS, RUN)
    silo.release(ask(0))
    other = open_with(change(rows))
    with pytest.raises(SourceError, match="not those with which this run began"):
        other.join(TERMS, RUN)
    late = open_with(change(rows))
    late.join(TERMS, "another run")  # other runs are free to begin with other data
    again = open_with(rows)
    again.join(TERMS, RUN)
    again.release(ask(1))
    assert again.ledger.spent().debits == 2


def test_of_two_processes_that_begin_a_run_with_unlike_data_one_goes_on(tmp_path) -> None:
    Ledger.create(tmp_path / "ledger", 1.0, 1e-3)
    silos = []
    for name in ("s000", "w2-000"):
        curves = load_curves(find_source(write_csv(tmp_path, make_rows(0.3, name))["source"]), READING).curves
        silos.append(
            Silo(curves, epsilon=1.0, delta=1e-3, name="north", points_per_curve=4.0, ledger=tmp_path / "ledger")
        )
        silos[-1].join(TERMS, RUN)  # nothing is bound yet
    silos[0].release(ask(0))
    with pytest.raises(SourceError) as refusal:
        silos[1].release(ask(1))
    assert str(refusal.value) == OTHER_DATA
    assert silos[0].ledger.lost_draws(RUN) == 0
    assert silos[0].ledger.spent().debits == 1


def curves_of(path: str, part: int) -> Curves:
    return load_curves(find_source(path), READING).curves[30 * part : 30 * part + 30]


def test_workers_that_read_other_rows_are_refused(tmp_path) -> None:
    distributed = pytest.importorskip("distributed")
    from dpfda.silo.cluster import DaskCurves

    rows = make_rows(0.3, "s000")
    Ledger.create(tmp_path / "ledger", 1.0, 1e-3)
    path = write_csv(tmp_path, rows)["source"]
    key = bytes(32)
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:

        def open_silo(curves) -> Silo:
            return Silo(curves, epsilon=1.0, delta=1e-3, name="north", points_per_curve=4.0, ledger=tmp_path / "ledger")

        spread = DaskCurves.from_source(client, path, READING, parts=3)
        assert spread.fingerprint(key) == load_curves(find_source(path), READING).curves.fingerprint(key)
        assert DaskCurves(client, [partial(curves_of, path, part) for part in (0, 1)]).fingerprint(
            key
        ) == spread.fingerprint(key)
        silo = open_silo(spread)
        silo.join(TERMS, RUN)
        silo.release(ask(0))
        write_csv(tmp_path, make_rows(0.3, "w2-000"))
        with pytest.raises(SourceError, match="not those with which this run began"):
            open_silo(DaskCurves.from_source(client, path, READING, parts=3)).join(TERMS, RUN)
        part = spread._parts[2].result()
        function, arguments = part.__reduce__()  # as after the death of a worker: the part is read again
        spread._parts[2] = client.scatter(function(*arguments), hash=False)
        with pytest.raises(SourceError, match="not those that were loaded first"):
            silo.release(ask(ROUNDS - 1))
        assert silo.ledger.spent().debits == 1


def test_the_order_of_rows_does_not_end_a_run_where_covariates_are_filled_down(tmp_path) -> None:
    """Eighth review, R8-7: of two entries at the same x the last row's was filled down."""
    rows = [f"{subject},1.0,{value},{value}" for subject in range(10) for value in (0.1, 0.2, -0.0, 0.0)]
    rows += [f"{subject},{x},0.3," for subject in range(10) for x in (1.0, 2.0)]
    covariates = (Covariate("g", bounds=(0.0, 1.0)),)
    reading = Reading(
        Domain(0, 3),
        (-1.0, 1.0),
        id="id",
        x="x",
        y="y",
        covariates=covariates,
        fill_down=("g",),
        duplicates="keep",
    )

    def fingerprint(lines: list[str]) -> bytes:
        (tmp_path / "t.csv").write_text("\n".join(["id,x,y,g", *lines]))
        return load_curves(find_source(str(tmp_path / "t.csv")), reading).curves.fingerprint(b"k" * 32)

    rng = np.random.default_rng(3)
    assert len({fingerprint(rows), *(fingerprint(list(rng.permutation(rows))) for _ in range(5))}) == 1


def test_how_rows_are_read_does_not_end_a_run_over_a_curve_outside_the_domain(tmp_path) -> None:
    """Eighth review, R8-12: its stored design was that of other rows where the curve was read in pieces."""
    rows = [f"{subject},{0.1 * visit},0.5,0.{visit}" for subject in range(6) for visit in range(8)]
    rows += [f"6,{5 + visit},0.5,{gap}" for visit, gap in enumerate(["0.1"] * 5 + ["0.9"] * 5)]
    covariates = (Covariate("g", bounds=(0.0, 1.0)),)
    reading = Reading(Domain(0, 1), (-1.0, 1.0), id="id", x="x", y="y", covariates=covariates, rows="never refuse")
    (tmp_path / "t.csv").write_text("\n".join(["id,x,y,g", *rows]))
    source = find_source(str(tmp_path / "t.csv"))
    read = [load_curves(source, reading, rows_at_once=size).curves for size in (1000, 3, 4)]
    assert read[0].counts[6] == 0
    assert len({each.fingerprint(b"k" * 32) for each in read}) == 1


def test_the_order_of_rows_does_not_end_a_run() -> None:
    """Third review, F7: an index that was added between two starts changed the order of rows, and the run was over."""
    rng, key = np.random.default_rng(5), b"k" * 32
    ids, x, y = np.repeat(np.arange(20), 4), rng.random(80).round(1), rng.normal(size=80)
    design = np.column_stack([np.ones(80), rng.normal(size=80)])
    for table in ((ids, x, y), (ids, x, y, design)):
        whole = Curves.from_long(*table)
        shuffled = rng.permutation(80)
        assert Curves.from_long(*(column[shuffled] for column in table)).fingerprint(key) == whole.fingerprint(key)
        changed = [column.copy() for column in table]
        changed[2][3], changed[2][7] = changed[2][7], changed[2][3]
        assert Curves.from_long(*changed).fingerprint(key) != whole.fingerprint(key), "of two subjects"
