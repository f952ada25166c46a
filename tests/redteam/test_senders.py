"""Sixth review, R6-4 and R6-9: members who do not read keep nobody else waiting; a site outlives an odd welcome.

The desk, its rounds and FLARE's TLS connections are real; only addressing by FLARE's cell is not.
"""

from __future__ import annotations

import datetime
import math
import socket
import ssl
import struct
import threading
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("nvflare")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from nvflare.fuel.f3.cellnet.defs import ReturnCode
from nvflare.fuel.f3.drivers.socket_conn import SocketConnection

from dpfda.federation.flare import server
from dpfda.federation.flare.client import SiteLink
from dpfda.federation.flare.server import SiteDesk, Visit
from dpfda.federation.rounds import Closing, count_all, encode_answer, parse_question
from dpfda.federation.silo_service import Reply

HOSTILE, HONEST = [f"h{number}" for number in range(8)], ["a", "b"]
LARGE = b"q" * 4_000_000


@pytest.fixture(scope="module")
def contexts(tmp_path_factory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS of a server and of a client."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = builder.serial_number(1).not_valid_before(now - day).not_valid_after(now + day).sign(key, hashes.SHA256())
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    serving, calling = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    serving.load_cert_chain(path)
    calling.check_hostname, calling.verify_mode = False, ssl.CERT_NONE
    return serving, calling


def connect_without_reading(contexts) -> tuple[SocketConnection, ssl.SSLSocket]:
    """FLARE's side of a connection, and that of a member who will not read."""
    serving, calling = contexts
    with socket.create_server(("127.0.0.1", 0)) as listener:
        member = socket.socket()
        member.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
        member.connect(listener.getsockname())
        accepted, _ = listener.accept()
    shaken: list[ssl.SSLSocket] = []
    thread = threading.Thread(target=lambda: shaken.append(calling.wrap_socket(member)))
    thread.start()
    own = SocketConnection(serving.wrap_socket(accepted, server_side=True), SimpleNamespace(params={}), secure=True)
    thread.join()
    return own, shaken[0]


class Cell:
    """Sends to the members' connections; honest sites answer at once."""

    def __init__(self, connections: dict[str, SocketConnection]) -> None:
        self.connections, self.agents = connections, {*HOSTILE, *HONEST}
        self.communicator = SimpleNamespace(conn_manager=self)
        self.desk: SiteDesk | None = None

    def get_connections(self, name: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(conn=self.connections[name])]

    def fire_and_forget(self, channel, topic, sites, message, optional) -> dict[str, str]:
        (site,) = sites
        if site in self.connections:
            self.connections[site].send_frame(bytes(message.payload))
        else:
            ticket = parse_question(bytes(message.payload))[0]
            self.desk.table.deliver(site, encode_answer(ticket, Reply(True, b"release")))
        return {}


@pytest.fixture
def desk(contexts):
    pairs = {name: connect_without_reading(contexts) for name in HOSTILE}
    cell = Cell({name: own for name, (own, _) in pairs.items()})
    cell.desk = desk = SiteDesk(cell, SimpleNamespace(is_enrolled=lambda *_: True, names=lambda: [*HOSTILE, *HONEST]))
    for name in (*HOSTILE, *HONEST):
        desk._visits[name] = Visit("c", (b"s", name), time.time(), 0.0)
    yield desk
    for own, member in pairs.values():
        own.close()
        member.close()


def ask(desk: SiteDesk, sites: list[str], message: bytes = LARGE, seconds: float = 2.0) -> set[str]:
    return set(desk.table.ask(sites, message, Closing(len(HONEST), 0.0, seconds), lambda: False, count_all).given())


def test_members_who_do_not_read_keep_nobody_else_waiting(desk, monkeypatch) -> None:
    """Eight of them once filled the threads that send to all: no site got a question any more."""
    for _ in range(6):
        assert ask(desk, [*HOSTILE, *HONEST]) == set(HONEST)
    assert all(len(desk._unsent[name]) == server._MOST_UNSENT for name in HOSTILE)
    monkeypatch.setattr(server, "_PATIENCE", 0.1)
    deadline, connections = time.monotonic() + 120, desk._cell.connections.values()
    while not all(own.closing for own in connections) and time.monotonic() < deadline:
        assert ask(desk, [*HOSTILE, *HONEST]) == set(HONEST)
        time.sleep(0.05)
    assert all(own.closing for own in connections)
    while any(desk._unsent[name] for name in HOSTILE) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(desk._unsent[name] for name in HOSTILE)


def test_a_welcome_that_cannot_be_read_ends_nothing(tmp_path) -> None:
    """The thread that says hello once ended with it, and the site seemed to be away from then on."""
    welcomes = iter([struct.pack("!d", math.nan), struct.pack("!d", time.time())])
    reply = lambda *_, **__: SimpleNamespace(payload=next(welcomes), get_header=lambda _: ReturnCode.OK)  # noqa: E731
    cell = SimpleNamespace(send_request=reply)
    link = SiteLink(SimpleNamespace(silo=tmp_path / "s", rehearsal=tmp_path / "r", contact=tmp_path / "c"), cell)
    assert [link._hello()[0] for _ in range(2)] == ["away", "connected"]
