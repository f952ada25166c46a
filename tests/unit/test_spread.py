"""A silo spread over two real worker processes: the same bits as one process, and no loss when a worker dies."""

from __future__ import annotations

import itertools
import os
import signal
import warnings
from functools import partial

import numpy as np
import pytest

from dpfda.curves import Curves
from dpfda.errors import InvalidInput, SourceError
from dpfda.estimators import PrivateMean, PrivateVaryingCoefficients
from dpfda.silo import Silo
from dpfda.tables import Covariate, Domain, Reading, find_source, load_curves

distributed = pytest.importorskip("distributed", reason="the extra dpfda[dask] is not installed")
pl = pytest.importorskip("polars")

READING = Reading(Domain(0, 1), (-3.0, 3.0), id="pid", x="age", y="hdl")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dask")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(folder)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
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


def kill_a_worker(client) -> None:
    """End one worker process that this test's own cluster started."""
    os.kill(client.run(os.getpid).popitem()[1], signal.SIGKILL)


@pytest.mark.parametrize("method", ["adaptive", "published"])
def test_two_workers_give_the_bits_of_one_process(method: str, client, path) -> None:
    from dpfda.spread import SpreadCurves

    spread = SpreadCurves.from_source(client, path, READING)
    alone = load_curves(find_source(str(path)), READING)
    assert (spread.n, spread.p) == (alone.curves.n, 1)
    assert spread.owner_notes == alone.owner_notes
    assert repr(spread) == f"SpreadCurves(n={alone.curves.n}, p=1, parts=2)"
    assert fitted(spread, method=method).tobytes() == fitted(alone.curves, method=method).tobytes()


def test_coefficient_curves_have_the_same_bits(client, path) -> None:
    from dpfda.spread import SpreadCurves

    reading = Reading(
        READING.domain, READING.y_bounds, id="pid", x="age", y="hdl", covariates=(Covariate("bmi", bounds=(20, 33)),)
    )
    spread = SpreadCurves.from_source(client, path, reading, parts=3)
    alone = load_curves(find_source(str(path)), reading).curves
    options = {"estimator": PrivateVaryingCoefficients, "design_bounds": [(20, 33)]}
    assert fitted(spread, **options).tobytes() == fitted(alone, **options).tobytes()


def test_a_worker_that_dies_is_replaced_with_the_same_bits(client, path) -> None:
    from dpfda.spread import SpreadCurves

    spread = SpreadCurves.from_source(client, path, READING)
    kill_a_worker(client)
    alone = load_curves(find_source(str(path)), READING).curves
    assert fitted(spread).tobytes() == fitted(alone).tobytes()


def some_curves(seed: int) -> Curves:
    rng = np.random.default_rng(seed)
    return Curves.from_long(np.arange(200), rng.random(200), rng.normal(size=200))


def curves_unless(flag: str) -> Curves:
    if os.path.exists(flag):
        raise FileNotFoundError(flag)
    return some_curves(1)


def curves_of_a_worker_that_dies(seed: int, flag: str, call: int, moment: str, deaths: int) -> Curves:
    """Curves; the process that loads them kills itself while it answers question `call`, until it died `deaths` times."""
    from dpfda.spread.part import Part

    answer, calls = Part.words, itertools.count()

    def words(self: Part, *question: object):
        last = next(calls) == call and len(os.listdir(flag)) < deaths
        if last and moment == "before the sum":
            die()
        found = answer(self, *question)
        if last:
            die()
        return found

    def die() -> None:
        open(os.path.join(flag, str(os.getpid())), "x").close()
        os.kill(os.getpid(), signal.SIGKILL)

    if len(os.listdir(flag)) < deaths:
        Part.words = words
    return some_curves(seed)


