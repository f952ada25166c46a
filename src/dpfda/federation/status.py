"""How far a study is: written by `dpfda study run` after every round, read by `dpfda study status`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dpfda.federation.carried import ANSWERED
from dpfda.federation.files import write_json
from dpfda.federation.study import name_study
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.terms import StudyTerms

UNDER_WAY = ("inviting", "running")


@dataclass
class Status:
    """Public facts only: what sites answered, rounds, times on the coordinator's clock."""

    study: str
    rounds: int
    done: int
    phase: str = "inviting"
    message: str = ""
    sites: dict[str, dict[str, Any]] = field(default_factory=dict)
    round_seconds: list[float] = field(default_factory=list)
    updated: float = 0.0
    began_round: float = 0.0

    @staticmethod
    def begin(terms: StudyTerms, done: int) -> Status:
        """At the start of a run."""
        plan = make_plan(terms)
        sites = {
            silo.name: {"weight": silo.weight, "state": "invited", "answered": 0, "last_round": None}
            for silo in plan.silos
        }
        return Status(name_study(terms), len(plan.rounds), done, sites=sites)

    def note(self, codes: Mapping[str, str], *, asked: bool) -> None:
        """What the sites answered: that they did, or a word why not."""
        self.phase = "running" if asked else self.phase
        for name, code in codes.items():
            site = self.sites[name]
            site["state"] = ("answering" if asked else "joined") if code == ANSWERED else code
            if asked and code == ANSWERED:
                site["answered"] += 1
                site["last_round"] = self.done

    def advance(self, done: int) -> None:
        """One more round is over (replayed ones take no time)."""
        now = time.time()
        if self.began_round and done > self.done:
            self.round_seconds = [*self.round_seconds[-199:], now - self.began_round]
        self.done, self.began_round = done, now

    def end(self, phase: str, message: str = "") -> None:
        """The run is over."""
        self.phase, self.message = phase, message

    @property
    def absent(self) -> list[str]:
        """Sites that did not answer the last question."""
        return [name for name, site in self.sites.items() if site["state"] not in ("invited", "joined", "answering")]


class StatusFile:
    """One JSON file, replaced at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, status: Status) -> None:
        """Not synced: the transcript is what counts."""
        status.updated = time.time()
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_json(self._path, asdict(status), sync="nothing")

    def read(self) -> Status | None:
        """The last status, or None before the first run."""
        try:
            return Status(**json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return None
