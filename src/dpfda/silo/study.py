"""A study that a silo has joined: its plan, sums over the silo's curves, and the bounded sum that a query asks for.

Of several outcomes each has its own sums. A round measures one of them, and replacing a subject changes one curve of it.

What `Study.bounded_sum` returns is not private: `Silo.release` adds noise to it, and nobody else but the owner's auditor
(`silo/examination.py`) may see it.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpfda.curves.curves import Curves
from dpfda.curves.outcomes import Outcomes
from dpfda.privacy.clipping import BoundedSum, combine
from dpfda.protocol.messages import Query
from dpfda.protocol.plan import Plan
from dpfda.silo.chunked_sums import sums_of_curves
from dpfda.silo.release_statistics import Question, measure
from dpfda.silo.sums import CurveSource, CurveSums


@dataclass(frozen=True)
class Study:
    """A plan that a silo has agreed to, and sums over its curves in that plan's units, for each outcome."""

    plan: Plan
    silo: str
    outcomes: tuple[CurveSums, ...]

    def bounded_sum(self, query: Query) -> tuple[BoundedSum, int]:
        """The sum over the round's curves, each bounded first, with its sensitivity; and the number of curves."""
        planned = self.plan.rounds[query.round]
        curves = self.outcomes[planned.outcome]
        batch = planned.batch(curves.n)
        question = Question(self.plan.of_outcome(planned.outcome), query.arrays)
        sums = measure(planned.statistics, curves, batch, question)
        return combine(sums, self.plan.statistic_mus(self.silo, query.round)), len(batch)


def sum_outcomes(curves: Curves | CurveSource | Outcomes, plan: Plan) -> tuple[CurveSums, ...]:
    """The sums of curves in the units of a plan; of each outcome, in those of its own y."""
    if isinstance(curves, Outcomes):
        return tuple(
            sums_of_curves(each, plan.basis, planned.scaling)
            for each, planned in zip(curves, plan.outcomes, strict=True)
        )
    if isinstance(curves, Curves):
        return (sums_of_curves(curves, plan.basis, plan.scaling),)
    return (curves.sums(plan.basis, plan.scaling),)
