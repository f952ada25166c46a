"""A real Dask cluster of two worker processes on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


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
