"""A power cut at the coordinator: names that no sync has made durable are gone, and other sites answer afterwards."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dpfda import Ledger, Silo, TransportError
from dpfda.curves.simulated import simulate_mean
from dpfda.errors import DpfdaError
from dpfda.methods.run import run_study
from dpfda.protocol.terms import SiloTerms, StudyTerms
from dpfda.transports.checkpoint import CheckpointTransport, Transcript
from dpfda.transports.in_process import InProcessTransport

NAMES = ("a", "b", "c")
TERMS = StudyTerms(
    "adaptive", (0.0, 1.0), (-4.0, 4.0), tuple(SiloTerms(name, 300, 1.0, 1e-5, 5.0) for name in NAMES), min_silos=2
)


class Disk:
    """Knows which names in folders a sync has made durable: all real, but for the power cut."""

    def __init__(self, monkeypatch):
        self._durable: dict[Path, set[str]] = {}
        self._sync = os.fsync
        monkeypatch.setattr(os, "fsync", self._fsync)

    def _fsync(self, descriptor):
        self._sync(descriptor)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            folder = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            self._durable[folder] = {path.name for path in folder.iterdir()}

    def holds(self, path):
        return path.name in self._durable.get(path.parent, set())

    def lose_power(self, folder):
        for path in list(folder.iterdir()):
            if not self.holds(path):
                path.unlink()


class Sites(InProcessTransport):
    """As the server has it: a silo that is away or refuses is missing, and too few are an error."""

    def __init__(self, root, away=(), cut_in=None):
        super().__init__([self._open(root, name, k) for k, name in enumerate(NAMES)])
        self._away, self._cut_in = away, cut_in

    @staticmethod
    def _open(root, name, k):
        path = root / f"{name}.ledger"
        if not path.exists():
            Ledger.create(path, 1.0, 1e-5)
        data = simulate_mean(300, 5, rng=k)
        return Silo(data, epsilon=1.0, delta=1e-5, name=name, points_per_curve=5.0, ledger=path)

    def gather(self, query):
        found = {}
        for silo in self._members:
            if (silo.name, query.round) not in self._away:
                try:
                    found[silo.name] = silo.release(query)
                except DpfdaError:
                    continue
        if query.round == self._cut_in:
            raise KeyboardInterrupt
        if len(found) < 2:
            raise TransportError(f"{len(found)} of 3 answered round {query.round}.")
        return found


@pytest.mark.parametrize("round_", [1, 2, 4, 6])
def test_after_a_power_cut_other_sites_answer_and_the_study_ends(tmp_path, monkeypatch, round_) -> None:
    """One site missed the round before; sites have answered this one when the power goes, and all are there afterwards."""
    disk, folder = Disk(monkeypatch), tmp_path / "study" / "transcript"
    with pytest.raises(KeyboardInterrupt):
        run_study(TERMS, CheckpointTransport(Sites(tmp_path, {("c", round_ - 1)}, round_), folder), "run")
    disk.lose_power(folder)
    assert disk.holds(folder)
    assert Transcript(folder).rounds() == round_
    outcome = run_study(TERMS, CheckpointTransport(Sites(tmp_path), folder), "run")
    assert outcome.private
    assert Transcript(folder).answers() == {"a": 7, "b": 7, "c": 6}
