"""Third review, F3: a cluster that other machines can reach without TLS is refused, by whatever name it was found."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from urllib.parse import urlsplit

import pytest
from dask_cluster import some_curves, two_workers

from dpfda.errors import InvalidInput
from dpfda.silo.cluster.dask_curves import DaskCurves
from dpfda.silo.cluster.engine import open_client

distributed = pytest.importorskip("distributed", reason="the extra dpfda[dask] is not installed")


def test_a_scheduler_that_listens_everywhere_is_refused_by_its_name_on_this_machine(tmp_path) -> None:
    """As `dask scheduler` starts it: whoever reached it could run code in the worker that held the rows."""
    with distributed.LocalCluster(
        n_workers=0, processes=True, dashboard_address=None, local_directory=str(tmp_path), host="0.0.0.0"
    ) as everywhere:
        port = urlsplit(everywhere.scheduler_address).port
        with pytest.raises(InvalidInput, match="without TLS"):
            open_client(f"tcp://127.0.0.1:{port}")


def test_a_worker_that_listens_everywhere_is_refused_also_if_it_joins_later(tmp_path) -> None:
    with two_workers(tmp_path) as client:
        curves = DaskCurves(client, [partial(some_curves, 1)])
        words = [
            "--host",
            "0.0.0.0",
            "--no-nanny",
            "--no-dashboard",
            "--nthreads",
            "1",
            "--local-directory",
            str(tmp_path),
        ]
        command = [sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address, *words]
        worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            client.wait_for_workers(3, 60)
            with pytest.raises(InvalidInput, match="without TLS"):
                curves.fingerprint(b"k" * 32)
        finally:
            worker.terminate()
            worker.wait()