def two_silos(client, flag, call: int, moment: str, deaths: int):
    """One whose second worker dies, and its twin in one process."""
    from dpfda.spread import SpreadCurves

    dying = partial(curves_of_a_worker_that_dies, 2, str(flag), call, moment, deaths)
    one, two = some_curves(1), some_curves(2)
    whole = Curves(np.concatenate([one.x, two.x]), np.concatenate([one.y, two.y]), np.arange(401), np.ones((400, 1)))
    return [
        Silo(curves, epsilon=2.0, delta=1e-5)
        for curves in (SpreadCurves(client, [partial(some_curves, 1), dying]), whole)
    ]


def fit_with(silo: Silo):
    public = {"domain": (0.0, 1.0), "y_bounds": (-3.0, 3.0), "random_state": 7}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PrivateMean(2.0, 1e-5, **public).fit(silo)


def charged(silo: Silo) -> list[tuple[int, int, str, float]]:
    """Every debit in the ledger."""
    return [(entry.round, entry.attempt, entry.label, entry.mu) for entry in silo.ledger.log()]


@pytest.mark.parametrize(("call", "moment"), [(0, "before the sum"), (5, "after the sum")])
def test_a_worker_killed_in_mid_round_changes_no_bit_and_no_debit(call, moment, client, tmp_path) -> None:
    spread, alone = two_silos(client, tmp_path, call, moment, deaths=1)
    assert fit_with(spread).coef_.tobytes() == fit_with(alone).coef_.tobytes()
    assert len(os.listdir(tmp_path)) == 1  # it was killed, once
    assert spread.ledger.spent() == alone.ledger.spent()
    assert charged(spread) == charged(alone)


def test_workers_that_keep_dying_end_the_round_before_its_debit(client, tmp_path) -> None:
    def allow(failures: int) -> None:
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", failures))

    usual = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.allowed_failures)
    spread, alone = two_silos(client, tmp_path, 5, "after the sum", deaths=100)
    allow(0)
    try:
        with pytest.raises(SourceError, match="Nothing was spent on this round"):
            fit_with(spread)
    finally:
        allow(usual)
    fit_with(alone)
    answered = len(charged(spread))
    assert 0 < answered < len(charged(alone))
    assert charged(spread) == charged(alone)[:answered]  # the rounds before it, each once


def test_parts_by_loaders_of_ones_own(client) -> None:
    from dpfda.spread import SpreadCurves

    spread = SpreadCurves(client, [partial(some_curves, 1), partial(some_curves, 2)])
    one, two = some_curves(1), some_curves(2)
    whole = Curves(np.concatenate([one.x, two.x]), np.concatenate([one.y, two.y]), np.arange(401), np.ones((400, 1)))
    assert fitted(spread).tobytes() == fitted(whole).tobytes()
    with pytest.raises(InvalidInput, match="at least one"):
        SpreadCurves(client, [])


def test_data_that_cannot_be_read_again_end_the_round_before_the_debit(client, tmp_path) -> None:
    from dpfda.spread import SpreadCurves

    spread = SpreadCurves(client, [partial(curves_unless, str(tmp_path / "gone"))] * 2)
    (tmp_path / "gone").touch()
    pids = set(client.run(os.getpid).values())
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    silo = Silo(spread, epsilon=2.0, delta=1e-5)
    with pytest.raises(SourceError, match="Nothing was spent"):
        PrivateMean(2.0, 1e-5, domain=(0.0, 1.0), y_bounds=(-3.0, 3.0)).fit(silo)
    assert silo.ledger.spent().epsilon == 0


def test_a_bad_table_is_refused_in_the_same_words(client, path, tmp_path) -> None:
    from dpfda.spread import SpreadCurves

    pl.read_parquet(path).with_columns(hdl=pl.lit("high")).write_parquet(tmp_path / "bad.parquet")
    with pytest.raises(InvalidInput, match="'hdl' has a text in row 1"):
        SpreadCurves.from_source(client, tmp_path / "bad.parquet", READING)
    far = Reading(Domain(5, 6), READING.y_bounds, id="pid", x="age", y="hdl")
    with pytest.raises(InvalidInput, match="misses every point"):
        SpreadCurves.from_source(client, path, far)
