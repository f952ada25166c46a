"""Bytes between two processes of one organisation: a Unix socket that only its owner may open, and framed messages.

A frame is its length in four bytes, then its content. The length is checked before anything is read or reserved.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dpfda.errors import DpfdaError, TransportError

MAX_MESSAGE = 8 * 1_000_000 + 131_072  # a million numbers, a header and a signature
_LENGTH = struct.Struct("!I")
_CHUNK = 1 << 20
_LONGEST_PATH = 100  # of a socket's name; the kernel's limit is 107 bytes
_BACKLOG = 64


class Closed(TransportError):
    """The other side has closed the connection."""


def send_frame(connection: socket.socket, *parts: bytes) -> None:
    """Send one frame made of these parts."""
    length = sum(len(part) for part in parts)
    connection.sendall(b"".join((_LENGTH.pack(length), *parts)))


def receive_frame(connection: socket.socket, most: int = MAX_MESSAGE) -> bytes:
    """Receive one frame; one that is too long is refused before it is read."""
    (length,) = _LENGTH.unpack(_receive(connection, _LENGTH.size))
    if length > most:
        raise TransportError(f"A message of {length} bytes is too long; at most {most} are read.")
    return _receive(connection, length)


def _receive(connection: socket.socket, length: int) -> bytes:
    content = bytearray()
    while len(content) < length:
        piece = connection.recv(min(_CHUNK, length - len(content)))
        if not piece:
            raise Closed("The connection was closed.")
        content += piece
    return bytes(content)


@contextmanager
def _reachable(path: Path) -> Iterator[str]:
    """A name for the socket that is short enough, whatever the folder's."""
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        yield str(path)
        return
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)


def open_listener(path: Path) -> socket.socket:
    """Listen at a Unix socket with mode 0600; a socket that a dead process left behind is replaced."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _reachable(path) as name:
            before = os.umask(0o177)
            try:
                listener.bind(name)
            finally:
                os.umask(before)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def connect(path: Path, timeout: float | None = None) -> socket.socket:
    """Connect to a Unix socket; `TransportError` if nobody listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        with _reachable(path) as name:
            connection.connect(name)
    except OSError as error:
        connection.close()
        raise TransportError(f"Nobody answers at {path} ({type(error).__name__}).") from None
    return connection


class FrameServer:
    """Accepts connections at a Unix socket and lets each be served in a thread of its own."""

    def __init__(self, path: Path, serve: Callable[[socket.socket], None], name: str) -> None:
        self._listener = open_listener(path)
        self._serve, self._name = serve, name
        self._closing = threading.Event()

    def start(self) -> None:
        """Accept connections in the background."""
        threading.Thread(target=self.run, name=self._name, daemon=True).start()

    def run(self) -> None:
        """Accept connections until `close`."""
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._closing.is_set():
                    return
                self._closing.wait(0.1)  # out of descriptors, for instance: try again
                continue
            threading.Thread(target=self._serve_one, args=(connection,), name=self._name, daemon=True).start()

    def close(self) -> None:
        """Accept no more."""
        self._closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve_one(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(DpfdaError, OSError):
            self._serve(connection)
