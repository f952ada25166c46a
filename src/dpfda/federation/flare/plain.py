"""FLARE's log-in messages as plain JSON: texts and bytes by name, from a closed list, and nothing else.

FLARE encodes objects ("FOBS"), and decodes them before any handler has seen the message. Here both directions are replaced:
what FLARE says at log-in is a handful of texts and byte strings, so they are sent as JSON in raw bytes; a message in any
other encoding is refused before it is decoded, and an object in any other message is refused before it is sent.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.fuel.f3.cellnet.defs import Encoding, IdentityChallengeKey, MessageHeaderKey
from nvflare.fuel.f3.message import Message
from nvflare.private.defs import CellChannel, CellChannelTopic, CellMessageHeaderKeys

from dpfda.errors import ProtocolError

MAX_LOGIN = 32_768
LOGIN_CHANNEL = CellChannel.SERVER_MAIN
LOGIN_TOPICS = frozenset({
    CellChannelTopic.Challenge, CellChannelTopic.Register, CellChannelTopic.Quit, CellChannelTopic.HEART_BEAT,
})  # fmt: skip
_SHAREABLE, _DICT = "shareable", "dict"
_NAMES = frozenset({
    IdentityChallengeKey.COMMON_NAME, IdentityChallengeKey.NONCE, IdentityChallengeKey.CERT,
    IdentityChallengeKey.SIGNATURE, CellMessageHeaderKeys.TOKEN, CellMessageHeaderKeys.TOKEN_SIGNATURE,
    CellMessageHeaderKeys.SSID, CellMessageHeaderKeys.FEDERATION_PROTOCOL_VERSION,
    CellMessageHeaderKeys.NVFLARE_VERSION,
})  # fmt: skip


def is_login(message: Message) -> bool:
    """Whether this belongs to FLARE's log-in or heart-beat."""
    channel, topic = message.get_header(MessageHeaderKey.CHANNEL), message.get_header(MessageHeaderKey.TOPIC)
    return channel == LOGIN_CHANNEL and topic in LOGIN_TOPICS


def encode_payload(
    message: Message, encoding_key: str = MessageHeaderKey.PAYLOAD_ENCODING, fobs_ctx: Any = None
) -> int:
    """Encode a message on its way out, in FLARE's place: bytes as they are, log-in as JSON, nothing else."""
    payload = message.payload
    if not message.get_header(encoding_key):
        if payload is None:
            message.set_header(encoding_key, Encoding.NONE)
        else:
            if not isinstance(payload, bytes | bytearray | memoryview):
                payload = message.payload = _encode_fields(message, payload)
            message.set_header(encoding_key, Encoding.BYTES)
    size = 0 if payload is None else len(payload)
    message.set_header(MessageHeaderKey.PAYLOAD_LEN, size)
    return size


def decode_payload(
    message: Message, encoding_key: str = MessageHeaderKey.PAYLOAD_ENCODING, fobs_ctx: Any = None
) -> None:
    """Decode a message that came in, in FLARE's place."""
    encoding = message.get_header(encoding_key)
    if encoding == Encoding.NONE:
        message.payload = None
    elif encoding != Encoding.BYTES:
        raise ProtocolError(f"A message in the encoding {str(encoding)[:20]!r} is not decoded.")
    elif is_login(message):
        message.payload = _decode_fields(bytes(message.payload or b""))
    message.set_header(MessageHeaderKey.PAYLOAD_LEN, len(message.payload or b""))
    message.remove_header(encoding_key)


def _encode_fields(message: Message, payload: Any) -> bytes:
    if not is_login(message) or not isinstance(payload, dict):
        raise ProtocolError(f"A {type(payload).__name__} is not sent.")
    kind = _SHAREABLE if isinstance(payload, Shareable) else _DICT
    fields = {name: _wrap(value) for name, value in payload.items() if name in _NAMES}
    return json.dumps({"kind": kind, "fields": fields}).encode()


def _decode_fields(data: bytes) -> Any:
    """A Shareable or a dict of texts and bytes with names of the list."""
    if len(data) > MAX_LOGIN:
        raise ProtocolError("The log-in message is too long.")
    try:
        outer = json.loads(data)
        kind, fields = outer["kind"], {str(name): _unwrap(value) for name, value in outer["fields"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ProtocolError("The log-in message cannot be read.") from None
    if kind not in (_SHAREABLE, _DICT) or not fields.keys() <= _NAMES:
        raise ProtocolError("The log-in message holds something else.")
    if kind == _DICT:
        return fields
    shareable = Shareable()
    shareable.update(fields)
    shareable.set_peer_context(FLContext())  # FLARE asks for one; nothing in it is used
    return shareable


def _wrap(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return value if isinstance(value, str) else str(value)


def _unwrap(value: Any) -> str | bytes:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and set(value) == {"base64"} and isinstance(value["base64"], str):
        return base64.b64decode(value["base64"], validate=True)
    raise ValueError("neither text nor bytes")
