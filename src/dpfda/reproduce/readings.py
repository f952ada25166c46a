"""Readings: what the published algorithm is, where the paper prints two things or leaves one open.

Each is a choice of four points: where the noise w_t stands, what its size is divided by, which logarithm is in the radii,
and which curves a round uses. `exact_epsilon` prices what a reading does, not what it says. Readings that cost more than
they claim exist here only, for simulated data: no silo runs them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpfda.errors import InvalidInput
from dpfda.privacy.accounting import gaussian_epsilon
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import EntrywiseGradient


@dataclass(frozen=True)
class Reading:
    """One way to read Algorithm 1.

    `outside`: w_t is added outside the step rho. `divide_by_n`: its sd has n where the paper prints the batch size b.
    `square`: the radii have log^2, else log. `reuse`: all curves in every round. `variant`: of the method that a silo runs.
    """

    name: str
    words: str
    outside: bool = False
    divide_by_n: bool = False
    square: bool = True
    reuse: bool = False
    eta: float | None = None
    variant: str = "sample-splitting"

    def batch(self, n: int, rounds: int) -> int:
        """How many curves a round averages over."""
        return n if self.reuse else n // rounds

    def noise_curves(self, n: int, rounds: int) -> int:
        """The number of curves that the noise is divided by."""
        return n if self.divide_by_n else self.batch(n, rounds)

    def noise_factor(self, step: float) -> float:
        """The noise in the gradient, over the noise that is drawn: 1/rho where it stands outside the step."""
        return 1 / step if self.outside else 1.0

    def radii(self, plan: Plan, log: float) -> tuple[float, ...]:
        """The plan's radii, or those with `log` = log(N/eta) instead of its square.

        R_l - R_k has no logarithm, so the part with it is found from C_R l^-alpha = (R_1 - R_2)/(1 - 2^-alpha) l^-alpha.
        """
        (statistic,) = plan.rounds[0].statistics
        assert isinstance(statistic, EntrywiseGradient)
        if self.square or plan.n_coefficients > 1:
            return statistic.radii
        first, alpha = statistic.radii, plan.projection.alpha
        if len(first) < 2:
            raise InvalidInput("n_basis must be at least 2 for a reading with another logarithm.")
        smooth = (first[0] - first[1]) / (1 - 2**-alpha)
        spread = (first[0] - smooth) / math.sqrt(log)
        return tuple(spread + smooth * index**-alpha for index in range(1, len(first) + 1))

    def exact_epsilon(self, plan: Plan, silo: str) -> float:
        """What a curve's owner is really promised at the plan's delta, by exact composition of what is done."""
        terms, rounds = plan.silo(silo).terms, len(plan.rounds)
        mu = plan.statistic_mus(silo, 0)[0] * self.noise_curves(terms.n, rounds) / self.batch(terms.n, rounds)
        mu /= self.noise_factor(plan.step)
        return gaussian_epsilon(mu * math.sqrt(rounds) if self.reuse else mu, terms.delta)


_ALL = (
    Reading("A", "noise inside the step, sd by the batch size, log^2 in the radii: the paper's proofs, and `dpfda fit`"),
    Reading("B", "as A, but log in the radii, as Algorithms 3 and 4 print it", square=False),
    Reading("C", "noise outside the step, as Algorithm 1 prints it, sd by n; not private as claimed", outside=True,
            divide_by_n=True),
    Reading("C-eta-0.1", "as C with eta = 0.1; not private as claimed", outside=True, divide_by_n=True, eta=0.1),
    Reading("F", "noise as in C, all curves in every round, composed exactly; private", outside=True,
            divide_by_n=True, reuse=True),
    Reading("literal", "Algorithm 1 to the letter: noise outside the step, sd by the batch size", outside=True),
    Reading("full-batch", "all curves in every round, noise by exact composition: `variant='full-batch'`", reuse=True,
            divide_by_n=True, variant="full-batch"),
)  # fmt: skip
READINGS = {reading.name: reading for reading in _ALL}
OURS = "A"
