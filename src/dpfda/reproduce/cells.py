"""One cell: a design (n, m, d, silos) whose simulated data are shared by all methods and all budgets."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import groupby
from typing import Any

import numpy as np

from dpfda._blas import one_blas_thread
from dpfda._typing import Floats
from dpfda.basis.basis import Basis, make_basis
from dpfda.curves.curves import Curves
from dpfda.curves.simulated import Function, make_vcm_coefficients, mean_1, mean_2, simulate_mean, simulate_vcm
from dpfda.estimators.least_squares import least_squares
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans import make_plan as plan_of
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.terms import CovariateTerms, SiloTerms, StudyTerms
from dpfda.reproduce.adaptive_runs import AdaptiveRuns, prepare_sums
from dpfda.reproduce.published_runs import Moments, PublishedRuns, curve_moments, run_shape
from dpfda.reproduce.readings import OURS, READINGS
from dpfda.silo.prepared import prepare
from dpfda.silo.sums import CurveSums

MEANS: dict[str, Function] = {"mu_1": mean_1, "mu_2": mean_2}
PAPER = PublishedConstants()
_UNCLAMPED = (-50.0, 50.0)  # the paper clamps nothing: bounds that its simulated y never reach
_DOUBLES_AT_ONCE = 3_000_000
_DATA, _NOISE = 1, 2


@dataclass(frozen=True)
class Method:
    """How to estimate: published, full-batch, adaptive or nonprivate, with its budgets and its settings.

    `reading` says how the published algorithm is read (`readings.READINGS`).
    """

    name: str
    epsilons: tuple[float, ...]
    repetitions: int
    basis: str = "fourier"
    n_basis: int | None = None
    y_bounds: tuple[float, float] = (-4.0, 5.0)
    constants: PublishedConstants = PAPER
    reading: str = OURS

    @property
    def terms_name(self) -> str:
        """The method's name in terms."""
        return "published" if self.name == "full-batch" else self.name

    @property
    def variant(self) -> str:
        """Of the published method, in terms."""
        return READINGS[self.reading].variant


@dataclass(frozen=True)
class Cell:
    """S silos of n curves with m points; silo s has the budget profile[s] * epsilon.

    `between` is the root mean square distance of a silo's own mean from the common one (a mean only).
    """

    n: int
    m: int
    mean: str = "mu_1"
    d: int = 0
    profile: tuple[float, ...] = (1.0,)
    alpha: float = 3.0
    delta: float = 1e-3
    seed: int = 1
    process_sd: float = 0.5
    between: float = 0.0
    methods: tuple[Method, ...] = ()

    @property
    def repetitions(self) -> int:
        """As many as the method with the most needs."""
        return max(method.repetitions for method in self.methods)

    @property
    def truth(self) -> list[Function]:
        """The functions to be estimated."""
        return [MEANS[self.mean], *make_vcm_coefficients(self.d)[1:]]

    def curves(self, repetition: int) -> list[Curves]:
        """The data of one repetition: a function of design, seed and number alone, whatever the methods are.

        Silos come one after the other: the first ones hold the same curves however many follow.
        """
        rng = np.random.default_rng(self._key(_DATA, repetition))
        if self.d == 0:
            sd, means = self.process_sd, [self._site_mean(rng) for _ in self.profile]
            return [simulate_mean(self.n, self.m, rng=rng, mean=mean, process_sd=sd) for mean in means]
        truth, sd = self.truth, self.process_sd
        return [simulate_vcm(self.n, self.m, self.d, rng=rng, coefficients=truth, process_sd=sd) for _ in self.profile]

    def _site_mean(self, rng: np.random.Generator) -> Function:
        """The common mean, or with `between` a draw around it: a level and a wave."""
        common = MEANS[self.mean]
        if self.between == 0:
            return common
        level, cosine, sine = self.between / math.sqrt(3) * rng.standard_normal(3)

        def mean(x: Floats) -> Floats:
            wave = cosine * np.cos(2 * math.pi * x) + sine * np.sin(2 * math.pi * x)
            return np.asarray(common(x) + level + math.sqrt(2) * wave)

        return mean

    def noise_seed(self, method: str, repetition: int, index: int) -> int:
        """The seed of the noise for one budget of one method."""
        key = [*self._key(_NOISE, repetition), zlib.crc32(method.encode()), index]
        return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> np.uint64(1))

    def terms(self, epsilon: float) -> list[SiloTerms]:
        """What the silos declare."""
        return [
            SiloTerms(f"silo-{number}", self.n, epsilon * share, self.delta, self.m)
            for number, share in enumerate(self.profile, start=1)
        ]

    def _key(self, purpose: int, repetition: int) -> list[int]:
        design = zlib.crc32(repr((self.mean, self.n, self.m, self.d)).encode())
        return [self.seed, purpose, design, repetition]


