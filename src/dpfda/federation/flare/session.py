"""The coordinator's connection to the running server: who is there, submit a job, how is it."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import queue
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.flare_api.flare_api import Session, new_secure_session

from dpfda.errors import TransportError
from dpfda.federation.flare.processes import HEART_BEAT
from dpfda.federation.flare.provision import LEAD

_FINISHED = "FINISHED"
_LOG_IN, _ANSWER, _LOG_OUT = 15.0, 60.0, 10.0  # seconds after which a call is given up


class CoordinatorSession:
    """An administrator's session with the role `lead`. FLARE's chatter is kept from the user's terminal."""

    def __init__(self, kit: Path) -> None:
        self._kit = kit
        self._session: Session | None = None

    def connect(self, seconds: float) -> None:
        """Log in, trying until the time is over; it never takes much longer.

        FLARE is asked only once the server's port takes connections: a log-in that finds nobody there never comes back (its
        clean-up waits for a thread that goes on trying). A server that dies or freezes after that has the same effect, so
        every call runs in a thread that can be given up.
        """
        deadline = time.monotonic() + seconds
        logging.getLogger("nvflare").setLevel(logging.CRITICAL)
        address = self._wait_for_port(deadline)
        while True:
            try:
                with _silence():
                    self._session = _within(_LOG_IN, new_secure_session, LEAD, str(self._kit), timeout=5.0)
            except Exception as error:  # FLARE raises many kinds here; the server may still be starting
                _end_connectors()
                if time.monotonic() > deadline:
                    raise TransportError(
                        f"The server at {address} took the connection but not the log-in ({type(error).__name__}); "
                        "see whether it is this study's server and still runs."
                    ) from None
                time.sleep(0.5)
            else:
                return

    def _wait_for_port(self, deadline: float) -> str:
        admin = json.loads((self._kit / "startup" / "fed_admin.json").read_text())["admin"]
        address = f"{admin['host']}:{admin['port']}"
        while True:
            try:
                socket.create_connection((admin["host"], admin["port"]), timeout=2.0).close()
            except OSError:
                if time.monotonic() > deadline:
                    raise TransportError(f"The server cannot be reached: nobody listens at {address}.") from None
                time.sleep(0.2)
            else:
                return address

    def close(self) -> None:
        """Log out."""
        if self._session is not None:
            with _silence(), contextlib.suppress(Exception):
                _within(_LOG_OUT, self._session.close)

    def sites(self) -> dict[str, float]:
        """The sites that were heard of lately, and when; FLARE itself forgets a dead site much later."""
        info, now = self._ask("get_system_info"), time.time()
        heard = {client.name: float(client.last_connect_time or 0.0) for client in info.client_info}
        return {name: when for name, when in heard.items() if now - when < 6 * HEART_BEAT}

    def submit(self, job: Path) -> str:
        """Submit a job folder; its id."""
        return str(self._ask("submit_job", str(job)))

    def state(self, job: str) -> str:
        """The job's status in FLARE's words."""
        return str(self._ask("get_job_meta", job).get("status", ""))

    def is_over(self, job: str) -> bool:
        """Whether the job has ended, well or not."""
        return self.state(job).startswith(_FINISHED)

    def abort(self, job: str) -> None:
        """Stop the job."""
        self._ask("abort_job", job)

    def _ask(self, method: str, *arguments: Any) -> Any:
        if self._session is None:
            raise TransportError("There is no connection to the server.")
        try:
            with _silence():
                return _within(_ANSWER, getattr(self._session, method), *arguments)
        except Exception as error:
            raise TransportError(f"The server did not answer {method}: {type(error).__name__}.") from error


def _within(seconds: float, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The result of a call, or `TimeoutError`; its thread is left behind, and ends with this process at the latest."""
    done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put((call(*arguments, **options), None))
        except BaseException as error:  # handed on below
            done.put((None, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        result, error = done.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return result


def _end_connectors() -> None:
    """Tell FLARE's connectors to end: those of a log-in that was given up would try for ever and keep Python from ending."""
    for cell in list(CoreCell.ALL_CELLS.values()):
        for connector in list(cell.communicator.conn_manager.connectors.values()):
            connector.stopped.set()


@contextlib.contextmanager
def _silence() -> Any:
    """FLARE's admin client prints."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
