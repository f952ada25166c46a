"""What a FLARE process is told when it is started: names, addresses and places of files, never their contents."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from dpfda.errors import InvalidInput
from dpfda.federation.folder import Address, SiteFolder
from dpfda.federation.keys import common_name, read_certificate
from dpfda.federation.names import check_host, check_port, check_site_name

Settings = TypeVar("Settings", "ClientSettings", "ServerSettings")


@dataclass(frozen=True)
class ClientSettings:
    """A site's FLARE client. `silo` is the socket of the silo's process, `contact` the file with the last contact."""

    site: str
    consortium: str
    host: str
    port: int
    identity: str
    authority: Path
    certificate: Path
    key: Path
    run: Path
    silo: Path
    contact: Path

    def __post_init__(self) -> None:
        check_site_name(self.site)
        check_site_name(self.consortium)
        check_host(self.host)
        check_host(self.identity)
        check_port(self.port)

    @property
    def rehearsal(self) -> Path:
        """The socket behind which rehearsals are answered, by a process without data."""
        return self.silo.with_name("rehearsal.sock")

    @staticmethod
    def of(folder: SiteFolder) -> ClientSettings:
        """Those of a site's folder."""
        address = Address.read(folder.address_path)
        site = common_name(read_certificate(folder.certificate.read_bytes()))
        return ClientSettings(
            site, address.consortium, address.host, address.port, address.identity, folder.authority, folder.certificate,
            folder.site_key, folder.run / "flare", folder.run / "silo.sock", folder.contact,
        )  # fmt: skip


@dataclass(frozen=True)
class ServerSettings:
    """The coordinator's FLARE server. `socket` is where studies ask, `register` the file of enrolled certificates."""

    consortium: str
    listen: str
    port: int
    authority: Path
    certificate: Path
    key: Path
    run: Path
    socket: Path
    register: Path

    def __post_init__(self) -> None:
        check_site_name(self.consortium)
        check_host(self.listen)
        check_port(self.port)

    @property
    def lock(self) -> Path:
        """Held by the one server process of these settings."""
        return self.socket.with_suffix(".lock")


def encode_settings(settings: ClientSettings | ServerSettings) -> str:
    """One command-line argument."""
    return json.dumps(
        {name: str(value) if isinstance(value, Path) else value for name, value in asdict(settings).items()}
    )


def decode_settings(kind: type[Settings], text: str) -> Settings:
    """The settings of a command-line argument."""
    try:
        values: dict[str, Any] = json.loads(text)
        paths = {field.name for field in fields(kind) if field.type == "Path"}
        known: dict[str, Any] = {name: Path(value) if name in paths else value for name, value in values.items()}
        return kind(**known)
    except (ValueError, TypeError, AttributeError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("The settings of this process cannot be read; start it with dpfda's commands.") from None
