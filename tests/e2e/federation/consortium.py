"""A real consortium for tests: an authority, a FLARE server and sites as separate processes with mutual TLS on 127.0.0.1."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil

from dpfda.federation.contact import Contact
from dpfda.federation.enrolment import EnrolmentRequest, request_enrolment, sign_enrolment, take_credentials
from dpfda.federation.flare.launch import make_command, make_environment, start_process, stop_process
from dpfda.federation.flare.settings import ClientSettings, ServerSettings
from dpfda.federation.flare.supervisor import start_server
from dpfda.federation.folder import Address, SiteFolder
from dpfda.federation.keys import (
    Authority,
    encode_certificate,
    make_request,
    make_rsa_key,
    make_signing_key,
    public_text,
    read_certificate,
    read_rsa_key,
    read_signing_key,
    write_key,
    write_new,
)  # fmt: skip
from dpfda.federation.register import Register
from dpfda.federation.server_link import ServerLink

HERE = Path(__file__).parent
IDENTITY, CONSORTIUM, PASSPHRASE = "server.test", "lipids", b"a passphrase for tests"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition, seconds=120.0, step=0.05):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(step)
    return bool(condition())


class Site:
    """One site: its folder, and its processes when they run."""

    def __init__(self, root: Path, name: str, consortium: Consortium) -> None:
        self.name, self.consortium = name, consortium
        self.first_request = request_enrolment(root, name)
        self.folder = SiteFolder(root)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def certificate(self):
        return read_certificate(self.folder.certificate.read_bytes())

    def request(self) -> bytes:
        return make_request(read_rsa_key(self.folder.site_key), self.name)

    def take_certificate(self, certificate) -> None:
        self.folder.certificate.unlink(missing_ok=True)
        write_new(self.folder.certificate, encode_certificate(certificate))

    def start(self) -> Site:
        supervise = [str(HERE / "site_process.py"), str(self.folder.root)]
        root = str(Path(sys.modules["dpfda"].__file__).parents[1])
        command = [sys.executable, "-P", "-u", *supervise]
        log = self.consortium.root / f"{self.name}.supervisor.log"
        self.process = start_process(command, self.folder.root, log, make_environment(more={"PYTHONPATH": root}))
        return self

    def stop(self) -> None:
        if self.process is not None:
            stop_process(self.process)
            self.process = None

    def contact(self) -> Contact | None:
        return Contact.read(self.folder.contact)

    def log(self) -> str:
        return self.folder.log.read_text() if self.folder.log.exists() else ""

    def said(self) -> str:
        return (self.consortium.root / f"{self.name}.supervisor.log").read_text()

    def child(self, part: str) -> psutil.Process:
        """The client's or the silo's process."""
        assert self.process is not None
        for each in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.Error):
                if any(part in argument for argument in each.cmdline()):
                    return each
        raise AssertionError(f"{self.name} has no process {part}")

    def client(self) -> psutil.Process:
        return self.child("dpfda.federation.flare.client")

    def silo(self) -> psutil.Process:
        return self.child("echo_silo.py")

    def settings(self) -> ClientSettings:
        return ClientSettings.of(self.folder)


class Consortium:
    """The coordinator's side."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "authority").mkdir(parents=True, mode=0o700)
        self.authority = Authority.create(root / "authority", "lipids-ca", PASSPHRASE)
        self.signing_key = make_signing_key()
        write_key(root / "coordinator.key", self.signing_key)
        self.register = Register(root / "register.json")
        key = make_rsa_key()
        write_key(root / "server.key", key)
        certificate = self.authority.sign_server(key.public_key(), IDENTITY, ["127.0.0.1"])
        write_new(root / "server.crt", encode_certificate(certificate))
        self.port = free_port()
        self.address = Address("127.0.0.1", self.port, IDENTITY, CONSORTIUM, public_text(self.signing_key))
        self.settings = ServerSettings(
            CONSORTIUM, "127.0.0.1", self.port, root / "authority" / "ca.crt", root / "server.crt", root / "server.key",
            root / "run", root / "server.sock", root / "register.json",
        )  # fmt: skip
        self.sites: dict[str, Site] = {}
        self.server: subprocess.Popen[bytes] | None = None

    def add(self, name: str, *, enrol: bool = True) -> Site:
        site = Site(self.root / "sites" / name, name, self)
        credentials = sign_enrolment(
            EnrolmentRequest.read(site.first_request), self.authority, self.register, self.address, self.signing_key,
            site=name, organisation="clinic",
        )  # fmt: skip
        take_credentials(site.folder, credentials, lambda fingerprints: True)
        if not enrol:
            self.register.revoke(name)
        self.sites[name] = site
        return site

    def start_server(self) -> None:
        self.server = start_server(self.settings, self.root / "server.log")

    def stop_server(self) -> None:
        if self.server is not None:
            stop_process(self.server)
            self.server = None

    def kill_server(self) -> None:
        assert self.server is not None
        os.kill(self.server.pid, signal.SIGKILL)
        self.stop_server()

    def link(self) -> ServerLink:
        return ServerLink(self.settings.socket)

    def server_log(self) -> str:
        return (self.root / "server.log").read_text()

    def connected(self) -> set[str]:
        return {name for name, contact in self.link().look().items() if contact.connected}

    def wait_for(self, *names: str, seconds: float = 120.0) -> None:
        assert wait_until(lambda: set(names) <= self.connected(), seconds), (names, self.connected(), self.server_log())

    def close(self) -> None:
        for site in self.sites.values():
            site.stop()
        self.stop_server()


def signing_key_of(site: Site):
    return read_signing_key(site.folder.sign_key)


__all__ = ["Consortium", "Site", "make_command", "signing_key_of", "wait_until"]
