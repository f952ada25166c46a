"""A silo spread over two real worker processes: the same bits as one process, and no loss when a worker dies."""

from __future__ import annotations

import os
import signal
import warnings
from functools import partial

import numpy as np
import pytest
from dask_cluster import curves_unless, some_curves, two_workers

from dpfda.curves.curves import Curves
from dpfda.curves.tables import Covariate, Domain, Reading, find_source, load_curves
from dpfda.errors import InvalidInput, SourceError
from dpfda.estimators import PrivateMean, PrivateVaryingCoefficients
from dpfda.silo.silo import Silo

pytest.importorskip("distributed", reason="the extra dpfda[dask] is not installed")
pl = pytest.importorskip("polars")

READING = Reading(Domain(0, 1), (-3.0, 3.0), id="pid", x="age", y="hdl")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with two_workers(tmp_path_factory.mktemp("dask")) as client:
        yield client


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(3)
    rows = 4000
    age, ids = rng.random(rows), rng.integers(0, 500, rows)
    hdl = np.sin(6 * age) + 0.3 * rng.normal(size=rows)
    frame = pl.DataFrame({"pid": [f"s{k}" for k in ids], "age": age, "hdl": hdl, "bmi": 20.0 + ids % 13})
    path = tmp_path_factory.mktemp("table") / "visits.parquet"
    frame.write_parquet(path)
    return path


def fitted(curves, estimator=PrivateMean, **options: object):
    silo = Silo(curves, epsilon=2.0, delta=1e-5)
    public = {"domain": (0.0, 1.0), "y_bounds": (-3.0, 3.0), "random_state": 7, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator(2.0, 1e-5, **public).fit(silo).coef_


def test_a_covariate_that_changes_gives_the_bits_of_one_process(client, path, tmp_path) -> None:
    from dpfda.silo.cluster import DaskCurves

    frame = pl.read_parquet(path).with_columns(
        bmi=pl.when(pl.col("pid") < "s3").then(20.0).otherwise(20 + 9 * pl.col("age"))
    )
    frame.write_parquet(tmp_path / "visits.parquet")
    reading = Reading(
        Domain(0, 1), (-3.0, 3.0), id="pid", x="age", y="hdl", covariates=(Covariate("bmi", (10.0, 70.0)),)
    )
    spread = DaskCurves.from_source(client, tmp_path / "visits.parquet", reading, parts=3)
    whole = load_curves(find_source(str(tmp_path / "visits.parquet")), reading).curves
    assert spread.design_changes
    assert spread.fingerprint(b"k" * 32) == whole.fingerprint(b"k" * 32)
    options = {"design_bounds": [(10, 70)]}
    one, other = (fitted(curves, PrivateVaryingCoefficients, **options) for curves in (whole, spread))
    assert (one == other).all()
    with pytest.raises(InvalidInput, match="must not change within a subject"):
        fitted(spread, PrivateVaryingCoefficients, method="published", **options)


def test_files_of_several_types_give_the_curves_of_one_process(client, path, tmp_path) -> None:
    """A gap makes whole ids floats in the second file; a subject is in both files, and in one part."""
    from dpfda.silo.cluster import DaskCurves

    frame = pl.read_parquet(path).with_columns(pid=pl.col("pid").str.strip_prefix("s").cast(pl.Int64))
    frame[:2000].write_parquet(tmp_path / "0.parquet")
    frame[2000:].with_columns(pl.col("pid").cast(pl.Float64)).write_parquet(tmp_path / "1.parquet")
    spread = DaskCurves.from_source(client, tmp_path, READING, parts=3)
    whole = load_curves(find_source(str(tmp_path)), READING).curves
    frame.write_parquet(tmp_path / "2.parquet")
    assert load_curves(find_source(str(tmp_path / "2.parquet")), READING).curves == whole
    assert spread.fingerprint(b"k" * 32) == whole.fingerprint(b"k" * 32)


def kill_a_worker(client) -> None:
    """End one worker process that this test's own cluster started."""
    os.kill(client.run(os.getpid).popitem()[1], signal.SIGKILL)


@pytest.mark.parametrize("method", ["adaptive", "published"])
def test_two_workers_give_the_bits_of_one_process(method: str, client, path) -> None:
    from dpfda.silo.cluster import DaskCurves

    spread = DaskCurves.from_source(client, path, READING)
    alone = load_curves(find_source(str(path)), READING)
    assert (spread.n, spread.p) == (alone.curves.n, 1)
    assert spread.owner_notes == alone.owner_notes
    assert repr(spread) == f"DaskCurves(n={alone.curves.n}, p=1, parts=2)"
    assert fitted(spread, method=method).tobytes() == fitted(alone.curves, method=method).tobytes()


def test_coefficient_curves_have_the_same_bits(client, path) -> None:
    from dpfda.silo.cluster import DaskCurves

    reading = Reading(
        READING.domain, READING.y_bounds, id="pid", x="age", y="hdl", covariates=(Covariate("bmi", bounds=(20, 33)),)
    )
    spread = DaskCurves.from_source(client, path, reading, parts=3)
    alone = load_curves(find_source(str(path)), reading).curves
    options = {"estimator": PrivateVaryingCoefficients, "design_bounds": [(20, 33)]}
    assert fitted(spread, **options).tobytes() == fitted(alone, **options).tobytes()


def test_a_worker_that_dies_is_replaced_with_the_same_bits(client, path) -> None:
    from dpfda.silo.cluster import DaskCurves

    spread = DaskCurves.from_source(client, path, READING)
    kill_a_worker(client)
    alone = load_curves(find_source(str(path)), READING).curves
    assert fitted(spread).tobytes() == fitted(alone).tobytes()


def test_parts_by_loaders_of_ones_own(client) -> None:
    from dpfda.silo.cluster import DaskCurves

    spread = DaskCurves(client, [partial(some_curves, 1), partial(some_curves, 2)])
    one, two = some_curves(1), some_curves(2)
    whole = Curves(np.concatenate([one.x, two.x]), np.concatenate([one.y, two.y]), np.arange(401), np.ones((400, 1)))
    assert fitted(spread).tobytes() == fitted(whole).tobytes()
    with pytest.raises(InvalidInput, match="at least one"):
        DaskCurves(client, [])


def test_data_that_cannot_be_read_again_end_the_round_before_the_debit(client, tmp_path) -> None:
    from dpfda.silo.cluster import DaskCurves

    spread = DaskCurves(client, [partial(curves_unless, str(tmp_path / "gone"))] * 2)
    (tmp_path / "gone").touch()
    pids = set(client.run(os.getpid).values())
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    silo = Silo(spread, epsilon=2.0, delta=1e-5)
    with pytest.raises(SourceError, match="Nothing was spent"):
        PrivateMean(2.0, 1e-5, domain=(0.0, 1.0), y_bounds=(-3.0, 3.0)).fit(silo)
    assert silo.ledger.spent().epsilon == 0


def test_a_bad_table_is_refused_in_the_same_words(client, path, tmp_path) -> None:
    from dpfda.silo.cluster import DaskCurves

    pl.read_parquet(path).with_columns(hdl=pl.lit("high")).write_parquet(tmp_path / "bad.parquet")
    with pytest.raises(InvalidInput, match=r"Row 1 of 'hdl' is '.*', not a number"):
        DaskCurves.from_source(client, tmp_path / "bad.parquet", READING)
    far = Reading(Domain(5, 6), READING.y_bounds, id="pid", x="age", y="hdl")
    with pytest.raises(InvalidInput, match="misses every point"):
        DaskCurves.from_source(client, path, far)
