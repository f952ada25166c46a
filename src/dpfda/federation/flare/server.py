"""`python -m dpfda.federation.flare.server`: the coordinator's FLARE server: a port for sites, a Unix socket for studies.

It knows which certificates are enrolled, which sites are connected, and which rounds are open; it knows nothing of what the
bytes mean, and a study that runs elsewhere signs them.
"""

from __future__ import annotations

import argparse
import logging
import socket
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from dpfda.federation.flare.without_grpc import stand_in_for_grpc

if __name__ == "__main__":
    stand_in_for_grpc()

from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.fuel.f3.cellnet.core_cell import make_reply
from nvflare.fuel.f3.cellnet.defs import IdentityChallengeKey, ReturnCode
from nvflare.fuel.f3.message import Message
from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.defs import CellMessageHeaderKeys, ClientType
from nvflare.private.fed.app.deployer import server_deployer
from nvflare.private.fed.app.server import server_train
from nvflare.private.fed.server.client_manager import ClientManager
from nvflare.private.fed.server.fed_server import FederatedServer

from dpfda.errors import DpfdaError, InvalidInput, ProtocolError
from dpfda.federation.flare import guard, pinned
from dpfda.federation.flare.gate import (
    ANSWER,
    ASK,
    CHANNEL,
    HELLO,
    PEER,
    SERVER_REPLIES,
    SERVER_REQUESTS,
    Gate,
    Peer,
)  # fmt: skip
from dpfda.federation.flare.launch import end_with_parent
from dpfda.federation.flare.plain import LOGIN_CHANNEL
from dpfda.federation.flare.settings import ServerSettings, decode_settings
from dpfda.federation.flare.templates import make_server_files
from dpfda.federation.folder import check_tree, write_tree
from dpfda.federation.frames import FrameServer
from dpfda.federation.hello import NOT_ENROLLED, REFUSAL, encode_welcome, parse_hello
from dpfda.federation.keys import certificate_digest, read_certificate
from dpfda.federation.lock import Lock
from dpfda.federation.quiet import BoundedLog
from dpfda.federation.register import RegisterReader
from dpfda.federation.rounds import RoundTable
from dpfda.federation.server_link import LinkService, SiteContact

_MOST_UNSENT = 4  # questions that one site may keep waiting in the network
_PATIENCE = 120.0  # seconds after which a connection that takes nothing is closed
_log = logging.getLogger("dpfda.server")


@dataclass(frozen=True)
class Visit:
    """A site's last hello: from which process and connection it came."""

    certificate: str
    place: tuple[bytes, str]
    at: float
    clock_offset: float


