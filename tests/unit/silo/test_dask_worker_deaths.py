"""Workers of a real local cluster that are killed (SIGKILL) in the middle of a round: the same bits, or one clear error."""

from __future__ import annotations

import os
import warnings
from functools import partial

import numpy as np
import pytest
from dask_cluster import curves_of_a_worker_that_dies, some_curves, two_workers

from dpfda.curves.curves import Curves
from dpfda.errors import SourceError
from dpfda.estimators import PrivateMean
from dpfda.silo.silo import Silo

pytest.importorskip("distributed", reason="the extra dpfda[dask] is not installed")


@pytest.fixture
def client(tmp_path_factory):
    """A cluster for one test: workers that were told to die must not meet other tests."""
    with two_workers(tmp_path_factory.mktemp("dask")) as client:
        yield client


def two_silos(client, flag, call: int, moment: str, deaths: int):
    """One whose second worker dies, and its twin in one process."""
    from dpfda.silo.cluster import DaskCurves

    dying = partial(curves_of_a_worker_that_dies, 2, str(flag), call, moment, deaths)
    one, two = some_curves(1), some_curves(2)
    whole = Curves(np.concatenate([one.x, two.x]), np.concatenate([one.y, two.y]), np.arange(401), np.ones((400, 1)))
    spread = DaskCurves(client, [partial(some_curves, 1), dying])
    return [Silo(curves, epsilon=2.0, delta=1e-5) for curves in (spread, whole)]


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
