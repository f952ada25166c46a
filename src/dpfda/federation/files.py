"""Small files that must be whole: written beside the target, synced, and put in place at once."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Literal

OWNER_ONLY = 0o600


Sync = Literal["all", "content", "nothing"]


def write_atomically(path: Path, content: bytes, *, mode: int = OWNER_ONLY, sync: Sync = "all") -> None:
    """After a crash of this process the file is the old one or the new one, never a part.

    After a power cut as well with `sync="content"`, and with "all" it is the new one; with "nothing" it may be empty.
    """
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if sync != "nothing":
                os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    if sync == "all":
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: Any, *, mode: int = OWNER_ONLY, sync: Sync = "all") -> None:
    """A JSON file for people and programs."""
    write_atomically(path, encode_json(value), mode=mode, sync=sync)


def encode_json(value: Any) -> bytes:
    """The content of such a file."""
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()


def make_private_folder(path: Path) -> Path:
    """A folder that only its owner may enter."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path
