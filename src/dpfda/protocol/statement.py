"""The privacy statement that every fitted estimator carries: what is protected, how much was spent, what was public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpfda.privacy.accounting import gaussian_epsilon, mu_squared, price
from dpfda.protocol.plan import Plan, PlannedOutcome
from dpfda.protocol.terms import OUTCOMES
from dpfda.protocol.transforms import NO_TRANSFORM

UNIT, SUBJECT = "curve", "subject with all outcomes"
NEIGHBOURS = "replace-one"


@dataclass(frozen=True)
class SiloPrivacy:
    """What one silo promised and spent: (epsilon, delta) is the promise, `epsilon_spent` the exact cost at the same delta.

    `epsilon_total` is the exact cost, at the same delta, of everything released from the same data so far: by the silo's
    ledger or, for raw curves, by all fits to the same object in this process.
    """

    name: str
    n: int
    epsilon: float
    delta: float
    mu: float
    epsilon_spent: float
    epsilon_total: float | None = field(default=None, compare=False)

    def with_total(self, mu_squared: float) -> SiloPrivacy:
        """The same, with the total price of everything released from the data."""
        return replace(self, epsilon_total=gaussian_epsilon(mu_squared**0.5, self.delta))


@dataclass(frozen=True)
class PrivacyStatement:
    """Who is protected, against what, at which price; every fitted estimator carries one as `privacy_`.

    Attributes
    ----------
    private : bool
        False if a seed or a non-private method voids the guarantee.
    unit, neighbours : str
        What is protected (one curve, or one subject with all outcomes) and which data sets are compared (one unit replaced
        by any other).
    mechanism : str
        The algorithm and its noise.
    silos : tuple of SiloPrivacy
        Promise and exact cost of every silo.
    public_inputs : mapping
        What was taken as public, with its values; among it the transform of y, if there is one, what weighs the same if not
        each subject (weight, visit_cap), and what was declared (assume_symmetric, outcome, visit_times).
    epsilon, delta : float
        The largest that a silo promised.

    Examples
    --------
    >>> from dpfda import PrivateMean
    >>> from dpfda.curves.simulated import simulate_mean
    >>> fit = PrivateMean(epsilon=1, delta=1e-5, domain=(0, 1), y_bounds=(-4, 4)).fit(simulate_mean(1000, 6, rng=1))
    >>> print(fit.privacy_)
    Protected unit: one curve (all points of one subject); neighbours: replace-one.
    Mechanism: adaptive mean, 7 rounds of Gaussian noise (exact calibration).
    silo-1: 1000 curves, (epsilon, delta) = (1, 1e-05) for everything released; exact cost epsilon = 0.99... at ...
    Taken as public: domain = (0.0, 1.0), y_bounds = (-4.0, 4.0), basis = free-ends (16), number of curves = 1000.
    """

    private: bool
    unit: str
    neighbours: str
    mechanism: str
    silos: tuple[SiloPrivacy, ...]
    public_inputs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def epsilon(self) -> float:
        """The largest epsilon promised by a silo: the protection that every subject has at least."""
        return max((silo.epsilon for silo in self.silos), default=float("inf"))

    @property
    def delta(self) -> float:
        """The largest delta promised by a silo."""
        return max((silo.delta for silo in self.silos), default=1.0)

    def __str__(self) -> str:
        if not self.private:
            return "NOT PRIVATE: " + self.mechanism
        lines = [
            f"Protected unit: one {self.unit} (all points of one subject); neighbours: {self.neighbours}.",
            f"Mechanism: {self.mechanism}.",
        ]
        units = "curves" if self.unit == UNIT else "subjects"
        lines += [
            f"{silo.name}: {silo.n} {units}, (epsilon, delta) = ({silo.epsilon:g}, {silo.delta:g}) for everything released; "
            f"exact cost epsilon = {silo.epsilon_spent:.4g} at delta = {silo.delta:g}." + _describe_total(silo)
            for silo in self.silos
        ]
        if self.public_inputs:
            lines.append("Taken as public: " + ", ".join(f"{k} = {v}" for k, v in self.public_inputs.items()) + ".")
        return "\n".join(lines)


def _describe_total(silo: SiloPrivacy) -> str:
    """More than this fit was released from the data: say so."""
    if silo.epsilon_total is None or silo.epsilon_total <= silo.epsilon_spent * (1 + 1e-9):
        return ""
    return f" With what was released from the same data before, in all epsilon = {silo.epsilon_total:.4g}."


def statement(plan: Plan, *, private: bool) -> PrivacyStatement:
    """The statement of a study that ran to its end."""
    silos = []
    for terms in (silo.terms for silo in plan.silos):
        events = plan.events(terms.name)
        spent = price(events, terms.delta)
        mu = mu_squared(events) ** 0.5
        silos.append(SiloPrivacy(terms.name, terms.n, terms.epsilon, terms.delta, mu, spent))
    of = f" of {plan.count_outcomes} outcomes" if plan.outcomes else ""
    mechanism = f"{plan.algorithm}{of}, {len(plan.rounds)} rounds of Gaussian noise ({plan.calibration} calibration)"
    if not private:
        mechanism += "; noise from a seed, so the guarantee is void"
    public: dict[str, Any] = {
        "domain": plan.basis.domain,
        **_list_bounds(plan),
        "basis": f"{plan.basis.name} ({plan.basis.size})",
        "number of curves": sum(silo.n for silo in plan.silos),
    }
    if plan.n_coefficients > 1:
        public["design_bounds"] = plan.scaling.design_bounds
    public |= _list_declarations(plan)
    return PrivacyStatement(private, SUBJECT if plan.outcomes else UNIT, NEIGHBOURS, mechanism, tuple(silos), public)


def _list_bounds(plan: Plan) -> dict[str, Any]:
    if not plan.outcomes:
        return {"y_bounds": plan.scaling.y_bounds}
    return {f"y_bounds of {each.name}": each.scaling.y_bounds for each in plan.outcomes}


def _list_declarations(plan: Plan) -> dict[str, Any]:
    """What the study's users declared, visit times in the units of x; nothing that they did not."""
    said, (low, high) = plan.assumptions, plan.basis.domain
    declared: dict[str, Any] = {}
    if plan.scaling.visit_cap is not None:
        declared |= {"weight": "visit", "visit_cap": plan.scaling.visit_cap}
    for each in plan.outcomes or (PlannedOutcome("", plan.scaling, said),):
        of = f" of {each.name}" if plan.outcomes else ""
        if each.scaling.transform != NO_TRANSFORM:
            declared[f"transform{of}"] = each.scaling.transform
        if each.assumptions.symmetric:
            declared["assume_symmetric"] = True
        if each.assumptions.outcome != OUTCOMES[0]:
            declared[f"outcome{of}"] = each.assumptions.outcome
    if said.visit_times:
        declared["visit_times"] = tuple(float(f"{low + time * (high - low):.12g}") for time in said.visit_times)
    if not said.robust_sites and len(plan.silos) > 1:
        declared["robust_sites"] = False
    return declared


def not_private(reason: str) -> PrivacyStatement:
    """The statement of a result without any guarantee."""
    return PrivacyStatement(False, UNIT, NEIGHBOURS, reason, ())
