"""The silo: owner of curves, budget and ledger. Its sole exit is `release(Query) -> Release`.

`audit/trust_base.toml` lists the code that the guarantee rests on. The order inside `release` is fixed: check the question,
bound every curve's contribution, ask the ledger; then, in one durable transaction, write the debit, draw the noise and
write the answer. What leaves is what that transaction wrote.
"""

from __future__ import annotations

import copy
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfda import _validate
from dpfda.curves.curves import Curves
from dpfda.curves.outcomes import OWN, Outcomes
from dpfda.errors import BudgetExceeded, InvalidInput, ProtocolError
from dpfda.privacy.accounting import mu_for, mu_squared
from dpfda.privacy.gaussian import prepare_release, refuse_below_grid
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.privacy.noise import NoiseSource, OpenDPNoise, SeededNoise
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import EntrywiseGradient
from dpfda.protocol.terms import SILO_NAME, SiloTerms, StudyTerms
from dpfda.silo.data_binding import DataBinding
from dpfda.silo.release_statistics import MEASURES
from dpfda.silo.study import Study, sum_outcomes
from dpfda.silo.sums import CurveSource

DEFAULT_NAME = "silo-1"
LARGEST_ENTRY = 1e6  # of a query: iterates are of order 1 in the scaled units of a plan
SMALLEST_SCALE, LARGEST_SCALE = 1e-100, 1e100  # of a plan: nothing within them overflows, whatever the data
MOST_NUMBERS, MOST_STUDIES = 100_000, 100  # per release, joined at one time