class SiteDesk:
    """Everything the server knows of its sites, and the only way to reach them."""

    def __init__(self, cell: Any, register: RegisterReader) -> None:
        self._cell, self._register = cell, register
        self._visits: dict[str, Visit] = {}
        self._unsent: defaultdict[str, list[float]] = defaultdict(list)  # when each was handed over, by site
        self._lock = threading.Lock()
        self._odd = BoundedLog(_log)
        self.table = RoundTable(self._send, self.find_connected)

    def start(self) -> None:
        """Take hellos and answers."""
        self._cell.register_request_cb(channel=CHANNEL, topic=HELLO, cb=self._take_hello)
        self._cell.register_request_cb(channel=CHANNEL, topic=ANSWER, cb=self._take_answer)

    def find_connected(self) -> dict[str, object]:
        """Sites that can be asked now; the value changes whenever a site connects anew."""
        return {name: visit.place for name, visit in self._visits.copy().items() if self._is_here(name, visit)}

    def look(self) -> dict[str, SiteContact]:
        """All enrolled sites, connected or not."""
        found = {}
        for name in self._register.names():
            visit = self._visits.get(name)
            here = visit is not None and self._is_here(name, visit)
            known = (None, None, None) if visit is None else (visit.at, visit.clock_offset, visit.certificate)
            found[name] = SiteContact(True, here, *known)
        return found

    def _is_here(self, name: str, visit: Visit) -> bool:
        return name in self._cell.agents and self._register.is_enrolled(name, visit.certificate)

    def _take_hello(self, message: Any) -> Any:
        peer: Peer = message.get_prop(PEER)
        if not self._register.is_enrolled(peer.name, peer.certificate):
            self._odd.write(f"{peer.name} is not enrolled with the certificate {peer.certificate[:16]}")
            return make_reply(ReturnCode.OK, "", REFUSAL)
        try:
            session, clock = parse_hello(bytes(message.payload or b""))
        except ProtocolError as error:
            self._odd.write(f"a hello of {peer.name} was dropped: {error}")
            return None
        now, before = time.time(), self._visits.get(peer.name)
        visit = Visit(peer.certificate, (session, peer.address), now, clock - now)
        self._visits[peer.name] = visit
        if before is None or before.place != visit.place:
            _log.info("%s is here", peer.name)
            self.table.wake()
        return make_reply(ReturnCode.OK, "", encode_welcome(now))

    def _take_answer(self, message: Any) -> None:
        peer: Peer = message.get_prop(PEER)
        try:
            if not self.table.deliver(peer.name, bytes(message.payload or b"")):
                self._odd.write(f"an answer of {peer.name} came after its round was closed")
        except ProtocolError as error:
            self._odd.write(f"an answer of {peer.name} was dropped: {error}")

    def _send(self, site: str, question: bytes) -> bool:
        """Hand a question to the network, without waiting for a site that does not read: it keeps no other one waiting."""
        now = time.monotonic()
        with self._lock:
            unsent = self._unsent[site]
            stuck = bool(unsent) and now - unsent[0] > _PATIENCE
            if len(unsent) >= _MOST_UNSENT and not stuck:
                return False
            if not stuck:
                unsent.append(now)
        if stuck:
            self._drop_connections(site)
            return False
        threading.Thread(target=self._send_now, args=(site, question, now), daemon=True).start()
        return True

    def _drop_connections(self, site: str) -> None:
        """FLARE's own limit does not end a TLS connection whose peer takes nothing; the site may connect anew."""
        self._odd.write(f"{site} takes nothing; its connection is closed")
        for connection in self._cell.communicator.conn_manager.get_connections(site) or ():
            connection.conn.close()

    def _send_now(self, site: str, question: bytes, began: float) -> None:
        try:
            errors = self._cell.fire_and_forget(CHANNEL, ASK, [site], Message({}, question), optional=True)
            if errors.get(site):
                _log.info("%s could not be asked (%s)", site, errors[site])
        finally:
            with self._lock:
                self._unsent[site].remove(began)


