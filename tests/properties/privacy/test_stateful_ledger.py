"""Any interleaving of draws, commits, replays, crashes and reopenings leaves a ledger that tells the truth."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dpfda.errors import BudgetExceeded, LedgerError, ProtocolError
from dpfda.privacy import GaussianEvent, Ledger, mu_for, mu_squared
from dpfda.privacy.ledger.session import MOST_LOST_DRAWS

EPSILON, DELTA = 1.0, 1e-5
BUDGET = mu_for(EPSILON, DELTA) ** 2
RUNS = st.sampled_from(["a", "b"])
ROUNDS = st.integers(0, 3)
DIGESTS = st.sampled_from(["terms:q", "terms:other", "new terms:q"])
SHARES = st.sampled_from([0.001, 0.1, 0.4, 1.0])
PARTS = st.sampled_from([None, None, 0, 1])


class LedgerMachine(RuleBasedStateMachine):
    """The model: events by run, digests by round, stored payloads. A crash drops the object, never the file."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "ledger.db"
        self.ledger = Ledger.create(self.path, EPSILON, DELTA)
        self.events: dict[str, list[GaussianEvent]] = {}
        self.digests: dict[tuple[str, int], str] = {}
        self.kept: dict[tuple[str, int], bytes] = {}
        self.open: list[tuple[str, int, GaussianEvent, str]] = []
        self.mine: dict[str, int] = {}  # draws that the present object has counted
        self.lost: dict[str, int] = {}
        self.count = 0

    def total(self, events) -> float:
        return sum(mu_squared(run) for run in events.values() if run)

    def refused_rightly(self, error, question) -> None:
        run, round_, event, digest = question
        others = {key: value for key, value in self.digests.items() if key[0] == run}
        if isinstance(error, BudgetExceeded):
            planned = {**self.events, run: [*self.events.get(run, []), event]}
            assert self.total(planned) > BUDGET * (1 - 1e-9)
            return
        known, last = others.get((run, round_)), max((key[1] for key in others), default=-1)
        terms = {value.rpartition(":")[0] for value in others.values()}
        assert (
            (known is not None and known != digest)
            or (terms and digest.rpartition(":")[0] not in terms)
            or round_ < last
            or self.lost.get(run, 0) == MOST_LOST_DRAWS
        )

    @rule(run=RUNS, round_=ROUNDS, digest=DIGESTS, share=SHARES, part=PARTS)
    def begin(self, run, round_, digest, share, part) -> None:
        question = (run, round_, GaussianEvent((BUDGET * share) ** 0.5, part), digest)
        try:
            meanwhile = self.ledger.begin(*question)
        except (ProtocolError, BudgetExceeded) as error:
            self.refused_rightly(error, question)
            return
        assert meanwhile == self.kept.get((run, round_))
        if meanwhile is None:
            self.lost[run] = self.lost.get(run, 0) + 1
            self.mine[run] = self.mine.get(run, 0) + 1
            self.open.append(question)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def commit(self, data) -> None:
        """Any draw that is under way, of this process or another; meanwhile others may have been committed."""
        question = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        run, round_, event, digest = question
        payload = f"answer {data.draw(st.integers(0, 10**6))}".encode()
        mine = self.mine.get(run, 0) > 0
        self.mine[run] = self.mine.get(run, 0) - mine
        try:
            kept = self.ledger.commit(*question, lambda head: payload)
        except (ProtocolError, BudgetExceeded) as error:
            self.refused_rightly(error, question)
            self.lost[run] = self.lost.get(run, 0) - mine  # refused before the draw: not lost
            return
        self.lost[run] = max(0, self.lost.get(run, 0) - 1)
        if (run, round_) in self.kept:
            assert kept == self.kept[run, round_]
            return
        assert kept == payload
        self.kept[run, round_], self.digests[run, round_] = payload, digest
        self.events.setdefault(run, []).append(event)
        self.count += 1

    @rule(run=RUNS, round_=ROUNDS, digest=DIGESTS)
    def stored(self, run, round_, digest) -> None:
        try:
            payload = self.ledger.stored(run, round_, digest)
        except ProtocolError:
            return
        assert payload == self.kept.get((run, round_))

    @rule()
    def crash(self) -> None:
        """The process dies: what was drawn and not committed is gone, was not charged, and stays counted."""
        self.open.clear()
        self.mine.clear()
        self.ledger = Ledger.open(self.path)

    @rule()
    def second_process(self) -> None:
        """Another object on the same file; draws of the first stay valid."""
        self.mine.clear()
        self.ledger = Ledger.open(self.path)

    @rule()
    def create_again(self) -> None:
        with pytest.raises(LedgerError):
            Ledger.create(self.path, 1000.0, DELTA)

    @invariant()
    def tells_the_truth(self) -> None:
        spent = self.ledger.spent()
        assert spent.mu_squared == pytest.approx(self.total(self.events), rel=1e-12)
        assert spent.mu_squared <= BUDGET * (1 + 1e-12)
        assert spent.debits == self.count == len(self.kept)
        assert {run: self.ledger.lost_draws(run) for run in self.lost} == self.lost

    def teardown(self) -> None:
        self.ledger.verify()
        Ledger.open(self.path).verify()
        assert self.path.stat().st_mode & 0o777 == 0o600
        shutil.rmtree(self.folder)


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(
    max_examples=12, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
