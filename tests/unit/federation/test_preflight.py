"""Every cause of a failed connection has its own sentence. Real TLS servers on 127.0.0.1."""

from __future__ import annotations

import contextlib
import datetime as dt
import socket
import ssl
import threading

import pytest

from dpfda.federation.keys import Validity, encode_certificate, make_rsa_key, write_key
from dpfda.federation.preflight import Credentials, check_connection

IDENTITY = "server.test"
DAY = dt.timedelta(days=1)


class World:
    """Certificates as files, and servers that shake hands."""

    def __init__(self, root, authority, rsa_key, request_pem):
        self.root, self.authority, self.request = root, authority, request_pem
        (root / "ca.crt").write_bytes(encode_certificate(authority.certificate))
        write_key(root / "site.key", rsa_key)
        write_key(root / "server.key", rsa_key)
        self.key = rsa_key
        self.credentials = Credentials(root / "ca.crt", root / "site.crt", root / "site.key", IDENTITY)
        self.sign_site()

    def sign_site(self, validity=None, authority=None):
        signer = authority or self.authority
        options = () if validity is None else (validity,)
        certificate = signer.sign_site(self.request, "alpha", "clinic", *options)
        (self.root / "site.crt").write_bytes(encode_certificate(certificate))

    @contextlib.contextmanager
    def server(self, identity=IDENTITY, validity=None, authority=None, trusts=None, tickets=2):
        signer = authority or self.authority
        options = () if validity is None else (validity,)
        certificate = signer.sign_server(self.key.public_key(), identity, ["127.0.0.1"], *options)
        (self.root / "server.crt").write_bytes(encode_certificate(certificate))
        (self.root / "trusted.crt").write_bytes(encode_certificate((trusts or self.authority).certificate))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.root / "server.crt", self.root / "server.key")
        context.load_verify_locations(self.root / "trusted.crt")
        context.verify_mode = ssl.CERT_REQUIRED
        context.num_tickets = tickets

        def serve(plain):
            with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as secure:
                secure.settimeout(3)
                secure.recv(1)

        with listening(serve) as port:
            yield port


@contextlib.contextmanager
def listening(serve):
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        with contextlib.suppress(OSError):
            while True:
                plain, _ = listener.accept()
                with plain:
                    serve(plain)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


@pytest.fixture
def world(tmp_path, authority, rsa_key, request_pem):
    return World(tmp_path, authority, rsa_key, request_pem)


def check(world, port, host="127.0.0.1"):
    finding = check_connection(host, port, world.credentials)
    assert finding.sentence.endswith(".")
    assert finding.sentence[0].isupper() or finding.sentence[0].isdigit()
    return finding


def test_a_good_connection(world):
    with world.server() as port:
        finding = check(world, port)
    assert finding.good
    assert "364 more days" in finding.sentence


def test_a_good_server_without_session_tickets(world):
    with world.server(tickets=0) as port:
        assert check(world, port).good


def test_a_refusal_by_a_server_without_session_tickets(world, other_authority):
    with world.server(trusts=other_authority, tickets=0) as port:
        assert check(world, port).code == "refused"


def test_a_closed_port(world):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert check(world, port).code == "closed"


def test_a_name_that_does_not_resolve(world):
    assert check(world, 443, host="no-such-host.invalid").code == "dns"


def test_another_authority_than_ours(world, other_authority):
    with world.server(authority=other_authority) as port:
        finding = check(world, port)
    assert finding.code == "ca"
    assert "Do not continue" in finding.sentence


def test_another_name_than_expected(world):
    with world.server(identity="somebody.else") as port:
        finding = check(world, port)
    assert finding.code == "name"
    assert "'somebody.else'" in finding.sentence


def test_a_site_cannot_play_the_server(world, request_pem):
    """A member's certificate is of the same authority, but not for servers."""
    with world.server() as port:
        certificate = world.authority.sign_site(request_pem, "alpha", "clinic")
        (world.root / "server.crt").write_bytes(encode_certificate(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(world.root / "server.crt", world.root / "server.key")

    def serve(plain):
        with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as secure:
            secure.recv(1)

    with listening(serve) as port:
        assert check(world, port).code == "ca"


def test_an_expired_server(world):
    with world.server(validity=Validity(1, dt.datetime.now(dt.UTC) - 4 * DAY)) as port:
        finding = check(world, port)
    assert finding.code == "server-expired"
    assert "3 days ago" in finding.sentence


def test_a_slow_clock_seen_at_the_servers_certificate(world):
    with world.server(validity=Validity(9, dt.datetime.now(dt.UTC) + dt.timedelta(minutes=10))) as port:
        finding = check(world, port)
    assert finding.code == "clock"
    assert "slow by 9 minutes or more" in finding.sentence


def test_an_expired_certificate_of_our_own(world):
    world.sign_site(Validity(1, dt.datetime.now(dt.UTC) - 3 * DAY))
    with world.server() as port:
        finding = check(world, port)
    assert finding.code == "expired"
    assert "renew it" in finding.sentence


def test_a_slow_clock_seen_at_our_own_certificate(world):
    world.sign_site(Validity(9, dt.datetime.now(dt.UTC) + DAY))
    with world.server() as port:
        finding = check(world, port)
    assert finding.code == "clock"
    assert "the clock is slow" in finding.sentence


def test_a_server_that_does_not_trust_our_authority(world, other_authority):
    with world.server(trusts=other_authority) as port:
        assert check(world, port).code == "refused"


def test_a_certificate_of_another_authority(world, other_authority):
    world.sign_site(authority=other_authority)
    assert check(world, 1).code == "own-ca"


def test_a_certificate_of_another_key(world):
    (world.root / "site.key").unlink()
    write_key(world.root / "site.key", make_rsa_key())
    assert check(world, 1).code == "key"


def test_missing_and_damaged_files(world):
    (world.root / "site.crt").write_bytes(b"nonsense")
    assert check(world, 1).code == "files"
    (world.root / "site.crt").unlink()
    finding = check(world, 1)
    assert finding.code == "files"
    assert "site.crt is missing" in finding.sentence


def test_a_service_that_is_not_tls(world):
    def serve(plain):
        with contextlib.suppress(OSError):
            plain.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            plain.recv(1000)

    with listening(serve) as port:
        assert check(world, port).code == "not-tls"


def test_a_service_that_hangs_up(world):
    with listening(lambda plain: None) as port:
        assert check(world, port).code in ("reset", "refused")


def test_a_service_that_says_nothing(world):
    with listening(lambda plain: threading.Event().wait(2)) as port:
        finding = check_connection("127.0.0.1", port, world.credentials, timeout=0.3)
    assert finding.code == "reset"
