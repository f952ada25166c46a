"""TLS as a consortium needs it: its own CA and no other, and handshakes that cannot keep others waiting.

FLARE's contexts also trust the system's CAs, its server shakes hands inside the loop that accepts connections (so that one
silent connection stops all others), and its client waits for a connection without end.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import socket
import ssl
import threading
from typing import Any

from nvflare.fuel.f3.drivers import driver_manager, socket_conn, tcp_driver
from nvflare.fuel.f3.drivers.driver_params import DriverParams

from dpfda.federation.flare.gate import CERTIFICATE, ENVELOPE
from dpfda.federation.frames import MAX_MESSAGE
from dpfda.federation.quiet import BoundedLog

MAX_FRAME = MAX_MESSAGE + ENVELOPE + 65_536 + 16  # a message, FLARE's headers and prefix
HANDSHAKE = 10.0  # seconds
_CUT = {"TCP_USER_TIMEOUT": 15_000, "TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 2}  # ms, then seconds
_MOST_HANDSHAKES = 256  # at a time
_handshakes = threading.BoundedSemaphore(_MOST_HANDSHAKES)
_log = logging.getLogger("dpfda.tls")
_failures = BoundedLog(_log)
_plain_properties = socket_conn.SocketConnection._get_socket_properties


def make_context(params: dict[Any, Any], ssl_server: bool) -> ssl.SSLContext:
    """Mutual TLS with the consortium's CA; there is no other kind of connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if ssl_server else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the gate compares the certificate's name with the expected identity
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    own = (DriverParams.SERVER_CERT, DriverParams.SERVER_KEY) if ssl_server else (
        DriverParams.CLIENT_CERT, DriverParams.CLIENT_KEY)  # fmt: skip
    context.load_verify_locations(params[DriverParams.CA_CERT.value])
    context.load_cert_chain(params[own[0].value], params[own[1].value])
    params[DriverParams.IMPLEMENTED_CONN_SEC] = "mTLS with the consortium's CA"
    return context


def describe_connection(connection: Any) -> dict[str, Any]:
    """FLARE's properties of a connection, and the digest of the peer's certificate."""
    properties: dict[str, Any] = _plain_properties(connection)
    if isinstance(connection.sock, ssl.SSLSocket):
        certificate = connection.sock.getpeercert(binary_form=True)
        if certificate:
            properties[CERTIFICATE] = hashlib.sha256(certificate).hexdigest()
    return properties


class PatientServer(tcp_driver.TcpStreamServer):  # type: ignore[misc]
    """FLARE's listener, with each handshake in the connection's own thread and bounded in time."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, driver: Any, connector: Any) -> None:
        super().__init__(driver, connector)
        self.socket.do_handshake_on_connect = False

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Shake hands, then let FLARE serve the connection."""
        if not _handshakes.acquire(blocking=False):
            raise ConnectionAbortedError("too many handshakes at a time")
        try:
            request.settimeout(HANDSHAKE)
            request.do_handshake()
            request.settimeout(None)
            notice_cuts(request)
        finally:
            _handshakes.release()
        super().finish_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A handshake that fails is everyday; a line says where it came from."""
        _failures.write(f"the connection from {client_address[0]} ended without a handshake or with an error")


def notice_cuts(connection: socket.socket) -> None:
    """Let the kernel give up a connection whose other end has been silent for some seconds, instead of many minutes."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _CUT.items():
        if hasattr(socket, name):  # not every system has all of them
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def connect_in_time(driver: Any, connector: Any) -> None:
    """FLARE's `TcpDriver.connect`, with an end to waiting."""
    driver.connector = connector
    params = connector.params
    place = (params[DriverParams.HOST.value], int(params[DriverParams.PORT.value]))
    plain = socket.create_connection(place, HANDSHAKE)
    try:
        secure = make_context(params, ssl_server=False).wrap_socket(plain)
    except BaseException:
        plain.close()
        raise
    secure.settimeout(None)
    notice_cuts(secure)
    connection = socket_conn.SocketConnection(secure, connector, True)
    driver.add_connection(connection)
    with contextlib.closing(connection):
        connection.read_loop()
        driver.close_connection(connection)


def register_tcp_alone(manager: Any, folder: str, package: str | None) -> None:
    """In place of FLARE's search for drivers: the one that is used, and none that listens to HTTP, gRPC or pipes."""
    if not manager.drivers:
        manager.register(tcp_driver.TcpDriver)


def install_tls() -> None:
    """Put these into FLARE's TCP driver, leave the other drivers out, and bound what is read."""
    driver_manager.DriverManager.search_folder = register_tcp_alone
    tcp_driver.get_ssl_context = make_context
    tcp_driver.TcpStreamServer = PatientServer
    tcp_driver.TcpDriver.connect = connect_in_time
    socket_conn.SocketConnection._get_socket_properties = describe_connection
    socket_conn.MAX_FRAME_SIZE = MAX_FRAME


def find_missing_tls() -> list[str]:
    """Which of these changes did not take; empty if all did."""
    changes = {
        "drivers": driver_manager.DriverManager.search_folder is register_tcp_alone,
        "TLS context": tcp_driver.get_ssl_context is make_context,
        "listener": tcp_driver.TcpStreamServer is PatientServer,
        "connect": tcp_driver.TcpDriver.connect is connect_in_time,
        "certificate of a connection": socket_conn.SocketConnection._get_socket_properties is describe_connection,
        "largest frame": socket_conn.MAX_FRAME_SIZE == MAX_FRAME,
    }
    return [name for name, took in changes.items() if not took]
