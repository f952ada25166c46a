"""The coordinator's study process and its FLARE server, over a Unix socket: ask sites, and look who is there.

The study never sees FLARE: it hands over bytes with the names of sites and gets bytes by site back. Each answer is handed
to the study as it comes, and counts towards the quorum only if the study, which has the keys, says so. Both ends are the
coordinator's own, but lengths are checked all the same.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpfda.errors import ProtocolError, TransportError
from dpfda.federation.frames import MAX_MESSAGE, connect, receive_frame, send_frame
from dpfda.federation.rounds import ABSENT, REFUSED, REJECTED, UNAVAILABLE, Closing, Counts, OpenRound

MOST_SITES = 10_000
_LENGTH = struct.Struct("!I")
_HEADER_BYTES = 4_000_000
_LONGER = 30.0  # seconds beyond a round's deadline until the server counts as dead


@dataclass(frozen=True)
class Answers:
    """What a round brought: answers by site, and for every other site a word why there is none."""

    given: Mapping[str, bytes]
    missing: Mapping[str, str]


@dataclass(frozen=True)
class SiteContact:
    """What the server knows of a site: public facts only."""

    enrolled: bool
    connected: bool
    last_hello: float | None = None
    clock_offset: float | None = None
    certificate: str | None = None


class ServerLink:
    """The study's side; use one per thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: socket.socket | None = None

    def ask(self, sites: Sequence[str], message: bytes, closing: Closing, counts: Counts) -> Answers:
        """Ask the sites one question; returns when the round closes. An answer that does not count is as if absent."""
        if len(message) > MAX_MESSAGE:
            raise ProtocolError("The question is too long.")
        header = {"do": "ask", "sites": list(sites), "closing": asdict(closing)}
        timeout, given = closing.deadline + _LONGER, {}
        fields, body = self._exchange(header, message, timeout)
        while "came" in fields:
            site = str(fields["came"])
            verdict = self._judge(counts, site, body)
            if verdict:
                given[site] = body
            fields, body = self._exchange({"do": "count", "counts": verdict}, b"", timeout)
        in_order = {site: given[site] for site in sites if site in given}
        return Answers(in_order, {str(name): str(why) for name, why in fields["missing"].items()})

    def look(self) -> dict[str, SiteContact]:
        """Every enrolled or connected site."""
        fields, _ = self._exchange({"do": "look"}, b"", _LONGER)
        return {str(name): SiteContact(**facts) for name, facts in fields["sites"].items()}

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _judge(self, counts: Counts, site: str, answer: bytes) -> bool:
        """A mistake of whoever judges ends the round: the server waits for a word that would never come."""
        try:
            return counts(site, answer)
        except BaseException:
            self.close()
            raise

    def _exchange(self, header: dict[str, Any], body: bytes, timeout: float) -> tuple[dict[str, Any], bytes]:
        fresh = self._connection is None
        connection = self._connection or connect(self._path)
        self._connection = connection
        try:
            connection.settimeout(timeout)
            send_frame(connection, *pack(header, body))
            return unpack(receive_frame(connection, MAX_MESSAGE + _HEADER_BYTES))
        except (OSError, TransportError) as error:
            self.close()
            if not fresh and header["do"] == "look":
                return self._exchange(header, body, timeout)
            raise TransportError(f"The server did not answer ({type(error).__name__}); is it running?") from None


class LinkService:
    """The server's side: serves one connection of a study process."""

    def __init__(
        self,
        ask: Callable[[Sequence[str], bytes, Closing, Callable[[], bool], Counts], OpenRound],
        look: Callable[[], dict[str, SiteContact]],
    ) -> None:
        self._ask, self._look = ask, look

    def serve(self, connection: socket.socket) -> None:
        """Answer requests until the study hangs up."""
        while True:
            fields, body = unpack(receive_frame(connection, MAX_MESSAGE + _HEADER_BYTES))
            send_frame(connection, *pack(self._answer(fields, body, connection)))

    def _answer(self, fields: dict[str, Any], body: bytes, connection: socket.socket) -> dict[str, Any]:
        if fields.get("do") == "look":
            return {"sites": {name: asdict(contact) for name, contact in self._look().items()}}
        if fields.get("do") != "ask":
            raise ProtocolError("The server knows no such request.")
        sites, closing = _read_request(fields)
        round_ = self._ask(
            sites, body, closing, lambda: _has_hung_up(connection), lambda *came: _let_judge(connection, *came)
        )
        given = round_.given()
        contacts = self._look()
        return {"missing": {site: _explain(site, round_, contacts) for site in sites if site not in given}}


def _let_judge(connection: socket.socket, site: str, answer: bytes) -> bool:
    """Hand an answer to the study; whether it counts."""
    send_frame(connection, *pack({"came": site}, answer))
    fields, _ = unpack(receive_frame(connection, _HEADER_BYTES))
    if fields.get("do") != "count":
        raise ProtocolError("The study must say whether an answer counts.")
    return fields.get("counts") is True


def _read_request(fields: dict[str, Any]) -> tuple[list[str], Closing]:
    try:
        sites, closing = [str(site) for site in fields["sites"]], Closing(**fields["closing"])
    except (KeyError, TypeError):
        raise ProtocolError("The request cannot be read.") from None
    if len(sites) > MOST_SITES or len(set(sites)) != len(sites):
        raise ProtocolError("The request names too many sites, or one twice.")
    return sites, closing


def _explain(site: str, round_: OpenRound, contacts: Mapping[str, SiteContact]) -> str:
    contact = contacts.get(site)
    if contact is None or not contact.enrolled:
        return REFUSED
    if site in round_.rejected:
        return REJECTED
    return UNAVAILABLE if contact.connected or site in round_.replies else ABSENT


def pack(header: dict[str, Any], *bodies: bytes) -> tuple[bytes, ...]:
    """A JSON header and bodies as the parts of one frame."""
    text = json.dumps(header).encode()
    return (_LENGTH.pack(len(text)), text, *bodies)


def unpack(frame: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and body of a frame."""
    try:
        (length,) = _LENGTH.unpack_from(frame)
        if length > min(_HEADER_BYTES, len(frame) - _LENGTH.size):
            raise ValueError
        fields = json.loads(frame[_LENGTH.size : _LENGTH.size + length])
        if not isinstance(fields, dict):
            raise ValueError
    except (ValueError, struct.error, RecursionError):
        raise ProtocolError("The frame cannot be read.") from None
    return fields, frame[_LENGTH.size + length :]


def _has_hung_up(connection: socket.socket) -> bool:
    """Whether the study's process is gone; it never speaks while it waits."""
    with contextlib.suppress(OSError, ValueError):
        readable, _, _ = select.select([connection], [], [], 0)
        return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""
    return True
