"""Which clusters a silo may run on: on this machine, or with certificates on both sides."""

from __future__ import annotations

import socket
from functools import partial

import pytest
from dask_cluster import some_curves

from dpfda.errors import InvalidInput, SourceError
from dpfda.silo.cluster.dask_curves import DaskCurves
from dpfda.silo.cluster.engine import open_client

distributed = pytest.importorskip("distributed", reason="the extra dpfda[dask] is not installed")


def outside_address() -> str:
    """An address of this machine that others can reach; 127.0.0.2 where there is none would be loopback."""
    found = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    return next(iter(sorted(address for address in found if not address.startswith("127."))), "0.0.0.0")


@pytest.mark.parametrize(
    "url", ["tcp://192.0.2.7:8786", "tcp://head:8786", "tcp://127.0.0.1.example.org:8786", "tcp://[2001:db8::1]:1"]
)
def test_a_scheduler_elsewhere_without_tls_is_refused_before_anything_is_sent(url) -> None:
    with pytest.raises(InvalidInput, match="without TLS"):
        open_client(url)


@pytest.mark.parametrize("url", ["head:8786", "http://head", "spark://head:7077", "tls://", ""])
def test_what_is_no_scheduler_is_refused(url) -> None:
    with pytest.raises(InvalidInput, match="tls://head:8786"):
        open_client(url)


def test_something_else_is_refused() -> None:
    with pytest.raises(InvalidInput, match="URL or a Dask client"):
        open_client(object())


def test_nobody_at_the_address_is_the_systems_fault(monkeypatch) -> None:
    monkeypatch.setattr("dpfda.silo.cluster.engine._SECONDS", 1)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(SourceError, match="cannot be reached"):
            open_client(f"tcp://127.0.0.1:{held.getsockname()[1]}")


def test_a_client_without_certificates_cannot_name_a_tls_scheduler() -> None:
    with pytest.raises(InvalidInput, match="no certificates of its own"):
        open_client("tls://192.0.2.7:8786")


def cluster(folder, **options):
    return distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        local_directory=str(folder),
        **options,
    )


def test_a_real_scheduler_that_others_can_reach_is_refused_by_client_and_by_url(tmp_path) -> None:
    with cluster(tmp_path, host="0.0.0.0") as open_cluster, distributed.Client(open_cluster) as client:
        for engine in (client, client.scheduler.address):
            with pytest.raises(InvalidInput, match="without TLS"):
                DaskCurves(engine, [partial(some_curves, 1)])


def test_tls_with_certificates_on_both_sides_is_accepted(tmp_path) -> None:
    pytest.importorskip("cryptography")
    security = distributed.Security.temporary()
    with (
        cluster(tmp_path, security=security, host=outside_address()) as closed,
        distributed.Client(closed, security=security) as client,
    ):
        assert client.scheduler.address.startswith("tls://")
        assert open_client(client) is client
        assert DaskCurves(client, [partial(some_curves, 1)]).n == 200


def test_a_scheduler_on_this_machine_can_be_named_by_url(tmp_path) -> None:
    with cluster(tmp_path) as own:
        client = open_client(own.scheduler_address)
        assert DaskCurves(client, [partial(some_curves, 1)]).n == 200
        client.close()
