"""`python -m dpfda.federation.flare.client`: a site's FLARE client. It holds no data: questions go on to the silo's process.

FLARE connects, logs in and keeps its heart-beat. Instead of FLARE's administration agent, a `SiteLink` answers the one kind
of request that is let in, and says `hello` every few seconds, so that the site knows when it last heard from its server.
"""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import sys
import threading
import time
from typing import Any

from dpfda.federation.flare.without_grpc import stand_in_for_grpc

if __name__ == "__main__":
    stand_in_for_grpc()

from nvflare.apis.fl_exception import FLCommunicationError
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey, ReturnCode
from nvflare.fuel.f3.message import Message
from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.fed.app.client import client_train
from nvflare.private.fed.client.communicator import Communicator

from dpfda.errors import DpfdaError, ProtocolError, TransportError
from dpfda.federation.contact import Contact, ContactState
from dpfda.federation.flare import guard, pinned
from dpfda.federation.flare.gate import (
    ANSWER,
    ASK,
    CHANNEL,
    HELLO,
    SERVER,
    SITE_REPLIES,
    SITE_REQUESTS,
    Gate,
    Peer,
)  # fmt: skip
from dpfda.federation.flare.launch import FAILED_EXIT, REFUSED_EXIT, end_with_parent
from dpfda.federation.flare.settings import ClientSettings, decode_settings
from dpfda.federation.flare.templates import HEART_BEAT, make_client_files
from dpfda.federation.folder import check_tree, write_tree
from dpfda.federation.held import HeldBack
from dpfda.federation.hello import NOT_ENROLLED, REFUSAL, SESSION_BYTES, encode_hello, parse_welcome
from dpfda.federation.quiet import BoundedLog
from dpfda.federation.rounds import encode_answer, parse_question
from dpfda.federation.signing import REHEARSAL, peek_kind
from dpfda.federation.silo_service import Reply, SiloLink

HELLO_EVERY = 5.0
_HELLO_TIMEOUT = 4.0
_SEND_AGAIN = 0.5
_MOST_AT_A_TIME = 16
_log = logging.getLogger("dpfda.client")


class SiteLink:
    """The site's end of the conversation, on FLARE's cell."""

    def __init__(self, settings: ClientSettings, cell: Any) -> None:
        self._settings, self._cell = settings, cell
        self._silo, self._rehearsal = SiloLink(settings.silo), SiloLink(settings.rehearsal)
        self._held = HeldBack()
        self._odd = BoundedLog(_log)
        self._session = secrets.token_bytes(SESSION_BYTES)
        self._slots = threading.BoundedSemaphore(_MOST_AT_A_TIME)
        self._in_work: set[bytes] = set()
        self._lock = threading.Lock()
        self._hello_now = threading.Event()
        self._last: Contact | None = None

    def start(self) -> None:
        """Take questions, say hello."""
        self._cell.register_request_cb(channel=CHANNEL, topic=ASK, cb=self._take_question)
        self._cell.set_cell_connected_cb(lambda *_: self._hello_now.set())
        threading.Thread(target=self._say_hello, name="hello", daemon=True).start()

    # ------------------------------------------------------------ questions

    def _take_question(self, message: Any) -> None:
        """Called by FLARE in a thread of its own; returns nothing, the answer is a message of its own."""
        try:
            ticket, closes_in, question = parse_question(bytes(message.payload or b""))
        except ProtocolError as error:
            self._odd.write(f"refused: {error}")
            return
        closes = time.monotonic() + closes_in
        with self._lock:
            if ticket in self._in_work:  # asked again after a reconnection: the answer is on its way
                return
            self._in_work.add(ticket)
        try:
            reply = self._ask_silo(question, closes)
            if reply.given:
                self._send(ticket, reply, closes)
            else:
                self._held.call_after(closes - time.monotonic(), lambda: self._send(ticket, Reply(False), closes + 1.0))
        finally:
            with self._lock:
                self._in_work.discard(ticket)

    def _ask_silo(self, question: bytes, closes: float) -> Reply:
        if not self._slots.acquire(blocking=False):
            self._odd.write(f"refused: more than {_MOST_AT_A_TIME} questions at a time")
            return Reply(False)
        try:
            if _is_rehearsal(question):
                return self._rehearse(question)
            return self._ask_until(question, closes)
        finally:
            self._slots.release()

    def _rehearse(self, question: bytes) -> Reply:
        """A rehearsal goes to a process that has no data; if there is none, there is no answer."""
        try:
            return self._rehearsal.ask(question)
        except TransportError as error:
            self._odd.write(f"no rehearsal: {error}")
            return Reply(False)

    def _ask_until(self, question: bytes, closes: float) -> Reply:
        """Ask a silo that is being started anew again, while the round is open; it answers from its records."""
        told = False
        while True:
            try:
                return self._silo.ask(question)
            except TransportError as error:
                if not told:
                    self._odd.write(f"the silo gave no answer: {error}")
                told = True
            if time.monotonic() + _SEND_AGAIN > closes:
                return Reply(False)
            time.sleep(_SEND_AGAIN)

    def _send(self, ticket: bytes, reply: Reply, until: float) -> None:
        """Send an answer, again and again if the connection is down, until the round is over."""
        while True:
            errors = self._cell.fire_and_forget(
                CHANNEL, ANSWER, [SERVER], Message({}, encode_answer(ticket, reply)), optional=True
            )
            if not errors.get(SERVER) or time.monotonic() + _SEND_AGAIN > until:
                return
            time.sleep(_SEND_AGAIN)

    # ------------------------------------------------------------ hello

    def _say_hello(self) -> None:
        while True:
            self._hello_now.clear()
            state, round_trip, offset = self._hello()
            now = time.time()
            last = now if state == "connected" else (self._last.last_contact if self._last else None)
            self._last = Contact(state, now, os.getpid(), last, round_trip, offset)
            _write_contact(self._last, self._settings)
            if state == "refused":
                leave("the server no longer knows this site's certificate")
            self._hello_now.wait(HELLO_EVERY)

    def _hello(self) -> tuple[ContactState, float | None, float | None]:
        began, sent = time.monotonic(), time.time()
        payload = encode_hello(self._session, sent)
        reply = self._cell.send_request(
            CHANNEL, HELLO, SERVER, Message({}, payload), timeout=_HELLO_TIMEOUT, optional=True
        )
        round_trip = time.monotonic() - began
        if reply.get_header(MessageHeaderKey.RETURN_CODE) != ReturnCode.OK:
            return "away", None, None
        content = bytes(reply.payload or b"")
        if content == REFUSAL:
            return "refused", None, None
        try:
            return "connected", round_trip, parse_welcome(content) - (sent + round_trip / 2)
        except ProtocolError as error:
            self._odd.write(f"a welcome was dropped: {error}")
            return "away", None, None


