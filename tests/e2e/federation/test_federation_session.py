"""The coordinator's log-in: servers that come late, go away, freeze or are not ours; always in bounded time."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("nvflare")

from world import Deployment, environment

from dpfda.errors import TransportError
from dpfda.federation.flare.processes import stop
from dpfda.federation.flare.session import CoordinatorSession

BOUND = 60.0  # seconds: far more than 2 + 15 + 10, far less than for ever


@pytest.fixture
def alone(tmp_path):
    """A server's kit and nobody's process."""
    with environment(HOME=str(tmp_path)):
        made = Deployment(tmp_path, sites=("alpha",)).make()
        try:
            yield made
        finally:
            made.stop()


def log_in(world, seconds):
    coordinator = CoordinatorSession(world.root / "lead")
    began = time.monotonic()
    try:
        coordinator.connect(seconds)
        assert coordinator.sites() == {}
    finally:
        coordinator.close()
        assert time.monotonic() - began < seconds + BOUND


@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_server_that_starts_late_again_and_again(alone, times):
    """The log-in begins before the server does; the pause differs from time to time."""
    for attempt in range(times):
        late = threading.Timer(0.4 * (attempt % 5), alone.start_server)
        late.start()
        log_in(alone, 60.0)
        late.join()
        stop([alone.processes.pop("server")])


def test_no_server_a_silent_one_and_a_frozen_one_are_clear_errors(alone):
    with pytest.raises(TransportError, match="nobody listens at "):
        log_in(alone, 1.0)
    with (
        socket.create_server(("127.0.0.1", alone.address.admin_port)),
        socket.create_server(("127.0.0.1", alone.address.port)),
        pytest.raises(TransportError, match="took the connection but not the log-in"),
    ):
        log_in(alone, 1.0)
    alone.start_server()
    log_in(alone, 60.0)
    os.kill(alone.processes["server"].pid, signal.SIGSTOP)
    try:
        with pytest.raises(TransportError, match="took the connection but not the log-in"):
            log_in(alone, 1.0)
    finally:
        os.kill(alone.processes["server"].pid, signal.SIGCONT)
    log_in(alone, 60.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["silent", "frozen"])
def test_a_process_ends_after_a_log_in_that_was_given_up(alone, kind):
    """FLARE's connectors try for ever in threads that Python waits for at its end."""
    script = (
        "import sys; from pathlib import Path; from dpfda.errors import TransportError\n"
        "from dpfda.federation.flare.session import CoordinatorSession\n"
        "session = CoordinatorSession(Path(sys.argv[1]))\n"
        "try:\n    session.connect(1.0)\nexcept TransportError as error:\n    print(error)\nfinally:\n    session.close()\n"
    )
    with contextlib.ExitStack() as stack:
        if kind == "silent":
            for port in (alone.address.admin_port, alone.address.port):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
        else:
            alone.start_server()
            log_in(alone, 60.0)
            os.kill(alone.processes["server"].pid, signal.SIGSTOP)
            stack.callback(os.kill, alone.processes["server"].pid, signal.SIGCONT)
        command = [sys.executable, "-c", script, str(alone.root / "lead")]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=2 * BOUND, check=True)
    assert "took the connection but not the log-in" in ended.stdout