class Silo:
    """One organisation's curves behind a privacy border.

    Parameters
    ----------
    curves : Curves, Outcomes or CurveSource
        The raw data. One curve is one protected subject; of several outcomes, the curves of one subject together.
    epsilon, delta : float
        The most that one study may spend here, for the whole transcript. An estimator with a smaller epsilon or delta of
        its own spends no more than that; a larger one changes nothing.
    name : str, optional
        How plans and ledgers call this silo; numbered by position in `fit` when left out.
    points_per_curve : float, optional
        A PUBLIC typical number of points per curve, used by the published method's truncation radii. Never taken from
        the data.
    ledger : Ledger or path, optional
        Where spending is recorded; one ledger serves one silo. It must exist: `Ledger.create` or `dpfda budget init` makes
        it, once. Without one, an in-memory ledger of the budget (epsilon, delta) is used: fits on the same silo object
        together never exceed it.
    random_state : int, optional
        A seed makes the noise predictable: for simulations only, every result is marked ``private=False``.

    Attributes
    ----------
    ledger : Ledger
        What was spent, and what is left.

    Notes
    -----
    Guarantee: the sequence of all releases of a study is (epsilon, delta)-differentially private for the replacement of
    any one curve, whatever the queries were; the number of curves is public. The ledger bounds the sum over studies.

    References
    ----------
    docs/guarantee.md says what is promised to whom; docs/proofs/transcript.md proves it.

    Examples
    --------
    Two organisations, each with its own promise. Leave out `random_state` for real data.

    >>> from dpfda import PrivateMean, Silo
    >>> from dpfda.curves.simulated import simulate_mean
    >>> curves = simulate_mean(2000, 6, rng=1)
    >>> north = Silo(curves[:1200], epsilon=1, delta=1e-5, name="north", random_state=1)
    >>> south = Silo(curves[1200:], epsilon=0.5, delta=1e-5, name="south", random_state=2)
    >>> north
    Silo('north', n=1200, epsilon=1, delta=1e-05)
    >>> fit = PrivateMean(domain=(0, 1), y_bounds=(-4, 4)).fit([north, south])
    >>> [silo.name for silo in fit.privacy_.silos]
    ['north', 'south']

    The budget is spent, and another study is refused before it is asked anything.

    >>> 0.99 < north.ledger.spent().epsilon <= 1
    True
    >>> fit.fit([north, south])
    Traceback (most recent call last):
        ...
    dpfda.errors.BudgetExceeded: Silo 'north' refuses: this would bring what is spent to epsilon = 1.46..., but ...
    """

    def __init__(
        self,
        curves: Curves | Outcomes | CurveSource,
        *,
        epsilon: float,
        delta: float,
        name: str | None = None,
        points_per_curve: float | None = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        random_state: int | None = None,
    ) -> None:
        if not isinstance(curves, Curves | Outcomes | CurveSource):
            raise InvalidInput(f"curves must be a Curves object (see Curves.from_long), got {type(curves).__name__}.")
        self.epsilon, self.delta = _validate.privacy_pair(epsilon, delta)
        if points_per_curve is not None:
            points_per_curve = _validate.positive("points_per_curve", points_per_curve)
        self.points_per_curve = points_per_curve
        self._curves = curves
        self._binding = DataBinding(curves)
        self._name = None if name is None else SILO_NAME.check("name", name)
        self._durable = ledger is not None
        self.ledger = _open_ledger(ledger, self.epsilon, self.delta)
        self._fleeting = self.ledger if ledger is None else None  # it ends with this object, as the curves do
        self._seed = None if random_state is None else self._checked_seed(random_state)
        self._studies: dict[str, Study] = {}

    def __repr__(self) -> str:
        return f"Silo({self.name!r}, n={self._curves.n}, epsilon={self.epsilon:g}, delta={self.delta:g})"

    @property
    def name(self) -> str:
        """The silo's name in plans, releases and ledgers."""
        return self._name if self._name is not None else DEFAULT_NAME

    @property
    def names(self) -> tuple[str, ...]:
        """The public names of the design columns, where a table gave them."""
        return getattr(self._curves, "names", ())

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The public names of the outcomes, if there are several."""
        return self._curves.outcomes if isinstance(self._curves, Outcomes) else ()

    @property
    def own_visits(self) -> bool:
        """Whether each of several outcomes has its own points: how the table was read, not what it holds."""
        return isinstance(self._curves, Outcomes) and self._curves.visits == OWN

    def in_fit(
        self, name: str, random_state: int | None, epsilon: float | None = None, delta: float | None = None
    ) -> Silo:
        """The silo as one call of `fit` sees it: numbered if unnamed, seeded if asked; same curves, same ledger.

        `epsilon` and `delta` are what the fit may spend: they lower what this silo promises for a study, never raise it.
        """
        view = copy.copy(self)
        view._name = name if self._name is None else self._name
        view._studies = {}
        if epsilon is not None:
            view.epsilon = min(self.epsilon, _validate.positive("epsilon", epsilon))
        if delta is not None:
            view.delta = min(self.delta, _validate.fraction("delta", delta))
        if random_state is not None:
            view._seed = self._checked_seed(random_state)
        return view

    @property
    def n_coefficients(self) -> int:
        """Length of the design vectors (1 for a mean): part of the public model, not of the data."""
        return self._curves.p

    def terms(self) -> SiloTerms:
        """What this silo declares in public."""
        return SiloTerms(self.name, self._curves.n, self.epsilon, self.delta, self.points_per_curve)

    def _checked_seed(self, seed: int) -> int:
        """A seed makes noise predictable. Refused where a durable ledger says that the data are real."""
        if self._durable:
            raise InvalidInput(
                "random_state makes noise predictable and voids the guarantee; a silo with a ledger= refuses it, "
                "so leave out random_state or the ledger."
            )
        return _validate.integer("random_state", seed, minimum=0)

    def join(self, terms: StudyTerms, run: str) -> None:
        """Agree to a study, or refuse it before anything is spent.

        The silo makes the plan of the terms with its own code. The terms must state what this silo declares, the plan's
        events must fit into (epsilon, delta) for the whole transcript, and into what the ledger has left. A run that
        began here goes on with the same data only.
        """
        plan = make_plan(terms)
        if plan.silo(self.name).terms != self.terms():
            raise ProtocolError(f"The terms misstate those of silo {self.name!r}.")
        if plan.n_coefficients != self._curves.p:
            raise ProtocolError(
                f"The plan's design has {plan.n_coefficients} columns, the curves have {self._curves.p}."
            )
        if tuple(outcome.name for outcome in plan.outcomes) != self.outcomes or terms.own_visits != self.own_visits:
            raise ProtocolError(f"The terms misstate the outcomes of silo {self.name!r}, or their visits.")
        refuse_changing_design(plan, self._curves)
        if run in self._studies and self._studies[run].plan.digest() != plan.digest():
            raise ProtocolError("The plan of a study cannot change once a silo has joined it.")
        refuse_absurd_plan(plan)
        refuse_noise_below_grid(plan, self.name)
        events = plan.events(self.name)
        if not mu_squared(events) <= mu_for(self.epsilon, self.delta) ** 2 * (1 + 1e-12):
            raise BudgetExceeded(f"The plan costs more than epsilon={self.epsilon:g}, delta={self.delta:g}.")
        self.ledger.check(events, run)
        if self.ledger is not self._fleeting:
            self._binding.check(self.ledger, run)
        while len(self._studies) >= MOST_STUDIES and run not in self._studies:
            del self._studies[next(iter(self._studies))]  # it can be joined again; the ledger keeps its terms
        self._studies[run] = Study(plan, self.name, sum_outcomes(self._curves, plan))

    def release(self, query: Query) -> Release:
        """Answer one round of a joined study, once.

        The same question again returns the stored answer and costs nothing; another question for the same round is
        refused; rounds go forward only.
        """
        study = self._checked(query)
        digest = f"{self.name}:{study.plan.digest()}:{query.digest()}"
        stored = self.ledger.stored(query.run, query.round, digest)
        if stored is not None:
            return Release.decode(stored)
        if self.ledger is not self._fleeting:
            self._binding.bind(self.ledger, query.run)
        bounded, size = study.bounded_sum(query)
        event = study.plan.event(self.name, query.round)
        prepared = prepare_release(bounded.total, bounded.sensitivity, event.mu)
        noise = self._noise(query.round)
        noise.make_ready(prepared.sd.size)  # nothing that can fail is left between count and commit
        meanwhile = self.ledger.begin(query.run, query.round, event, digest)
        if meanwhile is not None:
            return Release.decode(meanwhile)

        def draw(head: str) -> bytes:
            values, sd = prepared.draw(noise) / size, prepared.sd / size
            return Release(query.run, query.round, self.name, values, sd, noise.private, head).encode()

        return Release.decode(self.ledger.commit(query.run, query.round, event, digest, draw, silo=self.name))

    def _checked(self, query: Query) -> Study:
        study = self._studies.get(query.run)
        if study is None:
            raise ProtocolError("This silo has not joined that study.")
        if not 0 <= query.round < len(study.plan.rounds):
            raise ProtocolError("The plan has no such round.")
        if {name: array.size for name, array in query.arrays.items()} != study.plan.query_sizes(query.round):
            raise ProtocolError("The query does not hold the vectors that this round asks for.")
        if not all((np.abs(array) <= LARGEST_ENTRY).all() for array in query.arrays.values()):
            raise ProtocolError("The query holds numbers that are not finite or absurdly large.")
        for statistic in study.plan.rounds[query.round].statistics:
            statistic.check_arrays(query.arrays)
        return study

    def _noise(self, round_: int) -> NoiseSource:
        if self._seed is None:
            return OpenDPNoise()
        return SeededNoise(self._seed).stream(self.name, round_)


def refuse_absurd_plan(plan: Plan) -> None:
    """Refuse unknown statistics, and public numbers at which arithmetic could overflow or memory run out.

    Whether it does would depend on the curves, and an error before the debit would tell about them for free.
    """
    for unknown in {type(kind) for planned in plan.rounds for kind in planned.statistics} - MEASURES.keys():
        raise ProtocolError(f"The plan asks for {unknown.kind!r}, which this silo cannot compute.")
    try:
        columns, size = plan.n_coefficients, plan.n_coefficients * plan.basis.size
        widths = [plan.release_width(index) for index in range(len(plan.rounds))]
        small = max([size, *widths]) <= MOST_NUMBERS
        scalings = [plan.of_outcome(place).scaling for place in range(plan.count_outcomes)]
        sane = small and all(_is_moderate(scaling, columns) for scaling in scalings)
    except (TypeError, ValueError, KeyError, OverflowError):
        sane = False
    if not sane:
        raise ProtocolError("The plan's scaling or size is malformed, not finite or absurd.")


def _is_moderate(scaling: Scaling, columns: int) -> bool:
    limits, shifts, scales = _numbers(scaling)
    fits = limits.shape == (columns + 1, 2) and shifts.shape == scales.shape == (columns + 1,)
    moderate = all((np.abs(numbers) <= LARGEST_SCALE).all() for numbers in (limits, shifts, scales))
    return fits and moderate and bool((scales >= SMALLEST_SCALE).all())


def refuse_changing_design(plan: Plan, curves: Curves | Outcomes | CurveSource) -> None:
    """The published algorithms have one design vector for each subject; the sentence is for the owner, who made the curves.

    A site reads its table for terms of this method in a way that no curve's design changes (`Reading.one_design`).
    """
    published = any(isinstance(kind, EntrywiseGradient) for planned in plan.rounds for kind in planned.statistics)
    if published and curves.design_changes:
        raise InvalidInput(
            "design must not change within a subject for the published method, which has one design vector for each "
            "subject; use one value for each (such as that of the first visit), or the default method."
        )


def refuse_noise_below_grid(plan: Plan, silo: str) -> None:
    """Refuse a round whose share is too small for the noise grid: no answer to it could be drawn."""
    for index, event in enumerate(plan.events(silo)):
        refuse_below_grid(event.mu, plan.release_width(index))


def _numbers(scaling: Scaling) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The bounds, shifts and scales of y and of the design columns."""
    return (
        np.array([scaling.y_bounds, *scaling.design_bounds], dtype=np.float64),
        np.array([scaling.y_shift, *scaling.design_shift], dtype=np.float64),
        np.array([scaling.y_scale, *scaling.design_scale], dtype=np.float64),
    )


def _open_ledger(ledger: Any, epsilon: float, delta: float) -> Ledger:
    if ledger is None:
        return Ledger.in_memory(epsilon, delta)
    if isinstance(ledger, Ledger):
        return ledger
    if not isinstance(ledger, str | os.PathLike):
        raise InvalidInput(f"ledger must be a Ledger or a path, got {type(ledger).__name__}.")
    return Ledger.open(ledger)
