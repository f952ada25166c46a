"""Who may say what: every message that arrives is looked at here before FLARE decodes, forwards or handles anything of it.

The rule is a closed list of channels and topics with a largest size each. The sender is the other end of the TLS connection,
by the name in its certificate: a message that claims another origin, or that is meant for somebody else, is dropped, so no
member of a consortium can reach another one through the server. Headers that FLARE does not need for these few messages are
removed. A dropped message gets no answer; why it was dropped is written to the log of this end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nvflare.fuel.f3.cellnet.defs import CellChannelTopic, Encoding, IdentityChallengeKey, MessageHeaderKey, MessageType
from nvflare.fuel.f3.cellnet.fqcn import FQCN
from nvflare.fuel.f3.drivers.driver_params import DriverParams
from nvflare.private.defs import CellMessageHeaderKeys

from dpfda.federation.flare.plain import LOGIN_CHANNEL, LOGIN_TOPICS, MAX_LOGIN
from dpfda.federation.frames import MAX_MESSAGE
from dpfda.federation.quiet import BoundedLog, escape

SERVER = FQCN.ROOT_SERVER
CHANNEL = "dpfda"
ASK, ANSWER, HELLO = "ask", "answer", "hello"
CERTIFICATE = "dpfda_certificate"  # of the peer, among a connection's properties: see `tls`
ENVELOPE = 64  # bytes around a message: ticket, deadline, code
MAX_HELLO = 256
PEER = "dpfda_peer"  # the sender of a message that was let in, among the message's properties

Topics = Mapping[tuple[str, str], int]
_LOGIN: Topics = {(LOGIN_CHANNEL, topic): MAX_LOGIN for topic in LOGIN_TOPICS}
SITE_REQUESTS: Topics = {(CHANNEL, ASK): MAX_MESSAGE + ENVELOPE}
SITE_REPLIES: Topics = {**_LOGIN, (CHANNEL, HELLO): MAX_HELLO}
SERVER_REQUESTS: Topics = {**_LOGIN, (CHANNEL, HELLO): MAX_HELLO, (CHANNEL, ANSWER): MAX_MESSAGE + ENVELOPE}
SERVER_REPLIES: Topics = {}  # the server asks nothing that FLARE would wait for
_OPEN_TO_ALL = frozenset({*_LOGIN, (CHANNEL, HELLO)})  # their handlers look at the register themselves
_UNANSWERED = frozenset({ASK, ANSWER})  # a question's answer is a message of its own

_LONGEST_HEADER = 4096
_KEPT = frozenset({
    MessageHeaderKey.MSG_TYPE, MessageHeaderKey.REQ_ID, MessageHeaderKey.REPLY_EXPECTED, MessageHeaderKey.TOPIC,
    MessageHeaderKey.CHANNEL, MessageHeaderKey.ORIGIN, MessageHeaderKey.DESTINATION, MessageHeaderKey.RETURN_CODE,
    MessageHeaderKey.ERROR, MessageHeaderKey.PAYLOAD_ENCODING, MessageHeaderKey.OPTIONAL,
    CellMessageHeaderKeys.CLIENT_NAME, CellMessageHeaderKeys.CLIENT_TYPE, CellMessageHeaderKeys.CLIENT_IP,
    CellMessageHeaderKeys.PROJECT_NAME, CellMessageHeaderKeys.TOKEN, CellMessageHeaderKeys.TOKEN_SIGNATURE,
    CellMessageHeaderKeys.SSID, IdentityChallengeKey.COMMON_NAME, IdentityChallengeKey.NONCE,
})  # fmt: skip
_log = logging.getLogger("dpfda.gate")


@dataclass(frozen=True)
class Peer:
    """The other end of a TLS connection."""

    name: str
    common_name: str
    certificate: str
    address: str


class Gate:
    """One end's rule.

    Parameters
    ----------
    requests, replies : mapping from (channel, topic) to bytes
        What may come in, and how long it may be.
    is_right_peer : callable
        Whether this is a peer that this end talks to at all.
    is_enrolled : callable
        Whether the peer's certificate is enrolled now; asked for everything but log-in and `hello`.
    """

    def __init__(
        self,
        requests: Topics,
        replies: Topics,
        is_right_peer: Callable[[Peer], bool],
        is_enrolled: Callable[[Peer], bool] = lambda peer: True,
    ) -> None:
        self._requests, self._replies = requests, replies
        self._is_right_peer, self._is_enrolled = is_right_peer, is_enrolled
        self._refusals = BoundedLog(_log)

    def admit(self, cell: Any, endpoint: Any, connection: Any, message: Any) -> bool:
        """Whether FLARE may go on with this message; if so, only known headers are left on it."""
        peer = describe_peer(endpoint, connection)
        why = self._object_to(cell, peer, message)
        if why:
            if not _is_goodbye(message.headers):  # FLARE's courtesy; the end of the connection says the same
                self._refusals.write(f"refused: a message from '{escape(peer.name)}' ({why})")
            return False
        message.headers = {name: value for name, value in message.headers.items() if name in _KEPT}
        if message.headers[MessageHeaderKey.TOPIC] in _UNANSWERED:
            message.headers.pop(MessageHeaderKey.REPLY_EXPECTED, None)  # not even FLARE's own error codes go back
        message.set_prop(PEER, peer)
        message.headers[MessageHeaderKey.FROM_CELL] = peer.name
        message.headers[MessageHeaderKey.TO_CELL] = cell.get_fqcn()
        return True

    def _object_to(self, cell: Any, peer: Peer, message: Any) -> str:
        """Why a message is not let in; empty if it is."""
        headers = message.headers
        if not isinstance(headers, dict):
            return "no headers"
        if not self._is_right_peer(peer):
            return f"certificate of '{escape(peer.common_name)}'"
        if headers.get(MessageHeaderKey.ORIGIN) != peer.name:
            return f"claims to come from '{escape(headers.get(MessageHeaderKey.ORIGIN))}'"
        if headers.get(MessageHeaderKey.DESTINATION) != cell.get_fqcn():
            return f"is for '{escape(headers.get(MessageHeaderKey.DESTINATION))}'"
        return self._object_to_headers(headers) or self._object_to_content(cell, peer, headers, message.payload)

    @staticmethod
    def _object_to_headers(headers: Mapping[Any, Any]) -> str:
        if headers.get(MessageHeaderKey.SECURE) or headers.get(MessageHeaderKey.ENCRYPTED):
            return "asks for FLARE's own encryption"
        for name in _KEPT & headers.keys():
            value = headers[name]
            if isinstance(value, str | bytes) and len(value) > _LONGEST_HEADER:
                return f"header {name} is too long"
            if not isinstance(value, str | bool) and value is not None:
                return f"header {name} is a {type(value).__name__}"
        return ""

    def _object_to_content(self, cell: Any, peer: Peer, headers: Mapping[Any, Any], payload: Any) -> str:
        subject = (headers.get(MessageHeaderKey.CHANNEL), headers.get(MessageHeaderKey.TOPIC))
        kind = headers.get(MessageHeaderKey.MSG_TYPE)
        allowed = {MessageType.REQ: self._requests, MessageType.REPLY: self._replies}.get(kind, {})
        most = allowed.get(subject)  # type: ignore[arg-type]
        shown = f"{escape(kind)} {escape(subject[0])}:{escape(subject[1])}"
        if most is None:
            return f"no such thing here: {shown}"
        if kind == MessageType.REPLY and headers.get(MessageHeaderKey.REQ_ID) not in cell.waiters:
            return f"nobody waits for it: {shown}"
        if headers.get(MessageHeaderKey.PAYLOAD_ENCODING) not in (Encoding.BYTES, Encoding.NONE):
            return f"encoding '{escape(headers.get(MessageHeaderKey.PAYLOAD_ENCODING))}': {shown}"
        if payload is not None and len(payload) > most:
            return f"{len(payload)} bytes: {shown}"
        if subject not in _OPEN_TO_ALL and not self._is_enrolled(peer):
            return f"its certificate is not enrolled: {shown}"
        return ""


def _is_goodbye(headers: Any) -> bool:
    return isinstance(headers, dict) and headers.get(MessageHeaderKey.TOPIC) == CellChannelTopic.Bye


def describe_peer(endpoint: Any, connection: Any) -> Peer:
    """The other end, by its certificate; without one it is nobody."""
    properties = connection.get_conn_properties() if connection is not None else {}
    name = getattr(endpoint, "name", "")
    facts = (properties.get(key) for key in (DriverParams.PEER_CN.value, CERTIFICATE, DriverParams.PEER_ADDR.value))
    return Peer(*(each if isinstance(each, str) else "" for each in (name, *facts)))