def make_plan(cell: Cell, method: Method, epsilon: float) -> Plan:
    """The production plan of a method at one budget; portions and seeds of one design share it."""
    return _make_plan(replace(cell, methods=(), seed=1), replace(method, epsilons=(), repetitions=1), epsilon)


@lru_cache(maxsize=4096)
def _make_plan(cell: Cell, method: Method, epsilon: float) -> Plan:
    covariates = tuple(CovariateTerms(f"column-{number}", (-1.0, 1.0)) for number in range(1, cell.d + 1))
    terms = partial(
        StudyTerms, method.terms_name, (0.0, 1.0), silos=tuple(cell.terms(epsilon)), covariates=covariates,
        basis=method.basis, n_basis=method.n_basis,
    )  # fmt: skip
    if method.name == "adaptive":
        return plan_of(terms(y_bounds=method.y_bounds))
    public: dict[str, Any] = {"alpha": cell.alpha, "constants": method.constants, "variant": method.variant}
    return plan_of(terms(y_bounds=_UNCLAMPED, y_scale="none", **public))


def run_cell(cell: Cell) -> dict[str, Floats]:
    """Squared L2 errors by method: an array (repetitions, budgets) each."""
    return {method.name: errors for method, errors in zip(cell.methods, run_methods(cell), strict=True)}


def run_methods(cell: Cell) -> list[Floats]:
    """The same, one array for each method; the data are simulated once for all of them."""
    found = [np.empty((method.repetitions, len(method.epsilons))) for method in cell.methods]
    for start, curves in _chunks(cell):
        data = _Portion(cell, start, curves)
        for run in (_run_descents, _run_adaptive, _run_nonprivate):
            for index, errors in run(data):
                found[index][start : start + len(errors)] = errors
    return found


@dataclass(frozen=True)
class _Portion:
    """Some repetitions of a cell's data, and what was computed from them."""

    cell: Cell
    start: int
    curves: list[list[Curves]]

    def wanted(self, *names: str) -> Iterator[tuple[int, Method, int]]:
        """The methods with these names that have repetitions here, with their number."""
        for index, method in enumerate(self.cell.methods):
            count = min(method.repetitions - self.start, len(self.curves))
            if method.name in names and count > 0:
                yield index, method, count

    def moments(self, plan: Plan, count: int) -> list[Moments]:
        """Moments of the first `count` repetitions of every silo."""
        basis, scaling = plan.basis, plan.scaling
        return [
            Moments.stack([curve_moments(prepare(one[s], basis, scaling), basis) for one in self.curves[:count]])
            for s in range(len(self.cell.profile))
        ]


