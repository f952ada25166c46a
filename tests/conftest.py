"""Real servers and browsers for tests. Where a system package is missing, a test that needs it says so by name."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# the same examples in every run, however busy the machine is: a flaky test is a bug
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")

MISSING = "the system package {package!r} is not installed, so this test did not run; `make setup-system` installs it"


def _postgres_binaries() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    elsewhere = shutil.which("initdb")
    return Path(elsewhere).parent if elsewhere else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _as_server_user() -> dict[str, object]:
    """PostgreSQL refuses to run as root: root hands over to Debian's `postgres` or to `nobody`."""
    if os.geteuid() != 0:
        return {}
    names = [name for name in ("postgres", "nobody") if any(entry.pw_name == name for entry in pwd.getpwall())]
    user = pwd.getpwnam(names[0])
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server of this test session on a free port of 127.0.0.1, stopped by its process at the end."""
    binaries = _postgres_binaries()
    if binaries is None:
        pytest.skip(MISSING.format(package="postgresql"))
    pytest.importorskip("psycopg")
    folder, port, identity = Path(tempfile.mkdtemp(prefix="dpfda-postgres-")), _free_port(), _as_server_user()
    if "user" in identity:
        os.chown(folder, identity["user"], identity["group"])  # type: ignore[arg-type]
    data = folder / "data"
    create = [binaries / "initdb", "-D", data, "-U", "analyst", "--auth=trust", "--no-sync", "--encoding=UTF8"]
    subprocess.run(create, check=True, capture_output=True, **identity)  # type: ignore[call-overload]
    options = ["-h", "127.0.0.1", "-p", str(port), "-k", str(folder), "-c", "max_connections=30"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([binaries / "postgres", "-D", data, *options], stdout=log, stderr=log, **identity)  # type: ignore[call-overload]
    try:
        _wait_for(port, server)
        yield f"postgresql://analyst@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown
        server.wait(timeout=120)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    for _ in range(1200):
        assert server.poll() is None, "the PostgreSQL server of the test ended at once"
        try:
            psycopg.connect(host="127.0.0.1", port=port, user="analyst", dbname="postgres", connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise AssertionError("the PostgreSQL server of the test did not answer within a minute")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a real browser."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip(MISSING.format(package="chromium"))
    return found


@pytest.fixture(scope="session")
def flare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """One FLARE server and three sites as real processes with mutual TLS, for all tests of a session."""
    pytest.importorskip("nvflare", reason="the extra dpfda[federated] is not installed")
    from world import World

    world = World(tmp_path_factory.mktemp("flare"))
    try:
        yield world.start()
    finally:
        world.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on real FLARE processes are marked."""
    for item in items:
        if is_on_flare(item.nodeid):
            item.add_marker("federation")


def is_on_flare(nodeid: str) -> bool:
    """Whether a test needs a deployment of FLARE: by its folder, or by what its silos are connected with."""
    return nodeid.startswith("tests/e2e/federation/") or "[flare" in nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile` one worker runs each file, and one worker all tests on FLARE, in one deployment.

    These wait for processes and deadlines more than they compute, so the other worker goes on meanwhile.
    """
    from xdist.scheduler import LoadFileScheduling

    class OneDeployment(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "federation" if is_on_flare(nodeid) else super()._split_scope(nodeid)

    return OneDeployment(config, log) if config.getvalue("dist") == "loadfile" else None
