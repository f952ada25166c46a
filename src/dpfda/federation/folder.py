"""A site's folder holds exactly the files named here; anything else is refused by name.

FLARE runs code or moves folders when it finds certain files (a log configuration, extra resources, a communication
configuration anywhere below its root). So a site never lets FLARE look at a folder that somebody else has filled: `run/` is
wiped and written anew from our own templates at every start, and the rest of the folder is checked by name, kind, link,
owner and mode before anything is started.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from dpfda.errors import InvalidInput
from dpfda.federation.files import OWNER_ONLY, encode_json, write_atomically
from dpfda.federation.keys import read_public_text
from dpfda.federation.names import check_host, check_port, check_site_name

RUN = "run"
LEDGER = "ledger"
FILES = (
    "site.key", "sign.key", "site.crt", "ca.crt", "address.json", "policy.json", "seal.json", LEDGER, "audit.jsonl",
    "audit.jsonl.head", "lock", "contact.json", "site.log", "site.log.1",
)  # fmt: skip
LEDGER_COMPANIONS = tuple(f"{LEDGER}{ending}" for ending in ("-wal", "-shm", "-journal"))  # SQLite's own
RECORDS = ("terms", "acceptances", "approvals")  # folders of <digest>.json
_RECORD = re.compile(r"[0-9a-f]{64}\.json")
_LEFTOVER = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}")  # of an atomic write that a crash cut short
_MOST_SHOWN = 20


@dataclass(frozen=True)
class Address:
    """What a site was told at enrolment: where the server is, how it calls itself, and whose signature counts."""

    host: str
    port: int
    identity: str
    consortium: str
    coordinator_key: str

    def __post_init__(self) -> None:
        check_host(self.host)
        check_port(self.port)
        check_host(self.identity)
        check_site_name(self.consortium)
        read_public_text(self.coordinator_key)

    @staticmethod
    def read(path: Path) -> Address:
        """The address of a file; exactly these fields."""
        try:
            return Address(**json.loads(path.read_bytes()))
        except FileNotFoundError:
            raise InvalidInput(f"{path} is missing: enrol this site first.") from None
        except (ValueError, TypeError, RecursionError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"{path} cannot be read: enrol this site again.") from None

    def encode(self) -> bytes:
        """As the content of its file."""
        return encode_json(asdict(self))

    def write(self, path: Path) -> None:
        """Durably."""
        write_atomically(path, self.encode())


class SiteFolder:
    """One site's folder, by the names of its files."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.site_key, self.sign_key = self.root / "site.key", self.root / "sign.key"
        self.certificate, self.authority = self.root / "site.crt", self.root / "ca.crt"
        self.address_path, self.policy_path = self.root / "address.json", self.root / "policy.json"
        self.seal = self.root / "seal.json"
        self.ledger, self.audit = self.root / LEDGER, self.root / "audit.jsonl"
        self.lock, self.contact, self.log = self.root / "lock", self.root / "contact.json", self.root / "site.log"
        self.terms, self.acceptances, self.approvals = (self.root / name for name in RECORDS)
        self.run = self.root / RUN
        self.work = self.run / "empty"  # where processes are started: libraries read settings from there

    @staticmethod
    def create(root: Path) -> SiteFolder:
        """A new, empty folder; an existing one is taken only if it is empty."""
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(root.iterdir()):
            raise InvalidInput(f"{root} is not empty; choose a new folder for this site.")
        root.chmod(0o700)
        folder = SiteFolder(root)
        for name in RECORDS:
            (folder.root / name).mkdir(mode=0o700)
        return folder

    def check(self) -> None:
        """Refuse to go on unless the folder holds our files and nothing else."""
        found = find_objections(self.root, is_known_path)
        if found:
            shown = "; ".join(found[:_MOST_SHOWN]) + ("; ..." if len(found) > _MOST_SHOWN else "")
            raise InvalidInput(f"{self.root} is not safe to run: {shown}.")

    def prepare(self) -> None:
        """Before every start: drop what a crash or the last run left behind, then check."""
        wipe(self.run)
        remove_leftovers(self.root)
        self.check()


def is_known_path(path: str, *, is_folder: bool) -> bool:
    """Whether a site's folder may hold this path (relative, with slashes)."""
    if is_folder:
        return path in RECORDS
    parts = path.split("/")
    if len(parts) == 2:
        return parts[0] in RECORDS and _RECORD.fullmatch(parts[1]) is not None
    return path in FILES or path in LEDGER_COMPANIONS


def find_objections(root: Path, is_known: Callable[..., bool]) -> list[str]:
    """What is wrong with a folder, as short phrases; empty if nothing is."""
    found = _object_to_entry(root.lstat(), ".") if root.exists() else ["the folder is missing"]
    if found:
        return found
    for base, folders, files in os.walk(root, followlinks=False):
        for name in sorted([*folders, *files]):
            path = Path(base) / name
            shown = path.relative_to(root).as_posix()
            facts = path.lstat()
            is_folder = stat.S_ISDIR(facts.st_mode)
            if not is_known(shown, is_folder=is_folder):
                found.append(f"{shown} is not one of dpfda's files")
                folders[:] = [each for each in folders if each != name]  # what is in it does not matter any more
            found += _object_to_entry(facts, shown)
    return found


def _object_to_entry(facts: os.stat_result, shown: str) -> list[str]:
    mode = facts.st_mode
    if stat.S_ISLNK(mode):
        return [f"{shown} is a symbolic link"]
    found = []
    if stat.S_ISREG(mode) and facts.st_nlink > 1:
        found.append(f"{shown} has a second name elsewhere (a hard link)")
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        found.append(f"{shown} is not a plain file")
    if facts.st_uid != os.geteuid():
        found.append(f"{shown} belongs to another user")
    if mode & 0o077:
        found.append(f"{shown} can be read or changed by others")
    return found


def remove_leftovers(root: Path) -> None:
    """Remove temporary files of our own atomic writes; nobody ever reads them."""
    for folder in (root, *(root / name for name in RECORDS)):
        for path in folder.glob(".*") if folder.is_dir() and not folder.is_symlink() else ():
            match = _LEFTOVER.fullmatch(path.name)
            inside = "" if folder == root else f"{folder.name}/"
            if match and is_known_path(inside + match["name"], is_folder=False) and stat.S_ISREG(path.lstat().st_mode):
                path.unlink()


# ---------------------------------------------------------------- run/


def wipe(folder: Path) -> None:
    """Remove a folder and all that is in it; a link is removed, never followed."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


def write_tree(folder: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """Wipe the folder and write exactly these files; their SHA-256 by name."""
    wipe(folder)
    folder.mkdir(parents=True, mode=0o700)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, OWNER_ONLY)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def check_tree(folder: Path, manifest: Mapping[str, str]) -> None:
    """Refuse to go on unless the folder holds exactly the files of the manifest, with these contents."""
    parents = {parent.as_posix() for name in manifest for parent in Path(name).parents}

    def is_known(path: str, *, is_folder: bool) -> bool:
        return path in parents if is_folder else path in manifest

    found = find_objections(folder, is_known)
    if not found:
        found = list(_find_changes(folder, manifest))
    if found:
        raise InvalidInput(f"{folder} is not what dpfda wrote: {'; '.join(found[:_MOST_SHOWN])}.")


def _find_changes(folder: Path, manifest: Mapping[str, str]) -> Iterable[str]:
    for name, digest in manifest.items():
        path = folder / name
        if not path.is_file():
            yield f"{name} is missing"
        elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            yield f"{name} was changed"
