"""One study whose sites keep their data in a CSV file, a Parquet file, an SQLite database and on a PostgreSQL server."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

pytest.importorskip("nvflare")

from world import PASSPHRASE, curves, enrol, environment

from dpfda.cli.commands.federate_demo import free_port
from dpfda.federation.consortium import ConsortiumFolder
from dpfda.federation.study import name_study
from dpfda.federation.workspace import StudyFolder
from dpfda.methods.run import run_study
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.plans.registry import make_plan
from dpfda.silo.silo import Silo
from dpfda.transports.checkpoint import Transcript
from dpfda.transports.in_process import InProcessTransport

N, SEED = 120, 5
QUERY = "SELECT pid, t, value FROM visits WHERE value IS NOT NULL"
SITES = ("csv", "parquet", "sqlite", "postgres")


def table(seed):
    data = curves(N, seed)
    owners = [f"s{owner:05d}" for owner in data.owners]
    return data, pd.DataFrame({"pid": owners, "t": data.x, "value": data.y})


def rows(frame):
    """Every row, and one whose missing value the query leaves out."""
    return [*frame.itertuples(index=False, name=None), ("nobody", 0.5, None)]


def put_into_postgres(url, frame):
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE IF EXISTS visits")
        connection.execute("CREATE TABLE visits (pid text, t double precision, value double precision)")
        connection.cursor().executemany("INSERT INTO visits VALUES (%s, %s, %s)", rows(frame))


def put_into_sqlite(path, frame):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE visits (pid TEXT, t REAL, value REAL)")
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows(frame))
    connection.close()


def write_policies(root, url):
    """Each site's data in its own kind of source; the curves, for comparison."""
    made = {name: table(seed) for seed, name in enumerate(SITES)}
    made["csv"][1].to_csv(root / "visits.csv", index=False, float_format="%.17g")
    made["parquet"][1].to_parquet(root / "visits.parquet")
    put_into_sqlite(root / "clinic.db", made["sqlite"][1])
    put_into_postgres(url, made["postgres"][1])
    sources = {
        "csv": 'source = "visits.csv"',
        "parquet": 'source = "visits.parquet"',
        "sqlite": f'source = "sqlite:///clinic.db"\nquery = "{QUERY}"',
        "postgres": f'source = "{url}"\nquery = "{QUERY}"',
    }
    for name, source in sources.items():
        (root / f"{name}.toml").write_text(
            f'[data]\n{source}\nid = "pid"\nx = "t"\ny = "value"\nduplicates = "keep"\n'
            f"[promise]\nepsilon = 1.0\ndelta = 1e-3\n[budget]\nepsilon = 1.0\ndelta = 1e-3\n[simulation]\nseed = {SEED}\n"
        )
    return {name: data for name, (data, _) in made.items()}


def write_study(root):
    sites = "".join(f'[[sites]]\nname = "{name}"\nn = {N}\nepsilon = 1.0\ndelta = 1e-3\n' for name in SITES)
    (root / "sources.toml").write_text(
        'consortium = "consortium"\nname = "sources"\nmodel = "mean"\ndomain = [0, 1]\ny_bounds = [-5, 5]\nn_basis = 4\n'
        + sites
    )


@pytest.mark.slow
def test_every_kind_of_source_in_one_study(tmp_path, postgres_url):
    """Accept with its dry run, run, result, by the commands; the bits are those of the same curves in this process."""
    command = [sys.executable, "-m", "dpfda.cli.main"]

    def dpfda(*words):
        done = subprocess.run(
            [*command, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    sites, folder = [], StudyFolder.of(tmp_path / "sources.toml")
    with environment(HOME=str(tmp_path)):
        held = write_policies(tmp_path, postgres_url)
        write_study(tmp_path)
        consortium = ConsortiumFolder.create(
            tmp_path / "consortium", "lipids", "127.0.0.1", free_port(), PASSPHRASE, "127.0.0.1"
        )
        for name in SITES:
            enrol(consortium, tmp_path / name, name)
            dpfda("site", "policy", name, f"{name}.toml", "--new-ledger", "--simulation")
        dpfda("study", "propose", "sources.toml")
        try:
            for name in SITES:
                dpfda("site", "inbox", name, "--add", "sources.study/terms.json")
                said = dpfda("site", "accept", name, "sources", "--yes", "--simulation")
                assert "are about to promise" in said
                assert str(N) in said
                run = [*command, "--quiet", "site", "run", name, "--simulation"]
                sites.append(subprocess.Popen(run, cwd=tmp_path, stdin=subprocess.DEVNULL))
            dpfda("study", "run", "sources.toml")
            assert "NOT PRIVATE" in dpfda("study", "result", "sources.toml")
            assert "unbroken" in dpfda("site", "log", "postgres", "--verify")
        finally:
            for process in sites:
                process.send_signal(signal.SIGTERM)
            assert [process.wait(30) for process in sites] == [0] * len(sites)
    terms = folder.terms()
    plan, rounds = make_plan(terms), len(make_plan(terms).rounds)
    silos = [Silo(data, name=name, epsilon=1.0, delta=1e-3, random_state=SEED) for name, data in held.items()]
    outcome = run_study(terms, InProcessTransport(silos), name_study(terms))
    expected = plan.scaling.to_user_units(outcome.coefficients)[0]
    assert_array_equal(folder.load_estimator().coef_, expected)
    assert Transcript(folder.transcript).answers() == dict.fromkeys(SITES, rounds)
    for ledger in tmp_path.glob("*.simulation"):
        assert Ledger.open(ledger).spent().debits == rounds
    assert len(list(tmp_path.glob("*.simulation"))) == len(SITES)
    assert np.isfinite(expected).all()
