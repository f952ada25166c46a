"""Any interleaving of joins, questions, crashes and restarts: one answer per round, each paid for, never over budget."""

from __future__ import annotations

from contextlib import suppress
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from installed import installed

from dpfda import BudgetExceeded, Curves, Ledger, ProtocolError, Silo
from dpfda.basis.basis import make_basis
from dpfda.protocol.messages import Query
from dpfda.protocol.plan import Plan, Round, SiloPlan
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import ClippedGradient, LengthHistogram, LevelHistogram, ShareBelow
from dpfda.protocol.terms import SiloTerms

N, EPSILON, DELTA, NAME = 6, 1.0, 1e-5, "clinic"
RUNS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from([0.0, 0.5, 1e6, np.nan, np.inf, -1e7])


class Killed(BaseException):
    """The process dies here."""


def plan(kind: int) -> Plan:
    """Plans of one shape and different terms: the third is too dear, the fourth uses batches."""
    rounds = [
        (Round((ShareBelow(),)),) * 3,
        (
            Round((LevelHistogram(4),)),
            Round((LengthHistogram(),)),
            Round((ClippedGradient(), ShareBelow())),
        ),
        (Round((ShareBelow(),)),) * 3,
        tuple(Round((ShareBelow(),), part, 3) for part in range(3)),
    ][kind]
    share = (0.2, 0.1, 0.5, 0.6)[kind]
    shares = tuple((share,) * len(planned.statistics) for planned in rounds)
    silos = (SiloPlan(SiloTerms(NAME, N, EPSILON, DELTA), shares=shares),)
    return Plan(
        "adaptive", f"plan {kind}", make_basis("cosine", 1), 1, Scaling((-1.0, 1.0), ((1.0, 1.0),)), rounds, silos
    )


PLANS = [plan(kind) for kind in range(4)]


def question(run: str, round_: int, kind: int, value: float) -> Query:
    sizes = PLANS[kind].query_sizes(round_) if round_ < 3 else {"iterate": 1}
    return Query(run, round_, {name: np.full(size, value) for name, size in sizes.items()})


class SiloMachine(RuleBasedStateMachine):
    """The coordinator's view: what it was told, and what the ledger says about it."""

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        ids = np.repeat(np.arange(N), 2)
        self.curves = Curves.from_long(ids, rng.uniform(size=ids.size), rng.normal(size=ids.size))
        self.ledger = Ledger.in_memory(2 * EPSILON, DELTA)
        self.answers: dict[tuple[str, int], bytes] = {}
        self.restart()

    @rule()
    def restart(self) -> None:
        self.silo = Silo(self.curves, epsilon=EPSILON, delta=DELTA, name=NAME, ledger=self.ledger)

    @rule(run=RUNS, kind=st.integers(0, 3))
    def join(self, run, kind) -> None:
        try:
            self.silo.join(installed(PLANS[kind]), run)
        except BudgetExceeded:
            return
        except ProtocolError:
            return
        assert kind != 2, "a plan that is too dear was joined"

    @rule(run=RUNS, round_=st.integers(0, 3), kind=st.integers(0, 3), value=VALUES)
    def ask(self, run, round_, kind, value) -> None:
        before = self.ledger.spent().debits
        try:
            answer = self.silo.release(question(run, round_, kind, value)).encode()
        except (ProtocolError, BudgetExceeded):
            assert self.ledger.spent().debits == before, "a refusal was charged"
            return
        known = self.answers.setdefault((run, round_), answer)
        assert known == answer, "two answers to one round"

    @rule(run=RUNS, round_=st.integers(0, 2), kind=st.integers(0, 3), when=st.sampled_from(["begin", "draw", "commit"]))
    def die(self, run, round_, kind, when) -> None:
        """Killed before or while drawing, or before the answer is committed; then started again. Nothing is charged."""
        place, name = {"begin": (Ledger, "begin"), "draw": (Silo, "_noise"), "commit": (Ledger, "commit")}[when]
        failures = suppress(Killed, ProtocolError, BudgetExceeded)
        with patch.object(place, name, side_effect=Killed), failures:
            self.silo.release(question(run, round_, kind, 0.0))
        self.restart()

    @invariant()
    def everything_is_paid(self) -> None:
        paid = {(entry.run, entry.round) for entry in self.ledger.log()}
        assert set(self.answers) == paid
        assert len(paid) == self.ledger.spent().debits, "a round was charged twice"
        spent = self.ledger.spent()
        assert spent.mu_squared <= spent.budget_mu_squared * (1 + 1e-12)
        stored = {(run, number) for run in "abc" for number in self.ledger.releases(run)}
        assert stored == set(self.answers)

    def teardown(self) -> None:
        self.ledger.verify()


TestSilo = SiloMachine.TestCase
TestSilo.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
