"""The default method for simulations: the production coordinator and statistics, without ledger and messages.

Everything that decides a result is production code: `AdaptiveCoordinator`, `release_statistics.measure`,
`release_gaussian` and the seeded noise. Only what protects real data is left out: the ledger, digests, encoding and the
checks of queries; and bands. With the same seed the result has the same bits as `PrivateMean.fit`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dpfda._typing import Floats
from dpfda.curves.curves import Curves
from dpfda.methods.adaptive.coordinator import AdaptiveCoordinator
from dpfda.privacy.clipping import combine
from dpfda.privacy.gaussian import release_gaussian
from dpfda.privacy.noise import SeededNoise
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan
from dpfda.silo.chunked_sums import sums_of_prepared
from dpfda.silo.prepared import prepare
from dpfda.silo.release_statistics import Question, measure
from dpfda.silo.sums import CurveSums

_RUN = "simulation"


def prepare_sums(plan: Plan, silos: Sequence[Curves]) -> dict[str, CurveSums]:
    """The silos' curves, prepared and packed once for all plans with the same basis and scaling."""
    return {
        terms.name: sums_of_prepared(prepare(curves, plan.basis, plan.scaling), plan.basis, threads=1)
        for terms, curves in zip(plan.silos, silos, strict=True)
    }


class AdaptiveRuns:
    """Many runs of one adaptive plan on different curves; what depends on the plan alone is computed once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._mus = {
            (terms.name, index): plan.statistic_mus(terms.name, index)
            for terms in plan.silos
            for index in range(len(plan.rounds))
        }

    def run(self, sums: Mapping[str, CurveSums], seed: int) -> Floats:
        """Coefficients of shape (d+1, r), in the plan's units. NOT PRIVATE: the noise is seeded."""
        coordinator = AdaptiveCoordinator(self.plan, with_band=False)
        for index in range(len(self.plan.rounds)):
            question = Question(self.plan, coordinator.question(index))
            releases = {name: self._release(name, index, curves, question, seed) for name, curves in sums.items()}
            coordinator.learn(index, releases)
        return coordinator.coefficients()

    def _release(self, name: str, index: int, curves: CurveSums, question: Question, seed: int) -> Release:
        mus, batch = self._mus[name, index], self.plan.rounds[index].batch(curves.n)
        bounded = combine(measure(self.plan.rounds[index].statistics, curves, batch, question), mus)
        noise = SeededNoise(seed).stream(name, index)
        noisy = release_gaussian(bounded.total, bounded.sensitivity, math.hypot(*mus), noise)
        return Release(_RUN, index, name, noisy.values / len(batch), noisy.sd / len(batch), False)
