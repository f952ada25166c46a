"""A study that a silo has joined: its plan, sums over the silo's curves, and the bounded sum that a query asks for.

What `Study.bounded_sum` returns is not private: `Silo.release` adds noise to it, and nobody else but the owner's auditor
(`silo/examination.py`) may see it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dpfda.privacy.clipping import BoundedSum, combine
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.clip_radius import ClipRule, SharedCount, clip_rule, released_count, track_lengths
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.plan import Plan
from dpfda.silo.release_statistics import Question, measure
from dpfda.silo.sums import CurveSums


@dataclass(frozen=True)
class Study:
    """A plan that a silo has agreed to, sums over its curves in that plan's units, and counts that it has released."""

    plan: Plan
    silo: str
    curves: CurveSums
    ledger: Ledger
    counts: dict[int, SharedCount | None] = field(default_factory=dict)

    def bounded_sum(self, query: Query) -> tuple[BoundedSum, int]:
        """The sum over the round's curves, each bounded first, with its sensitivity; and the number of curves."""
        planned = self.plan.rounds[query.round]
        batch = planned.batch(self.curves.n)
        question = Question(self.plan, query.arrays, self._clip_rule(query))
        sums = measure(planned.statistics, self.curves, batch, question)
        return combine(sums, self.plan.statistic_mus(self.silo, query.round)), len(batch)

    def _clip_rule(self, query: Query) -> ClipRule | None:
        """The silo's own radius, from the counts that it released in earlier rounds of the run (`clip_radius.py`)."""
        if "displacements" not in query.arrays:
            return None
        counted = self.plan.counted_before(query.round)
        if not self.counts.keys() >= set(counted):  # what is on record never changes
            stored = self.ledger.releases(query.run)
            for index in stored.keys() & set(counted) - self.counts.keys():
                self.counts[index] = released_count(self.plan, index, Release.decode(stored[index]), self.curves.n)
        counts = [self.counts.get(index) for index in counted]
        lengths = track_lengths(query.arrays["length_prior"].tolist(), query.arrays["displacements"].tolist(), counts)
        return clip_rule(lengths, self.plan.silo(self.silo).clip_factor)
