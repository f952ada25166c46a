"""The cluster that a silo runs on, by its URL or as a client of Dask; one that strangers could talk to is refused.

Whoever reaches a scheduler can run code where the rows are. So one that other machines can reach needs TLS, in which each
side shows a certificate of the organisation's own authority; without it, it must be on this machine.
"""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from dpfda.errors import InvalidInput, SourceError

_SECONDS = 10
_HOW = (
    "start it with --tls-ca-file, --tls-cert and --tls-key, and name the client's own in Dask's configuration "
    "(distributed.comm.tls)"
)


def open_client(engine: Any) -> Any:
    """A client of Dask: that of the cluster at a URL (tls://head:8786), or the one that is given."""
    if not isinstance(engine, str):
        _check_client(engine)
        return engine
    address = urlsplit(engine)
    if address.scheme not in ("tcp", "tls") or not address.hostname:
        raise InvalidInput(f"engine must be the URL of a Dask scheduler such as tls://head:8786, got {engine!r}.")
    _refuse_open_address(engine)
    try:
        import distributed
    except ImportError:
        raise InvalidInput("A silo on a cluster needs Dask: pip install 'dpfda[dask]'.") from None
    try:
        client: Any = distributed.Client(engine, timeout=_SECONDS)  # type: ignore[no-untyped-call, unused-ignore]
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        if address.scheme == "tls" and not isinstance(error, OSError):
            raise InvalidInput(f"The client of {engine} has no certificates of its own: {_HOW}.") from None
        raise SourceError(
            f"The Dask scheduler {engine} cannot be reached; check its address and certificates."
        ) from None
    _check_client(client)
    return client


def _check_client(client: Any) -> None:
    """Refuse a client whose cluster others can reach, unless all sides show certificates."""
    scheduler = getattr(client, "scheduler", None)
    if scheduler is None:
        raise InvalidInput(f"engine must be a URL or a Dask client, got {type(client).__name__}.")
    address = str(scheduler.address)
    _refuse_open_address(address)
    security = client.security
    if address.startswith("tls://") and not (security.tls_client_cert and security.tls_ca_file):
        raise InvalidInput(f"The client of {address} has no certificates of its own: {_HOW}.")
    check_reach(client)


def check_reach(client: Any) -> None:
    """Refuse a cluster of which any process listens to other machines without TLS, by whatever name it was found.

    The scheduler and the workers are asked where they listen, since the name that a client dials says nothing about it; and
    again before each question, since a worker may join at any time.
    """

    def on_scheduler(dask_scheduler: Any) -> list[str]:
        found = [str(listener.listen_address) for listener in dask_scheduler.listeners]
        for worker in dask_scheduler.workers.values():
            found += [str(worker.address), *([str(worker.nanny)] if worker.nanny else [])]
        return found

    def on_worker(dask_worker: Any) -> list[str]:
        return [str(listener.listen_address) for listener in dask_worker.listeners]

    try:
        addresses = list(client.run_on_scheduler(on_scheduler))
        by_worker = client.run(on_worker, on_error="ignore")
    except Exception as error:
        raise SourceError(
            f"The Dask cluster does not say where it listens ({type(error).__name__}); look at its log. Nothing was spent."
        ) from None
    for address in [*addresses, *(each for found in by_worker.values() for each in found)]:
        _refuse_open_address(address)


def _refuse_open_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme not in ("tls", "inproc") and not _is_this_machine(parts.hostname or ""):
        raise InvalidInput(
            f"The Dask process at {address} can be reached by other machines without TLS: {_HOW}; or let all listen on this "
            "machine alone (--host 127.0.0.1)."
        )


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