def _chunks(cell: Cell) -> Iterator[tuple[int, list[list[Curves]]]]:
    """Repetitions in portions that stay in the processor's caches."""
    q = max(3, *(method.n_basis or 7 for method in cell.methods)) * (cell.d + 1)
    size = max(1, _DOUBLES_AT_ONCE // (len(cell.profile) * cell.n * (q * q + 4 * cell.m)))
    for start in range(0, cell.repetitions, size):
        stop = min(start + size, cell.repetitions)
        yield start, [cell.curves(repetition) for repetition in range(start, stop)]


def _run_descents(data: _Portion) -> Iterator[tuple[int, Floats]]:
    """All plans of one shape together, whatever their budgets, constants and readings."""
    cell, errors = data.cell, {}
    groups: dict[object, list[tuple[int, int, Method, Plan]]] = {}
    for number, method, count in data.wanted("published", "full-batch"):
        errors[number] = np.empty((count, len(method.epsilons)))
        for place, epsilon in enumerate(method.epsilons):
            plan = make_plan(cell, method, epsilon)
            key = (plan.basis, count, run_shape(plan, READINGS[method.reading]))
            groups.setdefault(key, []).append((number, place, method, plan))
    moments: dict[object, list[Moments]] = {}
    for members in groups.values():
        first, count = members[0][3], len(errors[members[0][0]])
        silos = moments.setdefault((first.basis, count), [])
        silos.extend(() if silos else data.moments(first, count))
        found = _run_group(cell, members, silos, range(data.start, data.start + count))
        for k, (number, place, _, _) in enumerate(members):
            errors[number][:, place] = found[:, k]
    yield from errors.items()


def _run_group(
    cell: Cell, members: Sequence[tuple[int, int, Method, Plan]], silos: Sequence[Moments], repetitions: range
) -> Floats:
    """Squared errors of one group; the noise of a method does not depend on what else is in the group."""
    methods, plans = [method for _, _, method, _ in members], [plan for _, _, _, plan in members]
    readings = [READINGS[method.reading] for method in methods]
    runs = PublishedRuns.of(plans, readings, [method.constants.eta for method in methods])
    own = [list(part) for _, part in groupby(members, key=lambda member: member[0])]
    normals = [
        np.concatenate([
            runs.draw(np.random.default_rng(cell.noise_seed(part[0][2].name, repetition, part[0][1])), len(part))
            for part in own
        ], axis=-1)
        for repetition in repetitions
    ]  # fmt: skip
    coefficients = runs.run(silos, np.stack(normals)).reshape(len(normals), len(members), *plans[0].shape)
    return squared_errors(coefficients, plans[0].basis, cell.truth)


def _run_adaptive(data: _Portion) -> Iterator[tuple[int, Floats]]:
    cell = data.cell
    for number, method, count in data.wanted("adaptive"):
        errors = np.empty((count, len(method.epsilons)))
        budgets = [AdaptiveRuns(make_plan(cell, method, epsilon)) for epsilon in method.epsilons]
        for k, curves in enumerate(data.curves[:count]):
            packed: dict[Basis, dict[str, CurveSums]] = {}
            for index, runs in enumerate(budgets):
                plan = runs.plan
                if plan.basis not in packed:
                    packed[plan.basis] = prepare_sums(plan, curves)
                seed = cell.noise_seed(method.name, data.start + k, index)
                with one_blas_thread():
                    found = runs.run(packed[plan.basis], seed)
                errors[k, index] = squared_errors(plan.scaling.to_user_units(found), plan.basis, cell.truth)
        yield number, errors


def _run_nonprivate(data: _Portion) -> Iterator[tuple[int, Floats]]:
    """Least squares on all curves of all silos together."""
    cell = data.cell
    scaling = Scaling(_UNCLAMPED, ((1.0, 1.0), *([(-1.0, 1.0)] * cell.d)))
    for number, method, count in data.wanted("nonprivate"):
        basis = make_basis(method.basis, method.n_basis or 7)
        fitted = [least_squares(_pool(one), basis, scaling) for one in data.curves[:count]]
        errors = np.array([squared_errors(one, basis, cell.truth) for one in fitted])
        yield number, np.repeat(errors[:, None], len(method.epsilons), axis=1)


def _pool(silos: Sequence[Curves]) -> Curves:
    if len(silos) == 1:
        return silos[0]
    counts = np.concatenate([np.diff(one.offsets) for one in silos])
    return Curves(
        np.concatenate([one.x for one in silos]),
        np.concatenate([one.y for one in silos]),
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([one.design for one in silos]),
    )


def squared_errors(coefficients: Floats, basis: Basis, truth: Sequence[Function]) -> Floats:
    """Integrated squared error, added up over functions; coefficients have shape (..., d+1, r)."""
    points, weights = _nodes()
    fitted = coefficients @ basis.evaluate_unit(points).T
    wanted = np.stack([function(points) for function in truth])
    errors: Floats = ((fitted - wanted) ** 2 @ weights).sum(axis=-1)
    return errors


@lru_cache(maxsize=1)
def _nodes() -> tuple[Floats, Floats]:
    roots, weights = np.polynomial.legendre.leggauss(96)
    return (roots + 1) / 2, weights / 2
