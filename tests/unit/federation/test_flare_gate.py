"""What the gate lets in, the plain encoding, the pinned version, and that each change to FLARE is checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("nvflare")

from nvflare.apis.fl_exception import FLCommunicationError
from nvflare.apis.shareable import Shareable
from nvflare.fuel.f3.cellnet.defs import Encoding, MessageHeaderKey, MessageType, ReturnCode
from nvflare.fuel.f3.drivers.driver_params import DriverParams
from nvflare.fuel.f3.message import Message
from nvflare.fuel.utils import fobs

import dpfda
from dpfda.errors import InvalidInput, ProtocolError
from dpfda.federation.contact import Contact
from dpfda.federation.flare import pinned, plain
from dpfda.federation.flare.gate import (
    CERTIFICATE,
    PEER,
    SERVER_REPLIES,
    SERVER_REQUESTS,
    SITE_REPLIES,
    SITE_REQUESTS,
    Gate,
)  # fmt: skip
from dpfda.federation.flare.launch import make_environment
from dpfda.federation.frames import MAX_MESSAGE

ROOT = str(Path(dpfda.__file__).parents[1])


def arrive(gate, me, sender, *, common=None, certificate="c" * 64, payload=b"x", waiting=("r1",), **changes):
    """Whether a message would be let in, and the message."""
    headers = {
        MessageHeaderKey.CHANNEL: "dpfda", MessageHeaderKey.TOPIC: "ask", MessageHeaderKey.MSG_TYPE: MessageType.REQ,
        MessageHeaderKey.ORIGIN: sender, MessageHeaderKey.DESTINATION: me, MessageHeaderKey.PAYLOAD_ENCODING: Encoding.BYTES,
        MessageHeaderKey.REPLY_EXPECTED: True,
    }  # fmt: skip
    headers.update({getattr(MessageHeaderKey, name): value for name, value in changes.items()})
    message = Message(headers, payload)
    cell = SimpleNamespace(get_fqcn=lambda: me, waiters=dict.fromkeys(waiting))
    properties = {DriverParams.PEER_CN.value: common or sender, CERTIFICATE: certificate}
    connection = SimpleNamespace(get_conn_properties=lambda: properties)
    return gate.admit(cell, SimpleNamespace(name=sender), connection, message), message


@pytest.fixture
def site():
    gate = Gate(SITE_REQUESTS, SITE_REPLIES, lambda peer: (peer.name, peer.common_name) == ("server", "server.test"))
    return lambda **options: arrive(gate, "alpha", **{"sender": "server", "common": "server.test", **options})


@pytest.fixture
def server():
    gate = Gate(SERVER_REQUESTS, SERVER_REPLIES, lambda peer: peer.name == peer.common_name,
                lambda peer: peer.certificate == "c" * 64)  # fmt: skip
    return lambda **options: arrive(gate, "server", **{"sender": "alpha", "TOPIC": "answer", **options})


def test_what_belongs_here_is_let_in(site, server):
    for let_in, message in (
        site(), site(MSG_TYPE=MessageType.REPLY, CHANNEL="task", TOPIC="register", REQ_ID="r1"),
        site(MSG_TYPE=MessageType.REPLY, TOPIC="hello", REQ_ID="r1"), server(), server(TOPIC="hello"),
        server(CHANNEL="task", TOPIC="challenge", PAYLOAD_ENCODING=Encoding.NONE, payload=None),
        server(TOPIC="hello", certificate="d" * 64), server(CHANNEL="task", TOPIC="register", certificate="d" * 64),
    ):  # fmt: skip
        assert let_in
        assert message.get_prop(PEER).name in ("server", "alpha")


SITE_ATTACKS = {
    "a command": {"CHANNEL": "admin", "TOPIC": "train.deploy"},
    "another topic": {"TOPIC": "answer"},
    "another channel": {"CHANNEL": "task"},
    "objects": {"PAYLOAD_ENCODING": Encoding.FOBS},
    "no encoding": {"PAYLOAD_ENCODING": None},
    "another encoding": {"PAYLOAD_ENCODING": "pickle"},
    "another origin": {"ORIGIN": "beta"},
    "for somebody else": {"DESTINATION": "beta"},
    "for a child": {"DESTINATION": "alpha.job"},
    "another member": {"sender": "beta", "common": "beta"},
    "a member that calls itself server": {"common": "beta"},
    "without a certificate's name": {"common": "N/A"},
    "a reply that nobody waits for": {"MSG_TYPE": MessageType.REPLY, "TOPIC": "hello", "REQ_ID": "r2"},
    "a reply of many": {"MSG_TYPE": MessageType.REPLY, "TOPIC": "hello", "REQ_ID": ["r1"]},
    "a reply to nothing": {"MSG_TYPE": MessageType.REPLY, "TOPIC": "ask", "REQ_ID": "r1"},
    "a returned message": {"MSG_TYPE": MessageType.RETURN, "REQ_ID": "r1"},
    "no type": {"MSG_TYPE": None},
    "encrypted by FLARE": {"SECURE": True},
    "marked as encrypted": {"ENCRYPTED": True},
    "too long": {"payload": b"x" * (MAX_MESSAGE + 65)},
    "a list as topic": {"TOPIC": ["ask"]},
    "a number as channel": {"CHANNEL": 7},
    "a long header": {"REQ_ID": "x" * 5000},
}
SERVER_ATTACKS = {
    "not enrolled": {"certificate": "d" * 64},
    "no certificate": {"certificate": None},
    "a question": {"TOPIC": "ask"},
    "to another member": {"DESTINATION": "beta"},
    "as another member": {"ORIGIN": "beta"},
    "as the server": {"ORIGIN": "server"},
    "another name than the certificate's": {"common": "beta"},
    "objects at log-in": {"CHANNEL": "task", "TOPIC": "register", "PAYLOAD_ENCODING": Encoding.FOBS},
    "a long log-in": {"CHANNEL": "task", "TOPIC": "register", "payload": b"x" * 40_000},
    "a long hello": {"TOPIC": "hello", "payload": b"x" * 300},
    "a failed job": {"CHANNEL": "task", "TOPIC": "report_job_failure"},
    "a reply": {"MSG_TYPE": MessageType.REPLY, "TOPIC": "hello", "REQ_ID": "r1"},
    "a job's parent": {"CHANNEL": "server_parent_listener", "TOPIC": "x"},
}


@pytest.mark.parametrize("attack", SITE_ATTACKS)
def test_a_site_lets_nothing_else_in(site, attack, caplog):
    let_in, message = site(**SITE_ATTACKS[attack])
    assert not let_in
    assert message.payload is not None, "nothing was decoded"
    assert "refused: a message from" in caplog.text


@pytest.mark.parametrize("attack", SERVER_ATTACKS)
def test_a_server_lets_nothing_else_in(server, attack):
    assert not server(**SERVER_ATTACKS[attack])[0]


def test_headers_that_nobody_needs_are_removed(site, server):
    extra = {
        "CONN_URL": "tcp://evil:1",
        "ROUTE": [["x", 1.0]],
        "SERVER_TRANSIT_REQUIRED": True,
        "FROM_CELL": "elsewhere",
    }
    let_in, message = site(**extra)
    assert let_in
    assert message.get_header(MessageHeaderKey.FROM_CELL) == "server"
    for name in ("CONN_URL", "ROUTE", "SERVER_TRANSIT_REQUIRED", "REPLY_EXPECTED"):
        assert getattr(MessageHeaderKey, name) not in message.headers
    assert server(TOPIC="hello")[1].get_header(MessageHeaderKey.REPLY_EXPECTED), "a hello is answered"


@pytest.mark.parametrize("headers", [None, [], "x", 7])
def test_without_headers_there_is_no_message(headers, site):
    gate = Gate(SITE_REQUESTS, SITE_REPLIES, lambda peer: True)
    cell = SimpleNamespace(get_fqcn=lambda: "alpha", waiters={})
    assert not gate.admit(cell, SimpleNamespace(name="server"), None, SimpleNamespace(headers=headers, payload=b""))


def test_foreign_text_cannot_write_lines_of_its_own(site, caplog):
    site(TOPIC="x\n2026-01-01 INFO dpfda.client all is well")
    assert "\n" not in caplog.records[-1].getMessage()
    assert "x\\n2026" in caplog.text


# ---------------------------------------------------------------- plain


def login(payload, topic="register"):
    return Message({MessageHeaderKey.CHANNEL: "task", MessageHeaderKey.TOPIC: topic}, payload)


def test_a_log_in_survives_without_objects():
    shareable = Shareable()
    shareable.update({"cert": b"\0\xffpem", "common_name": "alpha", "signature": b"s", "not on the list": "x"})
    keys = {name: value for name, value in shareable.items() if name in plain._NAMES}
    message = login(shareable)
    plain.encode_payload(message)
    assert isinstance(message.payload, bytes)
    plain.decode_payload(message)
    assert isinstance(message.payload, Shareable)
    assert {name: value for name, value in message.payload.items() if name in plain._NAMES} == keys
    assert "not on the list" not in message.payload


def test_objects_are_neither_decoded_nor_sent(monkeypatch):
    monkeypatch.setattr(fobs, "loads", lambda *_, **__: pytest.fail("FOBS was decoded"))
    message = login(b"anything")
    message.set_header(MessageHeaderKey.PAYLOAD_ENCODING, Encoding.FOBS)
    with pytest.raises(ProtocolError, match="not decoded"):
        plain.decode_payload(message)
    for payload in ({"x": 1}, [1], Shareable(), object()):
        with pytest.raises(ProtocolError, match="not sent"):
            plain.encode_payload(Message({MessageHeaderKey.CHANNEL: "dpfda", MessageHeaderKey.TOPIC: "ask"}, payload))


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{", b'{"kind":"shareable"}', b'{"kind":"other","fields":{}}', b'{"kind":"dict","fields":{"x":"y"}}',
     b'{"kind":"dict","fields":{"token":7}}', b'{"kind":"dict","fields":{"token":{"base64":"?"}}}', b"[" * 100_000,
     b'{"kind":"dict","fields":{"token":{"a":1}}}', b'{"kind":"dict","fields":[]}', b"x" * 40_000],
)  # fmt: skip
def test_a_malformed_log_in_is_refused(data):
    message = login(data)
    message.set_header(MessageHeaderKey.PAYLOAD_ENCODING, Encoding.BYTES)
    with pytest.raises(ProtocolError):
        plain.decode_payload(message)


# ---------------------------------------------------------------- pinned, guard, environment


def test_another_version_is_refused(monkeypatch):
    pinned.check_version()
    monkeypatch.setattr(pinned, "version", lambda name: "2.9.1")
    with pytest.raises(InvalidInput, match=r"exactly 2\.9\.0"):
        pinned.check_version()


def test_a_handler_more_or_less_is_refused():
    pinned.check_known("x", frozenset({"a"}), frozenset({"a"}))
    for found in ({"a", "b"}, set(), {"b"}):
        with pytest.raises(InvalidInput, match="are not those of version"):
            pinned.check_known("x", frozenset(found), frozenset({"a"}))


def test_the_environment_is_an_allow_list(monkeypatch, tmp_path):
    for name in (
        "NVFLARE_X",
        "NVFL_X",
        "FL_LOG_LEVEL",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "LD_PRELOAD",
        "SSL_CERT_FILE",
        "PGPASSWORD",
    ):
        monkeypatch.setenv(name, "evil")
    environment = make_environment(tmp_path / "ca.crt")
    assert "evil" not in environment.values()
    assert environment["SSL_CERT_FILE"] == str(tmp_path / "ca.crt")


class Left(Exception):
    pass


@pytest.fixture
def leaving(monkeypatch):
    from dpfda.federation.flare import client

    def leave(why, code=77):
        raise Left(why)

    monkeypatch.setattr(client, "leave", leave)
    return client


def test_a_refused_heart_beat_ends_the_client(leaving):
    codes = iter([ReturnCode.OK, ReturnCode.TIMEOUT, ReturnCode.UNAUTHENTICATED])
    cell = SimpleNamespace(send_request=lambda **_: Message({MessageHeaderKey.RETURN_CODE: next(codes)}))
    beats = []

    def plain_heart_beat(communicator, name):
        while True:
            beats.append(communicator.cell.send_request(topic="heart_beat"))

    with pytest.raises(Left, match="refused this site's heart-beat"):
        leaving.watch_heart_beat(plain_heart_beat)(SimpleNamespace(cell=cell), "alpha")
    assert len(beats) == 2, "a timeout is no refusal"


@pytest.mark.parametrize(("text", "state"), [("not enrolled", "refused"), ("timeout", "away")])
def test_a_refused_log_in_ends_the_client_and_is_written_down(leaving, tmp_path, text, state):
    def plain_registration():
        try:
            raise FLCommunicationError("error:client_registration " + text)
        except FLCommunicationError as error:
            raise FLCommunicationError("error:client_registration", error)  # noqa: B904, as FLARE does

    settings = SimpleNamespace(contact=tmp_path / "contact.json")
    with pytest.raises(Left):
        leaving.watch_login(settings, plain_registration)()
    assert Contact.read(tmp_path / "contact.json").state == state


CHECK = """
import sys
from pathlib import Path
from nvflare.fuel.f3.cellnet import cell, core_cell
from nvflare.fuel.f3.comm_config import CommConfigurator
from nvflare.fuel.f3.drivers import socket_conn, tcp_driver
from nvflare.fuel.f3.sfm import conn_manager
from nvflare.fuel.utils.config_service import ConfigService
from nvflare.private.fed.client import client_req_processors, fed_client_base
from nvflare.private.fed.server import fed_server, server_cmd_modules
PLACES = [
    (core_cell.CoreCell, "process_message"), (core_cell, "encode_payload"), (core_cell, "decode_payload"),
    (cell, "encode_payload"), (cell, "decode_payload"), (fed_client_base, "Cell"), (fed_server, "Cell"),
    (fed_client_base, "NetAgent"), (fed_server, "NetAgent"), (conn_manager, "MAX_WAIT"),
    (CommConfigurator, "_configuration"), (ConfigService, "initialize"), (tcp_driver, "get_ssl_context"),
    (tcp_driver, "TcpStreamServer"),
    (tcp_driver.TcpDriver, "connect"), (socket_conn.SocketConnection, "_get_socket_properties"),
    (socket_conn, "MAX_FRAME_SIZE"),
]
plain = [owner.__dict__[name] for owner, name in PLACES]
commands = list(client_req_processors.ClientRequestProcessors.request_processors)
modules = list(server_cmd_modules.ServerCommandModules.cmd_modules)
from dpfda.errors import InvalidInput
from dpfda.federation.flare import guard
from dpfda.federation.flare.gate import Gate
root = Path(sys.argv[1])
guard.install_guard(root, Gate({}, {}, lambda peer: False))
guard.check_guard(root)

def refused():
    try:
        guard.check_guard(root)
    except InvalidInput as error:
        assert "nothing was started" in str(error)
        return True
    return False

for (owner, name), original in zip(PLACES, plain):
    ours = owner.__dict__[name]
    setattr(owner, name, original)
    assert refused(), (owner, name)
    setattr(owner, name, ours)
guard.check_guard(root)
client_req_processors.ClientRequestProcessors.request_processors.append(commands[0])
assert refused()
client_req_processors.ClientRequestProcessors.request_processors[:] = []
server_cmd_modules.ServerCommandModules.cmd_modules.append(modules[0])
assert refused()
try:
    guard.install_guard(root, Gate({}, {}, lambda peer: False))
except InvalidInput as error:
    assert "server commands are not those" in str(error) or "client commands are not those" in str(error), error
else:
    raise AssertionError("unknown handlers were accepted")
print("all", len(PLACES), "checked")
"""


def test_every_change_to_flare_is_checked(tmp_path):
    """Each one taken back by itself is noticed before anything starts."""
    (tmp_path / "check.py").write_text(CHECK)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "check.py"), str(tmp_path)],
        capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": ROOT},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "all 17 checked\n"
