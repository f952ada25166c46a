"""Bytes in, bytes out over a Unix socket; whatever a handler raises is `unavailable`, and its cause stays at home."""

from __future__ import annotations

import os
import socket
import struct
import threading

import pytest

from dpfda.errors import TransportError
from dpfda.federation.frames import MAX_MESSAGE, Closed, connect, open_listener, receive_frame, send_frame
from dpfda.federation.silo_service import Reply, SiloLink, SiloService


@pytest.fixture
def serve(tmp_path):
    started, refusals = [], []

    def start(handler, name="silo.sock", **options):
        service = SiloService(handler, tmp_path / name, refusals.append, **options)
        service.start()
        started.append(service)
        return SiloLink(tmp_path / name, timeout=10), refusals

    yield start
    for service in started:
        service.close()


def test_bytes_cross_unchanged(serve, tmp_path):
    link, refusals = serve(lambda message: message[::-1])
    for message in (b"", b"abc", os.urandom(3_000_000), b"\0" * (MAX_MESSAGE - 1)):
        assert link.ask(message) == Reply(True, message[::-1])
    assert refusals == []
    assert (tmp_path / "silo.sock").stat().st_mode & 0o777 == 0o600


class Custom(Exception):
    pass


@pytest.mark.parametrize("error", [RuntimeError("secret"), Custom("secret"), MemoryError("secret"), KeyError("secret")])
def test_an_error_is_unavailable_and_told_at_home_only(serve, error):
    def fail(message):
        raise error

    link, refusals = serve(fail)
    assert link.ask(b"x") == Reply(False)
    assert Reply(False).encode() == b"\0"
    assert len(refusals) == 1
    assert "secret" in refusals[0]
    assert link.ask(b"x") == Reply(False), "the service goes on"


@pytest.mark.parametrize("answer", [None, "text", 7, bytearray(b"x"), b"x" * MAX_MESSAGE])
def test_what_is_not_bytes_of_an_allowed_length_is_not_sent(serve, answer):
    link, refusals = serve(lambda message: answer)
    assert link.ask(b"x") == Reply(False)
    assert len(refusals) == 1


def test_a_log_that_fails_does_not_change_the_answer(tmp_path):
    def log(text):
        raise OSError("disk full")

    service = SiloService(lambda message: 1 / 0, tmp_path / "s", log)
    service.start()
    assert SiloLink(tmp_path / "s", 5).ask(b"x") == Reply(False)
    service.close()


def test_a_message_that_is_too_long_is_refused_before_it_is_read(serve, tmp_path):
    _, refusals = serve(lambda message: message)
    with connect(tmp_path / "silo.sock", 5) as connection:
        connection.sendall(struct.pack("!I", 400_000_000))
        assert Reply.parse(receive_frame(connection)) == Reply(False)
        with pytest.raises(Closed):
            receive_frame(connection)
    assert "too long" in refusals[0]


def test_one_at_a_time_unless_asked_otherwise(serve):
    busy, most = [], []

    def handle(message):
        busy.append(1)
        most.append(len(busy))
        threading.Event().wait(0.05)
        busy.pop()
        return b""

    for concurrent, expected in ((False, {1}), (True, {1, 2, 3})):
        link, _ = serve(handle, name=f"s{concurrent}", concurrent=concurrent)
        threads = [threading.Thread(target=link.ask, args=(b"x",)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(most) <= expected
        assert max(most) == max(expected)


def test_a_silo_that_was_started_anew_is_found(tmp_path):
    first = SiloService(lambda message: b"first", tmp_path / "s", print)
    first.start()
    link = SiloLink(tmp_path / "s", 5)
    assert link.ask(b"x").payload == b"first"
    first.close()
    (tmp_path / "s").unlink()
    with pytest.raises(TransportError):
        SiloLink(tmp_path / "s", 1).ask(b"x")
    second = SiloService(lambda message: b"second", tmp_path / "s", print)
    second.start()
    assert SiloLink(tmp_path / "s", 5).ask(b"x").payload == b"second"
    second.close()


def test_a_long_path_works(tmp_path):
    folder = tmp_path / ("x" * 100) / ("y" * 100)
    folder.mkdir(parents=True)
    service = SiloService(lambda message: message, folder / "silo.sock", print)
    service.start()
    assert SiloLink(folder / "silo.sock", 5).ask(b"far away").payload == b"far away"
    service.close()


def test_a_socket_left_behind_is_replaced(tmp_path):
    open_listener(tmp_path / "s").close()
    listener = open_listener(tmp_path / "s")
    connect(tmp_path / "s").close()
    listener.close()


def test_frames_that_break_off_are_noticed():
    one, other = socket.socketpair()
    with one, other:
        send_frame(one, b"ab", b"cd")
        assert receive_frame(other) == b"abcd"
        one.sendall(struct.pack("!I", 10) + b"abc")
        one.close()
        with pytest.raises(Closed):
            receive_frame(other)


@pytest.mark.parametrize("data", [b"", b"\0", b"\2abc", b"\0abc"])
def test_an_unusual_reply_is_none(data):
    assert Reply.parse(data) == Reply(False)
