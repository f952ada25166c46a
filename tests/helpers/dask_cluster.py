"""A real Dask cluster of two worker processes on this machine, and loaders of curves that its workers can import."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dpfda.curves.curves import Curves


@contextmanager
def two_workers(folder: Path) -> Iterator[Any]:
    """A client of a cluster that ends with the block."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(folder)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def some_curves(seed: int) -> Curves:
    rng = np.random.default_rng(seed)
    return Curves.from_long(np.arange(200), rng.random(200), rng.normal(size=200))


def curves_of_a_worker_that_dies(seed: int, flag: str, call: int, moment: str, deaths: int) -> Curves:
    """Curves; the process that loads them kills itself while it answers question `call`, until it died `deaths` times."""
    from dpfda.silo.cluster.part import Part

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


def curves_unless(flag: str) -> Curves:
    if os.path.exists(flag):
        raise FileNotFoundError(flag)
    return some_curves(1)
