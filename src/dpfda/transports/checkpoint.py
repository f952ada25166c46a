"""A transport that records each round's releases durably, and replays them when a study is resumed.

The engine's loop is deterministic given the releases, so resuming is replaying the transcript and going on. Releases are
already private: the transcript may be kept, copied and shown.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from dpfda.errors import ProtocolError, TransportError
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.terms import StudyTerms
from dpfda.protocol.transport import Transport

LeftOut = Callable[[Sequence[str], str], None]  # is told the silos' names, and why in a few words

_MAGIC = b"dpfda-round-1\n"
_SEAL = 32


@runtime_checkable
class Doubting(Protocol):
    """A transport that closes rounds by a quorum, and can be told whose answers make none."""

    def doubt(self, silos: Sequence[str]) -> None: ...


class _TooFew(TransportError):
    """Without the answers of these silos too few are left."""

    def __init__(self, names: Sequence[str], sentence: str) -> None:
        super().__init__(sentence)
        self.names = tuple(names)


class Transcript:
    """One file per round in a folder, each written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def rounds(self) -> int:
        """The number of rounds on record, from the first without a gap."""
        count = 0
        while self._path(count).exists():
            count += 1
        return count

    def record(self, query: Query, releases: Mapping[str, Release]) -> None:
        """Keep the answers of one round."""
        messages = [release.encode() for release in releases.values()]
        header = {"round": query.round, "query": query.digest(), "sizes": [len(message) for message in messages]}
        body = _MAGIC + json.dumps(header).encode() + b"\n" + b"".join(messages)
        # Its name must outlive a power cut, too: asked again, other silos might answer, and the next question be another
        # than the one that silos have answered already.
        _write_whole(self._path(query.round), body + hashlib.sha256(body).digest())

    def recorded(self, query: Query) -> dict[str, Release] | None:
        """The answers of one round, if they are on record and were answers to this very question."""
        path = self._path(query.round)
        if not path.exists():
            return None
        digest, messages = _read(path)
        if digest != query.digest():
            raise ProtocolError(f"The record of round {query.round} belongs to another question; use a fresh folder.")
        releases = [Release.decode(message) for message in messages]
        return {release.silo: release for release in releases}

    def answers(self) -> dict[str, int]:
        """How many rounds each silo answered."""
        counts: dict[str, int] = {}
        for index in range(self.rounds()):
            for message in _read(self._path(index))[1]:
                silo = Release.decode(message).silo
                counts[silo] = counts.get(silo, 0) + 1
        return counts

    def _path(self, round_: int) -> Path:
        return self._folder / f"round-{round_:06d}.bin"


