"""A study that a silo has joined: its plan, sums over the silo's curves, and the bounded sum that a query asks for.

What `Study.bounded_sum` returns is not private: `Silo.release` adds noise to it, and nobody else but the owner's auditor
(`silo/examination.py`) may see it.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpfda.privacy.clipping import BoundedSum, combine
from dpfda.protocol.messages import Query
from dpfda.protocol.plan import Plan
from dpfda.silo.release_statistics import Question, measure
from dpfda.silo.sums import CurveSums


@dataclass(frozen=True)
class Study:
    """A plan that a silo has agreed to, and sums over its curves in that plan's units."""

    plan: Plan
    silo: str
    curves: CurveSums

    def bounded_sum(self, query: Query) -> tuple[BoundedSum, int]:
        """The sum over the round's curves, each bounded first, with its sensitivity; and the number of curves."""
        planned = self.plan.rounds[query.round]
        batch = planned.batch(self.curves.n)
        question = Question(self.plan, query.arrays)
        sums = measure(planned.statistics, self.curves, batch, question)
        return combine(sums, self.plan.statistic_mus(self.silo, query.round)), len(batch)
