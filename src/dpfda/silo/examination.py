"""For the owner's auditor only: the sums to which a silo would add noise.

What an `Examiner` returns is NOT PRIVATE. It exists so that an audit can hold the releases of an installation against the
exact numbers behind them, on curves that the auditor made up. Methods, transports, federation and all other rooms but
`audit/` must not import this module; an import contract in pyproject.toml says so.
"""

from __future__ import annotations

from dpfda.curves.curves import Curves
from dpfda.curves.outcomes import Outcomes
from dpfda.privacy.clipping import BoundedSum
from dpfda.protocol.messages import Query
from dpfda.protocol.plan import Plan
from dpfda.silo.study import Study, sum_outcomes


class Examiner:
    """What a silo with these curves computes in a study, before noise. It spends nothing."""

    def __init__(self, curves: Curves | Outcomes, plan: Plan, *, name: str) -> None:
        self._study = Study(plan, name, sum_outcomes(curves, plan))

    def bounded_sum(self, query: Query) -> BoundedSum:
        """The sum over the round's bounded curves, and its sensitivity. NOT PRIVATE: for the owner's eyes."""
        return self._study.bounded_sum(query)[0]
