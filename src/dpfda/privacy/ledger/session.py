"""The rules of a ledger inside one transaction: what may be answered, what it costs, what is written."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from dpfda.errors import BudgetExceeded, LedgerError, ProtocolError
from dpfda.privacy.accounting import Event, GaussianEvent, event_to_dict, gaussian_epsilon
from dpfda.privacy.ledger import chain, totals
from dpfda.privacy.ledger.rows import RunRecord, State, Transaction, altered

MOST_LOST_DRAWS, MOST_LOST_IN_ALL = 32, 256  # of one run, of a ledger: runs cost nothing to begin
MOST_DEBITS = 1_000  # of one run: rounds that cost next to nothing must not fill the ledger
ENDED = "ended"  # the question of the last debit of a run that a loss has ended
TOLERANCE = 1e-12  # sums of planned mu^2 differ in their last digits; `mu_for` has left room for this


@dataclass(frozen=True)
class Budget:
    """The total: (epsilon, delta), and the same as mu^2."""

    epsilon: float
    delta: float
    mu_squared: float

    def refuse_excess(self, asked: int, spent: int) -> None:
        """Raise if the ledger would stand at `asked`."""
        if totals.rounded(asked) <= self.mu_squared * (1 + TOLERANCE):
            return
        before = totals.rounded(spent)
        in_all, spent_, left = (
            gaussian_epsilon(max(0.0, total) ** 0.5, self.delta)
            for total in (totals.rounded(asked), before, self.mu_squared - before)
        )
        raise BudgetExceeded(
            f"This would bring what is spent to epsilon = {in_all:.4g}, but the budget allows epsilon = {self.epsilon:g} "
            f"(at delta = {self.delta:g}): epsilon = {spent_:.4g} is spent and {left:.4g} is left for one more study; "
            "nothing was spent now."
        )


class Session:
    """One transaction on a ledger, with the facts that it began with."""

    def __init__(self, transaction: Transaction, meta: dict[str, str], budget: Budget) -> None:
        self.transaction, self.meta, self.budget = transaction, meta, budget
        self.state = State.decode(meta["state"])

    def record(self, run: str) -> RunRecord:
        """The facts of a run; those of a new one if it has none."""
        return self.transaction.run(run) or RunRecord(run, head=chain.first_head(self.meta["id"], run))

    def kept(self, record: RunRecord, round: int, digest: str) -> bytes | None:
        """The release on record, or None; a run keeps its terms, and a round is for one question only."""
        if record.debits and record.terms != chain.terms_of(digest):
            raise ProtocolError(f"Run {record.run!r} began under other terms; a study's plan cannot change.")
        asked = self.transaction.asked(record.run, round) if round <= record.last_round else None
        if asked is None:
            return None
        if asked[0] != digest:
            raise ProtocolError(
                f"Round {round} of run {record.run!r} was asked with another question; it is not answered twice."
            )
        found = self.transaction.release(record.run, round)
        if found is None or chain.sha256(found[0]) != asked[1]:
            raise LedgerError(
                altered(f"the stored release of round {round} of run {record.run!r} is not what was paid for")
            )
        return bytes(found[0])

    def refuse(self, record: RunRecord, round: int, event: Event) -> None:
        """Raise unless this debit may follow those on record."""
        if self.state.head != (self.transaction.last_hash() or chain.genesis(self.meta)):
            raise LedgerError(altered("rows are missing or were added at its end"))
        if self.has_ended(record):
            raise ProtocolError(
                f"Run {record.run!r} has ended, since its ledger was lost meanwhile; begin another study."
            )
        if round < record.last_round:
            raise ProtocolError(
                f"Run {record.run!r} is at round {record.last_round}; round {round} is past and cannot be asked any more."
            )
        if record.debits >= MOST_DEBITS or round >= MOST_DEBITS:
            raise ProtocolError(f"A run has at most {MOST_DEBITS} rounds.")
        self.budget.refuse_excess(self._total_with(record, event)[0], totals.read(self.state.spent))

    def _total_with(self, record: RunRecord, event: Event) -> tuple[int, int]:
        """What the ledger stands at after an event, and what the event's part has cost by then."""
        common, dearest, part = totals.read(record.common), totals.read(record.dearest), 0
        if event.part is None:
            common += totals.cost(event)
        else:
            part = totals.read(self.transaction.part(record.run, event.part)) + totals.cost(event)
            dearest = max(dearest, part)
        others = totals.read(self.state.spent) - chain.price(record)
        return others + totals.run_price(common, dearest), part

    def debit(
        self, record: RunRecord, round: int, event: Event, *, sha256: str, at: str, actor: str, silo: str, digest: str,
        attempt: int = 1,
    ) -> RunRecord:  # fmt: skip
        """Write one debit and the running totals after it; the facts of the run by then."""
        total, part = self._total_with(record, event)
        row = chain.chained(
            self.state.head, seq=self.state.debits + 1, at=at, actor=actor, silo=silo, run=record.run, round=round,
            attempt=attempt, digest=digest, event=json.dumps(event_to_dict(event), sort_keys=True),
            position=record.debits, before=record.head, sha256=sha256,
        )  # fmt: skip
        self.transaction.insert(row)
        if event.part is not None:
            self.transaction.set_part(record.run, event.part, totals.text(part))
        after = chain.followed(record, row, event, part - totals.cost(event) if event.part is not None else 0)[0]
        self.state = replace(self.state, head=row.hash, debits=row.seq, spent=totals.text(total))
        return after

    def end(self, record: RunRecord, at: str) -> RunRecord:
        """A run that gets no further answer: its last possible round is taken by a debit that costs next to nothing.

        What a part of a run has cost is known only where every debit is: a round that was answered and forgotten would be
        answered again at no price, since a run costs its dearest part.
        """
        last = MOST_DEBITS - 1
        if not record.debits or record.last_round >= last:
            return record
        event = GaussianEvent(1e-100, label="ended: its ledger was lost")
        digest = f"{record.terms}:{ENDED}"
        return self.debit(record, last, event, sha256="", at=at, actor="", silo="", digest=digest)

    def has_ended(self, record: RunRecord) -> bool:
        """Whether a loss has ended this run."""
        last = MOST_DEBITS - 1
        asked = self.transaction.asked(record.run, last) if record.last_round == last else None
        return asked is not None and asked[0] == f"{record.terms}:{ENDED}"

    def counted(self, record: RunRecord, event: Event, change: int) -> RunRecord:
        """A draw counts as lost from before it is made until it is committed, or found to be needless."""
        lost, price = record.lost + change, totals.read(record.lost_price) + change * totals.cost(event)
        for count, most, name in (
            (lost, MOST_LOST_DRAWS, f"run {record.run!r}"),
            (self.state.lost + change, MOST_LOST_IN_ALL, "all runs"),
        ):
            if change > 0 and count > most:
                raise ProtocolError(
                    f"{count - 1} answers of {name} were drawn and lost in crashes, so "
                    f"{'this ledger' if name == 'all runs' else 'it'} is closed; find out why the process dies, then pay "
                    "for the lost answers with `dpfda budget settle`."
                )
        if record.lost + change < 0:
            return record
        self.state = replace(self.state, lost=max(0, self.state.lost + change))
        return replace(record, lost=lost, lost_price=totals.text(max(0, price) if lost else 0))

    def write(self, record: RunRecord) -> None:
        """The facts of the run and the running totals."""
        self.transaction.set_run(record)
        self.transaction.set_meta("state", self.state.encode())