class NoJobs(FLComponent):  # type: ignore[misc]
    """Stands where FLARE's job runner would: there are no jobs."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    def run(self, fl_ctx: Any) -> None:
        """Nothing to run."""

    def get_client_outcome_jobs(self) -> set[str]:
        """None."""
        return set()


class Enrolment:
    """Only enrolled certificates log in and stay: the register is looked at each time."""

    def __init__(self, register: RegisterReader) -> None:
        self._register, self._refusals = register, BoundedLog(_log)

    def guard_login(self, plain: Any) -> Any:
        """`ClientManager.authenticated_client`, for enrolled sites."""

        def authenticated_client(manager: Any, request: Any, fl_ctx: Any, client_type: Any) -> Any:
            peer: Peer = request.get_prop(PEER)
            named = request.get_header(CellMessageHeaderKeys.CLIENT_NAME) == peer.name
            right = named and client_type == ClientType.REGULAR and _digest_shown(request) == peer.certificate
            if not right or not self._register.is_enrolled(peer.name, peer.certificate):
                self._refusals.write(f"log-in refused: {peer.name} with the certificate {peer.certificate[:16]}")
                fl_ctx.set_prop(FLContextKey.UNAUTHENTICATED, NOT_ENROLLED, sticky=False)
                return None
            return plain(manager, request, fl_ctx, client_type)

        return authenticated_client

    def guard_heart_beat(self, plain: Any) -> Any:
        """`FederatedServer.client_heartbeat`, for enrolled sites."""

        def client_heartbeat(server: Any, request: Any) -> Any:
            peer: Peer = request.get_prop(PEER)
            named = request.get_header(CellMessageHeaderKeys.CLIENT_NAME) == peer.name
            if not named or not self._register.is_enrolled(peer.name, peer.certificate):
                self._refusals.write(f"heart-beat refused: {peer.name} with the certificate {peer.certificate[:16]}")
                server.client_manager.remove_client(request.get_header(CellMessageHeaderKeys.TOKEN))
                return make_reply(ReturnCode.UNAUTHENTICATED, NOT_ENROLLED, None)
            return plain(server, request)

        return client_heartbeat


def _digest_shown(request: Any) -> str:
    """The digest of the certificate inside a log-in message."""
    try:
        return certificate_digest(read_certificate(request.payload[IdentityChallengeKey.CERT]))
    except (KeyError, TypeError, InvalidInput):
        return ""


def make_gate(register: RegisterReader) -> Gate:
    """Sites by the name in their certificates; enrolled ones may do more than log in."""

    def is_site(peer: Peer) -> bool:
        return bool(peer.name) and peer.name == peer.common_name and "." not in peer.name and bool(peer.certificate)

    return Gate(
        SERVER_REQUESTS, SERVER_REPLIES, is_site, lambda peer: register.is_enrolled(peer.name, peer.certificate)
    )


def start_desk(settings: ServerSettings, register: RegisterReader, services: Any) -> guard.NoAgent:
    """In place of FLARE's administration server: called when the server listens."""
    cell = services.cell.core_cell
    kept = frozenset(f"{LOGIN_CHANNEL}:{topic}" for topic in pinned.SERVER_LOGIN)
    guard.keep_requests(cell, pinned.SERVER_REQUESTS, kept)
    desk = SiteDesk(cell, register)
    desk.start()
    FrameServer(settings.socket, LinkService(desk.table.ask, desk.look).serve, "study").start()
    _log.info("listening at port %d", settings.port)
    return guard.NoAgent()


def deploy_without_admin(plain: Any) -> Any:
    """`FederatedServer.deploy` without a listener for administrators."""

    def deploy(server: Any, args: Any, grpc_args: Any = None, secure_train: bool = False, **_: Any) -> Any:
        return plain(server, args, grpc_args, secure_train, enable_admin_listener=False)

    return deploy


def main(arguments: list[str]) -> int:
    """One server per socket: take the lock, then serve."""
    settings = decode_settings(ServerSettings, arguments[0])
    lock = Lock(settings.lock)
    end_with_parent(lock.release)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    guard.check_environment()
    with lock:
        settings.socket.unlink(missing_ok=True)
        _check_port(settings)
        return _serve(settings)


def _serve(settings: ServerSettings) -> int:
    """Write the files, guard, then let FLARE run."""
    register = RegisterReader(settings.register)
    enrolment = Enrolment(register)
    manifest = write_tree(settings.run, make_server_files(settings))
    guard.install_guard(settings.run, make_gate(register))
    guard.replace(server_train, "fobs_initialize", guard.leave_out_objects)
    guard.replace(ClientManager, "authenticated_client", enrolment.guard_login)
    guard.replace(FederatedServer, "client_heartbeat", enrolment.guard_heart_beat)
    guard.replace(FederatedServer, "deploy", deploy_without_admin)
    guard.replace(server_deployer, "JobRunner", lambda _: NoJobs)
    start = guard.end_on_refusal(lambda services, **_: start_desk(settings, register, services))
    guard.replace(server_train, "create_admin_server", lambda _: start)
    check_tree(settings.run, manifest)
    options = ["org=coordinator", "config_folder=config", "secure_train=true"]
    flare = argparse.Namespace(workspace=str(settings.run), fed_server="fed_server.json", set=options)
    code = MainProcessMonitor.run(main_func=server_train.main, run_dir=str(settings.run), args=flare)
    return int(code or 0)


def _check_port(settings: ServerSettings) -> None:
    """FLARE would try a port in use again and again, and say nothing."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.listen, settings.port))
        except OSError as error:
            place = f"{settings.listen}:{settings.port}"
            raise InvalidInput(
                f"The server cannot listen at {place} ({error.strerror}); choose another port."
            ) from None


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except DpfdaError as error:
        sys.exit(f"dpfda: {error}")
