"""Several outcomes of the same subjects: one coordinator each, and what the visits are is learnt once."""

from __future__ import annotations

from collections.abc import Mapping

from dpfda._typing import Floats
from dpfda.methods.adaptive.coordinator import AdaptiveCoordinator
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans.adaptive import OF_VISITS


class OutcomesCoordinator:
    """Asks for one outcome after the other; `each` are the coordinators of those that were begun.

    An outcome whose rounds do not ask for the visits shares those of the first: see `share_visits`.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.each: list[AdaptiveCoordinator] = []

    def question(self, index: int) -> dict[str, Floats]:
        """The arrays of round `index` of the whole plan."""
        place, own = self.plan.locate(index)
        if place == len(self.each):
            self.each.append(self._begin(place))
        return self.each[place].question(own)

    def learn(self, index: int, releases: Mapping[str, Release]) -> None:
        """Take in the answers of round `index` of the whole plan."""
        place, own = self.plan.locate(index)
        self.each[place].learn(own, releases)

    def _begin(self, place: int) -> AdaptiveCoordinator:
        plan = self.plan.of_outcome(place)
        if place == 0 or not share_visits(self.plan):
            return AdaptiveCoordinator(plan)
        state = self.each[0].state
        assert state is not None
        return AdaptiveCoordinator(plan, state.visits)


def share_visits(plan: Plan) -> bool:
    """Whether the rounds of later outcomes leave out what those of the first ask of the visits."""
    asked = [
        {type(kind) for planned in plan.of_outcome(place).rounds for kind in planned.statistics}
        for place in range(plan.count_outcomes)
    ]
    return not asked[-1].intersection(OF_VISITS)
