"""Open rounds in the server's process: who was asked, who has answered, when a round closes.

A round closes when every site that is connected has answered and the quorum is met, or `grace` seconds after the quorum was
met, or at its deadline. Whoever asked says of every answer as it comes whether it counts; one that does not is none. A site
that comes back while a round is open is asked again; silos answer a repeated question from their records, so that costs
nothing. What comes after the close is dropped.
"""

from __future__ import annotations

import math
import secrets
import struct
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from dpfda.errors import ProtocolError
from dpfda.federation.silo_service import Reply

TICKET_BYTES = 16
LONGEST_ROUND = 7 * 86_400.0  # seconds: that of terms, which a FLARE process never sees
_ASK = struct.Struct(f"!{TICKET_BYTES}sd")
_TICK = 0.25  # seconds between looks at who is connected; answers wake the round at once

ABSENT, UNAVAILABLE, REFUSED, REJECTED = "absent", "unavailable", "not enrolled", "answer rejected"
Counts = Callable[[str, bytes], bool]  # of a site's answer: whether it is one


def count_all(site: str, answer: bytes) -> bool:
    """Every answer counts: for who concludes nothing from their number."""
    return True


@dataclass(frozen=True)
class Closing:
    """When a round closes: `quorum` sites and `grace` seconds more, or `deadline` seconds after it was opened."""

    quorum: int
    grace: float = 5.0
    deadline: float = 120.0

    def __post_init__(self) -> None:
        numbers = (self.grace, self.deadline)
        if isinstance(self.quorum, bool) or not isinstance(self.quorum, int) or self.quorum < 0:
            raise ProtocolError("The quorum of a round must be a whole number.")
        if not all(isinstance(each, int | float) and math.isfinite(each) and each >= 0 for each in numbers):
            raise ProtocolError("The times of a round must be numbers of seconds.")
        if not 0 < self.deadline <= LONGEST_ROUND:
            raise ProtocolError(f"A round must close within {LONGEST_ROUND:.0f} seconds.")


def encode_question(ticket: bytes, closes_in: float, message: bytes) -> bytes:
    """What the server sends to a site."""
    return _ASK.pack(ticket, closes_in) + message


def parse_question(data: bytes) -> tuple[bytes, float, bytes]:
    """Ticket, seconds until the round closes, and the message."""
    if len(data) < _ASK.size:
        raise ProtocolError("The question is too short.")
    ticket, closes_in = _ASK.unpack_from(data)
    if not (math.isfinite(closes_in) and 0 <= closes_in <= LONGEST_ROUND):
        raise ProtocolError("The question's deadline is malformed.")
    return ticket, closes_in, data[_ASK.size :]


def encode_answer(ticket: bytes, reply: Reply) -> bytes:
    """What a site sends back."""
    return ticket + reply.encode()


def parse_answer(data: bytes) -> tuple[bytes, Reply]:
    """Ticket and reply."""
    if len(data) <= TICKET_BYTES:
        raise ProtocolError("The answer is too short.")
    return data[:TICKET_BYTES], Reply.parse(data[TICKET_BYTES:])


@dataclass
class OpenRound:
    """One question to several sites."""

    sites: tuple[str, ...]
    message: bytes
    closing: Closing
    ticket: bytes = field(default_factory=lambda: secrets.token_bytes(TICKET_BYTES))
    opened: float = field(default_factory=time.monotonic)
    arrived: dict[str, Reply] = field(default_factory=dict)
    replies: dict[str, Reply] = field(default_factory=dict)
    rejected: set[str] = field(default_factory=set)
    enough_since: float | None = None

    def arrive(self, site: str, reply: Reply) -> None:
        """A reply that nobody has looked at; the first one of a site stands."""
        if site not in self.replies:
            self.arrived.setdefault(site, reply)

    def take(self, site: str, reply: Reply, *, counts: bool = True) -> None:
        """A reply that was looked at: one that does not count gives nothing, like one that says no."""
        self.arrived.pop(site, None)
        if not counts:
            self.rejected.add(site)
        self.replies[site] = reply if counts else Reply(False)
        if self.enough_since is None and len(self.given()) >= self.closing.quorum:
            self.enough_since = time.monotonic()

    def given(self) -> dict[str, bytes]:
        """Answers so far, in the order of the sites."""
        return {
            site: self.replies[site].payload for site in self.sites if site in self.replies and self.replies[site].given
        }

    def seconds_left(self) -> float:
        """Until the deadline."""
        return self.opened + self.closing.deadline - time.monotonic()

    def is_over(self, connected: Collection[str]) -> bool:
        """Whether the round closes now."""
        if all(site in self.replies for site in self.sites) or self.seconds_left() <= 0:
            return True
        if self.enough_since is None and self.closing.quorum > 0:
            return False
        awaited = [site for site in self.sites if site not in self.replies and site in connected]
        since = self.opened if self.enough_since is None else self.enough_since
        return not awaited or time.monotonic() - since >= self.closing.grace


Send = Callable[[str, bytes], bool]


class RoundTable:
    """All rounds that are open at a time, of all studies.

    `send(site, question)` hands a question to the network and returns at once, with False if the site has too many of them
    unread and must be asked a little later; `connected()` tells which sites are enrolled
    and reachable now, as {site: something that changes when the site connects anew}.
    """

    def __init__(self, send: Send, connected: Callable[[], dict[str, object]]) -> None:
        self._send, self._connected = send, connected
        self._news = threading.Condition()
        self._open: dict[bytes, OpenRound] = {}

    def ask(
        self, sites: Sequence[str], message: bytes, closing: Closing, gone: Callable[[], bool], counts: Counts
    ) -> OpenRound:
        """Ask and wait until the round closes, or until whoever asked is `gone`; `counts` is asked of every answer."""
        round_ = OpenRound(tuple(sites), message, closing)
        with self._news:
            self._open[round_.ticket] = round_
        asked: dict[str, object] = {}
        try:
            while True:
                connected = self._connected()
                self._ask_new_ones(round_, connected, asked)
                self._look_at_arrived(round_, counts)
                with self._news:
                    if not round_.arrived:
                        if round_.is_over(connected):
                            return round_
                        self._news.wait(min(_TICK, max(0.001, round_.seconds_left())))
                if gone():
                    return round_
        finally:
            with self._news:
                del self._open[round_.ticket]

    def deliver(self, site: str, answer: bytes) -> bool:
        """An answer from a site; whether it belongs to an open round that asked this site."""
        ticket, reply = parse_answer(answer)
        with self._news:
            round_ = self._open.get(ticket)
            if round_ is None or site not in round_.sites:
                return False
            round_.arrive(site, reply)
            self._news.notify_all()
            return True

    def wake(self) -> None:
        """Somebody came or went: look again."""
        with self._news:
            self._news.notify_all()

    def _look_at_arrived(self, round_: OpenRound, counts: Counts) -> None:
        """Without the lock: other rounds go on while an answer is looked at."""
        with self._news:
            arrived = dict(round_.arrived)
        for site, reply in arrived.items():
            usable = not reply.given or counts(site, reply.payload)
            with self._news:
                round_.take(site, reply, counts=usable)

    def _ask_new_ones(self, round_: OpenRound, connected: dict[str, object], asked: dict[str, object]) -> None:
        question = b""
        for site in round_.sites:
            where = connected.get(site)
            if where is None or site in round_.replies or asked.get(site) == where:
                continue
            question = question or encode_question(round_.ticket, max(0.0, round_.seconds_left()), round_.message)
            if self._send(site, question):
                asked[site] = where
