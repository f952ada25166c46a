"""The silo's process: it holds the data and has no network; all it hears comes over a Unix socket, as bytes.

`Handler` is the whole interface: bytes in, bytes out. Whatever a handler raises becomes the one answer `unavailable`; the
cause is told to `on_refusal`, which writes the site's own log, and to nobody else.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dpfda.errors import TransportError
from dpfda.federation.frames import MAX_MESSAGE, FrameServer, connect, receive_frame, send_frame

Handler = Callable[[bytes], bytes]
OnRefusal = Callable[[str], None]
GIVEN, UNAVAILABLE = b"\x01", b"\x00"


@dataclass(frozen=True)
class Reply:
    """What came back: an answer, or only that there is none."""

    given: bool
    payload: bytes = b""

    @staticmethod
    def parse(data: bytes) -> Reply:
        """A reply as it crosses a border; anything unusual is none."""
        return Reply(True, data[1:]) if data[:1] == GIVEN else Reply(False)

    def encode(self) -> bytes:
        """The one byte that says which, and the answer."""
        return GIVEN + self.payload if self.given else UNAVAILABLE


class SiloService:
    """Serves one handler at a Unix socket.

    Parameters
    ----------
    handler : callable from bytes to bytes
        Called for one message at a time, unless `concurrent`.
    path : Path
        The socket; only its owner can open it.
    on_refusal : callable
        Gets one line for each message that was refused.
    """

    def __init__(self, handler: Handler, path: Path, on_refusal: OnRefusal, *, concurrent: bool = False) -> None:
        self._handler, self._on_refusal = handler, on_refusal
        self._turn: contextlib.AbstractContextManager[object] = (
            contextlib.nullcontext() if concurrent else threading.Lock()
        )
        self._server = FrameServer(path, self._serve, "silo")

    def start(self) -> None:
        """Serve in the background."""
        self._server.start()

    def run(self) -> None:
        """Serve until `close`."""
        self._server.run()

    def close(self) -> None:
        """Take no more connections."""
        self._server.close()

    def _serve(self, connection: socket.socket) -> None:
        while True:
            try:
                message = receive_frame(connection)
            except TransportError as error:
                if type(error) is TransportError:  # too long; a closed connection is no news
                    self._on_refusal(str(error))
                    send_frame(connection, Reply(False).encode())
                return
            send_frame(connection, self._answer(message).encode())

    def _answer(self, message: bytes) -> Reply:
        """The only place where errors become answers; it catches all of them, because none may leave."""
        try:
            with self._turn:
                payload = self._handler(message)
            if not isinstance(payload, bytes) or len(payload) > MAX_MESSAGE - 1:
                raise TransportError("The handler's answer is not bytes of an allowed length.")
            return Reply(True, payload)
        except BaseException as error:  # a panic of compiled code is no Exception
            with contextlib.suppress(Exception):  # a log that cannot be written must not change the answer
                self._on_refusal(f"{type(error).__name__}: {error}")
            return Reply(False)


class SiloLink:
    """The FLARE client's side: a few connections to the silo, made when they are needed and kept."""

    def __init__(self, path: Path, timeout: float | None = None) -> None:
        self._path, self._timeout = path, timeout
        self._idle: queue.SimpleQueue[socket.socket] = queue.SimpleQueue()

    def ask(self, message: bytes) -> Reply:
        """The silo's reply; `TransportError` if it cannot be reached."""
        try:
            connection = self._idle.get_nowait()
            return self._exchange(connection, message)
        except queue.Empty:
            pass
        except (OSError, TransportError):  # the silo was started anew since
            self._drop_idle()
        return self._exchange(connect(self._path, self._timeout), message)

    def _exchange(self, connection: socket.socket, message: bytes) -> Reply:
        try:
            send_frame(connection, message)
            reply = Reply.parse(receive_frame(connection))
        except OSError as error:
            connection.close()
            raise TransportError(f"The silo did not answer ({type(error).__name__}).") from None
        except BaseException:
            connection.close()
            raise
        self._idle.put(connection)
        return reply

    def _drop_idle(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()