def _is_rehearsal(question: bytes) -> bool:
    try:
        return peek_kind(question) == REHEARSAL
    except ProtocolError:
        return False


def leave(why: str, code: int = REFUSED_EXIT) -> None:
    """End the process so that the supervisor starts it anew, with the newest certificate."""
    _log.warning("%s; this process ends and is started again", why)
    logging.shutdown()
    os._exit(code)


def _write_contact(contact: Contact, settings: ClientSettings) -> None:
    try:
        contact.write(settings.contact)
    except OSError as error:  # a full disk: the conversation goes on
        _log.warning("the last contact could not be written (%s)", type(error).__name__)


def make_gate(settings: ClientSettings) -> Gate:
    """The server and nobody else, by the identity that the site was told at enrolment."""

    def is_server(peer: Peer) -> bool:
        return peer.name == SERVER and peer.common_name == settings.identity

    return Gate(SITE_REQUESTS, SITE_REPLIES, is_server)


def start_link(settings: ClientSettings, federated_client: Any, engine: Any) -> guard.NoAgent:
    """In place of FLARE's administration agent: called when the client has logged in."""
    cell = federated_client.cell.core_cell
    agent = guard.NoAgent()
    guard.keep_requests(cell, pinned.CLIENT_REQUESTS, frozenset())
    engine.set_agent(agent)
    SiteLink(settings, cell).start()
    federated_client.set_client_engine(engine)
    _log.info("logged in at %s:%d as %s", settings.host, settings.port, settings.site)
    return agent


def watch_login(settings: ClientSettings, plain: Any) -> Any:
    """`Communicator.client_registration`, with a clear end when the server refuses or does not answer."""

    def client_registration(*arguments: Any, **options: Any) -> Any:
        try:
            return plain(*arguments, **options)
        except FLCommunicationError as error:
            refused = is_refusal(error)
            _write_contact(Contact("refused" if refused else "away", time.time(), os.getpid()), settings)
            if refused:
                leave("the server does not know this site's certificate")
            leave("the server did not complete the log-in", FAILED_EXIT)

    return client_registration


def is_refusal(error: BaseException | None) -> bool:
    """Whether a log-in failed because the certificate is not enrolled; FLARE wraps its errors."""
    while error is not None:
        if NOT_ENROLLED in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def watch_heart_beat(plain: Any) -> Any:
    """FLARE tries a refused heart-beat again for ever; here the process ends instead."""

    def send_heartbeat(communicator: Any, *arguments: Any, **options: Any) -> Any:
        cell, send = communicator.cell, communicator.cell.send_request

        def send_and_look(*call: Any, **named: Any) -> Any:
            reply = send(*call, **named)
            if reply is not None and reply.get_header(MessageHeaderKey.RETURN_CODE) == ReturnCode.UNAUTHENTICATED:
                leave("the server refused this site's heart-beat")
            return reply

        cell.send_request = send_and_look
        return plain(communicator, *arguments, **options)

    return send_heartbeat


def main(arguments: list[str]) -> int:
    """Write the files, guard, then let FLARE run."""
    settings = decode_settings(ClientSettings, arguments[0])
    end_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    guard.check_environment()
    manifest = write_tree(settings.run, make_client_files(settings))
    guard.install_guard(settings.run, make_gate(settings))
    guard.replace(client_train, "fobs_initialize", guard.leave_out_objects)
    guard.replace(Communicator, "client_registration", lambda plain: watch_login(settings, plain))
    guard.replace(Communicator, "send_heartbeat", watch_heart_beat)
    start = guard.end_on_refusal(lambda _, client, engine: start_link(settings, client, engine))
    guard.replace(client_train, "create_admin_agent", lambda _: start)
    check_tree(settings.run, manifest)
    Contact("starting", time.time(), os.getpid()).write(settings.contact)
    options = [f"heart_beat_interval={HEART_BEAT}", f"uid={settings.site}", "org=site", "config_folder=config",
               "secure_train=true"]  # fmt: skip
    flare = argparse.Namespace(workspace=str(settings.run), fed_client="fed_client.json", set=options, local_rank=0)
    code = MainProcessMonitor.run(main_func=client_train.main, run_dir=str(settings.run), args=flare)
    return int(code or 0)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except DpfdaError as error:
        sys.exit(f"dpfda: {error}")
