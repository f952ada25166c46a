"""When a site last heard from its server: a small file that the client's process writes and everybody else only reads."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from dpfda.federation.files import write_json

ContactState = Literal["starting", "connected", "away", "refused"]


@dataclass(frozen=True)
class Contact:
    """Times are seconds since 1970 on this computer's clock; the offset is the server's clock minus this one's."""

    state: ContactState
    at: float
    pid: int
    last_contact: float | None = None
    round_trip: float | None = None
    clock_offset: float | None = None

    def write(self, path: Path) -> None:
        """Replace the file at once; it need not survive a power cut."""
        write_json(path, asdict(self), sync="nothing")

    @staticmethod
    def read(path: Path) -> Contact | None:
        """The last contact, or None."""
        try:
            return Contact(**json.loads(path.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None
