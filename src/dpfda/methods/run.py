"""The one loop: ask, gather, learn. Mean and VCM, central and federated, published and default.

The coordinator runs it. It sees releases only; all it does is post-processing, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dpfda._typing import Floats
from dpfda.errors import InvalidInput, TransportError
from dpfda.methods.adaptive.coordinator import AdaptiveCoordinator
from dpfda.methods.adaptive.error_parts import ErrorParts
from dpfda.methods.adaptive.outcomes import OutcomesCoordinator
from dpfda.methods.adaptive.sites import SiteLaw
from dpfda.methods.published import PublishedCoordinator
from dpfda.methods.quantiles import QuantileCoordinator
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.plans.registry import COORDINATORS, make_plan
from dpfda.protocol.terms import StudyTerms
from dpfda.protocol.transport import Transport


class Asking(Protocol):
    """What asks the questions of a plan and learns from the answers."""

    def question(self, index: int) -> dict[str, Floats]: ...

    def learn(self, index: int, releases: Mapping[str, Release]) -> None: ...


class Coordinator(Asking, Protocol):
    """One that ends with the coefficients of one outcome."""

    @property
    def covariance(self) -> Floats | None:
        """Covariance of the flat coefficients, sampling and privacy noise together, where the method knows it."""
        ...

    @property
    def error_parts(self) -> ErrorParts | None:
        """The error to expect by source, where the method knows it."""
        ...

    def coefficients(self) -> Floats: ...


COORDINATORS.update(published=PublishedCoordinator, adaptive=AdaptiveCoordinator, quantiles=QuantileCoordinator)


@dataclass(frozen=True)
class Outcome:
    """What a study ends with, in the plan's units: coefficients, covariance and errors if known, whether all was private.

    `notices` are sentences that a reader of the result must see; `contributing` is the share of subjects who have points in
    the domain, as releases show it, and its standard deviation. `heads` holds the head that the last release of each
    silo carries: it shows an older ledger later.
    """

    coefficients: Floats
    covariance: Floats | None
    private: bool
    errors: ErrorParts | None = None
    heads: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    sites: SiteLaw | None = None
    contributing: tuple[float, float] | None = None


def make_coordinator(terms: StudyTerms) -> Coordinator:
    """Who asks the questions of these terms' method."""
    if terms.method not in COORDINATORS:
        raise InvalidInput(f"method {terms.method!r} has no coordinator here; give one to register_method.")
    if terms.further:
        raise InvalidInput("terms name several outcomes; `run_outcomes` runs such a study.")
    coordinator: Coordinator = COORDINATORS[terms.method](make_plan(terms))
    return coordinator


def run_study(
    terms: StudyTerms, transport: Transport, run: str, on_round: Callable[[int, int], None] | None = None
) -> Outcome:
    """Drive the study of these terms to its end (Algorithms 1-4 when its method is the published one)."""
    coordinator = make_coordinator(terms)
    return _conclude(coordinator, *_drive(terms, coordinator, transport, run, on_round))


def run_outcomes(
    terms: StudyTerms, transport: Transport, run: str, on_round: Callable[[int, int], None] | None = None
) -> dict[str, Outcome]:
    """The same for a study of several outcomes: what each of them ends with, by name."""
    coordinator = OutcomesCoordinator(make_plan(terms))
    private, heads = _drive(terms, coordinator, transport, run, on_round)
    names = [outcome.y for outcome in terms.outcomes]
    return {name: _conclude(each, private, heads) for name, each in zip(names, coordinator.each, strict=True)}


def _drive(
    terms: StudyTerms,
    coordinator: Asking,
    transport: Transport,
    run: str,
    on_round: Callable[[int, int], None] | None,
) -> tuple[bool, dict[str, str]]:
    """Ask every round; whether all answers were private, and the head that each silo's last one carries."""
    plan = make_plan(terms)
    transport.open(terms, run)
    private, heads = True, {}
    for index in range(len(plan.rounds)):
        releases = transport.gather(Query(run, index, coordinator.question(index)))
        if not releases:
            raise TransportError("No silo answered the query.")
        coordinator.learn(index, releases)
        heads.update({name: release.head for name, release in releases.items()})
        private = private and all(release.private for release in releases.values())
        if on_round is not None:
            on_round(index + 1, len(plan.rounds))
    return private, heads


def _conclude(coordinator: Coordinator, private: bool, heads: Mapping[str, str]) -> Outcome:
    notices, sites = tuple(getattr(coordinator, "notices", ())), getattr(coordinator, "sites", None)
    known = coordinator.coefficients(), coordinator.covariance, private, coordinator.error_parts
    return Outcome(*known, heads, notices, sites, getattr(coordinator, "contributing", None))