class CheckpointTransport:
    """Wraps a transport: rounds on record are replayed, new ones are asked and recorded before anybody sees them.

    A silo whose ledger is older than the record counts as absent, so that it cannot end the study of the others; nor can one
    that says it used a seed make a simulation of a study in which others have answered without. `on_left_out` is told who is
    left out, and why. Where too few answers are left then, a transport that can be told so (`Doubting`) asks once more, and
    waits for others in their place: a round may have closed on the answers that are left out.
    """

    def __init__(self, inner: Transport, folder: Path, on_left_out: LeftOut | None = None) -> None:
        self._inner, self._on_left_out, self._least = inner, on_left_out, 1
        self._folder = folder
        self._transcript = Transcript(folder)
        self._latest: dict[str, Release] = {}  # of each silo, as far as this process has seen

    def open(self, terms: StudyTerms, run: str) -> None:
        """Bind the folder to these terms; ask the silos only if rounds are left."""
        if not self._folder.exists():
            self._folder.mkdir(parents=True, mode=0o700)
            _sync_folder(self._folder.parent)
        bind(self._folder, terms, run)
        self._least = terms.min_silos
        if self._transcript.rounds() < len(make_plan(terms).rounds):
            self._inner.open(terms, run)

    def gather(self, query: Query) -> Mapping[str, Release]:
        """Replay or ask."""
        known = self._transcript.recorded(query)
        if known is not None:
            self._latest.update(known)
            return known
        releases = self._ask(query)
        self._transcript.record(query, releases)
        self._latest.update(releases)
        return releases

    def _ask(self, query: Query) -> dict[str, Release]:
        """The answers that can be used; asked again, each time without a silo more, as long as too few of them are."""
        faults = ""
        while True:
            try:
                given = self._inner.gather(query)
            except TransportError as error:
                if not faults:
                    raise
                raise TransportError(f"{faults}{error}") from error
            try:
                return self._leave_out_older(self._leave_out_seeded(given))
            except _TooFew as few:
                if not isinstance(self._inner, Doubting):
                    raise
                self._inner.doubt(few.names)
                faults += f"{few} "

    def _leave_out_older(self, releases: Mapping[str, Release]) -> dict[str, Release]:
        """The releases of silos whose ledgers follow the record; the others are absent, unless too few are left then."""
        older = [name for name, release in releases.items() if not self._follows(name, release)]
        return self._leave_out(
            releases, older, "older ledger", "is older than the record of this study; its owner must find the right one or "
            "use `dpfda budget restore`",
        )  # fmt: skip

    def _leave_out_seeded(self, releases: Mapping[str, Release]) -> dict[str, Release]:
        """The releases without those made with a seed, unless all are, as in a simulation."""
        seeded = [name for name, release in releases.items() if not release.private]
        simulated = len(seeded) == len(releases) and not any(release.private for release in self._latest.values())
        return self._leave_out(
            releases, [] if simulated else seeded, "used a seed", "is that of a simulation, and other silos' are not; its "
            "owner must take the seed out of the policy",
        )  # fmt: skip

    def _leave_out(
        self, releases: Mapping[str, Release], names: Sequence[str], reason: str, fault: str
    ) -> dict[str, Release]:
        """The releases of the other silos, unless too few are left then."""
        kept = {name: release for name, release in releases.items() if name not in names}
        if names and len(kept) < max(1, self._least):
            raise _TooFew(names, f"The ledger of silo {names[0]!r} {fault}. The answer was not recorded.")
        if names and self._on_left_out is not None:
            self._on_left_out(names, reason)
        return kept

    def _follows(self, name: str, release: Release) -> bool:
        earlier = self._latest.get(name)
        return earlier is None or not release.private or release.follows(earlier)  # a simulation may begin anew


class ReplayTransport:
    """A finished study's transcript as a transport: the engine computes the same result again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._transcript = Transcript(folder)

    def open(self, terms: StudyTerms, run: str) -> None:
        """The folder must hold the study of these terms, to its end."""
        bind(self._folder, terms, run)
        done, planned = self._transcript.rounds(), len(make_plan(terms).rounds)
        if done < planned:
            raise TransportError(f"The study is at round {done} of {planned}; there is no result yet.")

    def gather(self, query: Query) -> Mapping[str, Release]:
        """What is on record."""
        known = self._transcript.recorded(query)
        if known is None:
            raise TransportError(f"Round {query.round} is not on record.")
        return known


def bind(folder: Path, terms: StudyTerms, run: str) -> None:
    """A folder belongs to one run of one study, for good: of these terms, and of the plan that is made of them here."""
    mark, path = {"run": run, "terms": terms.digest(), "plan": make_plan(terms).digest()}, folder / "terms.json"
    if not path.exists():
        if not folder.exists():
            raise TransportError("This study has not begun.")
        _write_whole(path, json.dumps(mark).encode())
    if json.loads(path.read_bytes()) != mark:
        raise ProtocolError("The folder holds the record of another study; use a fresh one.")


def _read(path: Path) -> tuple[str, list[bytes]]:
    content = path.read_bytes()
    body, seal = content[:-_SEAL], content[-_SEAL:]
    if not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != seal:
        raise TransportError(f"The record {path.name} is damaged; restore it from a backup.")
    line, _, rest = body[len(_MAGIC) :].partition(b"\n")
    header, messages = json.loads(line), []
    for size in header["sizes"]:
        messages.append(rest[:size])
        rest = rest[size:]
    return str(header["query"]), messages


def _write_whole(path: Path, content: bytes) -> None:
    """In place at once, and there after a power cut."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
