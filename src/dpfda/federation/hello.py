"""The `hello` that a site's client and its server exchange every few seconds: raw bytes, two clocks and a session."""

from __future__ import annotations

import math
import struct

from dpfda.errors import ProtocolError

SESSION_BYTES = 8
REFUSAL = b"refused"
NOT_ENROLLED = "not enrolled"  # what a server says at log-in to a certificate that is not in its register
_HELLO = struct.Struct(f"!{SESSION_BYTES}sd")
_CLOCK = struct.Struct("!d")


def encode_hello(session: bytes, clock: float) -> bytes:
    """From a client: which process it is, and its clock."""
    return _HELLO.pack(session, clock)


def parse_hello(data: bytes) -> tuple[bytes, float]:
    """Session and clock of a client."""
    if len(data) != _HELLO.size:
        raise ProtocolError("The hello is malformed.")
    session, clock = _HELLO.unpack(data)
    return session, _checked(clock)


def encode_welcome(clock: float) -> bytes:
    """From the server: its clock."""
    return _CLOCK.pack(clock)


def parse_welcome(data: bytes) -> float:
    """The server's clock."""
    if len(data) != _CLOCK.size:
        raise ProtocolError("The server's welcome is malformed.")
    return _checked(_CLOCK.unpack(data)[0])


def _checked(clock: float) -> float:
    if not math.isfinite(clock):
        raise ProtocolError("The clock of a hello is malformed.")
    return clock
