"""`dpfda fit --engine`: the table is read by workers of a real Dask cluster."""

from __future__ import annotations

import json

import numpy as np
import pytest
from dask_cluster import two_workers

from dpfda.cli.fit import engine
from dpfda.cli.main import run
from dpfda.curves.tables import load_curves

pytest.importorskip("distributed", reason="the extra dpfda[dask] is not installed")
pl = pytest.importorskip("polars")


@pytest.fixture
def words(tmp_path):
    rng = np.random.default_rng(2)
    age = rng.random(4000)
    frame = pl.DataFrame({"pid": rng.integers(0, 800, 4000), "age": age, "hdl": np.sin(6 * age)})
    frame.write_parquet(tmp_path / "visits.parquet")
    ledger = str(tmp_path / "visits.ledger")
    assert run(["budget", "init", "--ledger", ledger, "--epsilon", "9", "--delta", "1e-3"]) == 0
    columns = ["--id", "pid", "--x", "age", "--y", "hdl", "--domain", "0:1", "--y-bounds=-2:2"]
    promise = ["--epsilon", "2", "--delta", "1e-5", "--ledger", ledger, "--json", str(tmp_path / "result.json")]
    return ["fit", str(tmp_path / "visits.parquet"), *columns, *promise]


def test_without_an_engine_this_process_reads(words, tmp_path, monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(engine, "load_curves", lambda *given, **how: seen.append(given) or load_curves(*given, **how))
    assert run(words) == 0
    assert len(seen) == 1


def test_workers_read_the_table(words, tmp_path) -> None:
    with two_workers(tmp_path) as client:
        assert run([*words, "--engine", client.scheduler.address]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert "800" in json.dumps(result)


def test_an_open_scheduler_is_refused_and_nothing_is_spent(words, tmp_path, capsys) -> None:
    assert run([*words, "--engine", "tcp://192.0.2.7:8786"]) == 2
    assert "without TLS" in capsys.readouterr().err
    assert not (tmp_path / "result.json").exists()
