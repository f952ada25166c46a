"""Our bytes inside FLARE's Shareable: one task name per kind of message, one key, and a code in the answer."""

from __future__ import annotations

from typing import Any

from nvflare.apis.shareable import Shareable

from dpfda.federation.exchange import CODES, MAX_MESSAGE, OK, UNAVAILABLE, Answer

INVITE, ASK = "dpfda_invite", "dpfda_ask"
_MESSAGE, _CODE = "dpfda_message", "dpfda_code"


def question(message: bytes) -> Any:
    """To the sites."""
    shareable = Shareable()
    shareable[_MESSAGE] = message
    return shareable


def question_bytes(shareable: Any) -> Any:
    """What arrived at a site; anything but bytes is refused there."""
    return shareable.get(_MESSAGE)


def answer(given: Answer) -> Any:
    """To the coordinator."""
    shareable = Shareable()
    shareable[_CODE], shareable[_MESSAGE] = given.code, given.payload
    return shareable


def read_answer(shareable: Any) -> Answer:
    """What arrived at the coordinator; FLARE's own error replies hold no code."""
    code, payload = shareable.get(_CODE), shareable.get(_MESSAGE)
    if code not in CODES or not isinstance(payload, bytes) or len(payload) > MAX_MESSAGE:
        return Answer(UNAVAILABLE)
    return Answer(code, payload if code == OK else b"")
