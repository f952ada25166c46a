"""One cell: a design (n, m, d, silos) whose simulated data are shared by all methods and all budgets."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby

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
from dpfda.reproduce.published_runs import Moments, PublishedRuns, curve_moments
from dpfda.silo.prepared import prepare
from dpfda.silo.sums import CurveSums

MEANS: dict[str, Function] = {"mu_1": mean_1, "mu_2": mean_2}
PAPER = PublishedConstants()
_UNCLAMPED = (-50.0, 50.0)  # the paper clamps nothing: bounds that its simulated y never reach
_DOUBLES_AT_ONCE = 3_000_000
_DATA, _NOISE = 1, 2


@dataclass(frozen=True)
class Method:
    """How to estimate: published, adaptive or nonprivate, with its budgets and its settings."""

    name: str
    epsilons: tuple[float, ...]
    repetitions: int
    basis: str = "fourier"
    n_basis: int | None = None
    y_bounds: tuple[float, float] = (-4.0, 5.0)
    constants: PublishedConstants = PAPER


@dataclass(frozen=True)
class Cell:
    """S silos of n curves with m points; silo s has the budget profile[s] * epsilon."""

    n: int
    m: int
    mean: str = "mu_1"
    d: int = 0
    profile: tuple[float, ...] = (1.0,)
    alpha: float = 3.0
    delta: float = 1e-3
    seed: int = 1
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
        """The data of one repetition: a function of design, seed and number alone, whatever the methods are."""
        rng = np.random.default_rng(self._key(_DATA, repetition))
        if self.d == 0:
            return [simulate_mean(self.n, self.m, rng=rng, mean=MEANS[self.mean]) for _ in self.profile]
        return [
            simulate_vcm(self.n, self.m, self.d, rng=rng, coefficients=self.truth, process_sd=0.5) for _ in self.profile
        ]

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
        design = zlib.crc32(repr((self.mean, self.n, self.m, self.d, len(self.profile))).encode())
        return [self.seed, purpose, design, repetition]


def make_plan(cell: Cell, method: Method, epsilon: float) -> Plan:
    """The production plan of a method at one budget."""
    covariates = tuple(CovariateTerms(f"column-{number}", (-1.0, 1.0)) for number in range(1, cell.d + 1))
    terms = partial(
        StudyTerms, method.name, (0.0, 1.0), silos=tuple(cell.terms(epsilon)), covariates=covariates,
        basis=method.basis, n_basis=method.n_basis,
    )  # fmt: skip
    if method.name == "adaptive":
        return plan_of(terms(y_bounds=method.y_bounds))
    return plan_of(terms(y_bounds=_UNCLAMPED, y_scale="none", alpha=cell.alpha, constants=method.constants))


def run_cell(cell: Cell) -> dict[str, Floats]:
    """Squared L2 errors by method: an array (repetitions, budgets) each."""
    found = {method.name: np.empty((method.repetitions, len(method.epsilons))) for method in cell.methods}
    for start, data in _chunks(cell):
        for method in cell.methods:
            wanted = data[: max(0, method.repetitions - start)]
            if wanted:
                found[method.name][start : start + len(wanted)] = _RUNS[method.name](cell, method, start, wanted)
    return found


def _chunks(cell: Cell) -> Iterator[tuple[int, list[list[Curves]]]]:
    """Repetitions in portions that stay in the processor's caches."""
    q = max(3, *(method.n_basis or 7 for method in cell.methods)) * (cell.d + 1)
    size = max(1, _DOUBLES_AT_ONCE // (len(cell.profile) * cell.n * (q * q + 4 * cell.m)))
    for start in range(0, cell.repetitions, size):
        stop = min(start + size, cell.repetitions)
        yield start, [cell.curves(repetition) for repetition in range(start, stop)]


def _run_published(cell: Cell, method: Method, start: int, data: Sequence[list[Curves]]) -> Floats:
    errors = np.empty((len(data), len(method.epsilons)))
    plans = [(index, make_plan(cell, method, epsilon)) for index, epsilon in enumerate(method.epsilons)]
    for _, group in groupby(plans, key=lambda item: item[1].shape):
        indices, members = zip(*group, strict=True)
        runs, first = PublishedRuns.of(members), members[0]
        silos = [
            Moments.stack([curve_moments(prepare(one[s], first.basis, first.scaling), first.basis) for one in data])
            for s in range(len(cell.profile))
        ]
        seeds = [cell.noise_seed(method.name, start + k, indices[0]) for k in range(len(data))]
        normals = np.stack([runs.draw(np.random.default_rng(seed)) for seed in seeds])
        coefficients = runs.run(silos, normals).reshape(len(data), len(members), *first.shape)
        errors[:, indices] = squared_errors(coefficients, first.basis, cell.truth)
    return errors


def _run_adaptive(cell: Cell, method: Method, start: int, data: Sequence[list[Curves]]) -> Floats:
    errors = np.empty((len(data), len(method.epsilons)))
    budgets = [AdaptiveRuns(make_plan(cell, method, epsilon)) for epsilon in method.epsilons]
    for k, curves in enumerate(data):
        packed: dict[Basis, dict[str, CurveSums]] = {}
        for index, runs in enumerate(budgets):
            plan = runs.plan
            if plan.basis not in packed:
                packed[plan.basis] = prepare_sums(plan, curves)
            seed = cell.noise_seed(method.name, start + k, index)
            with one_blas_thread():
                found = runs.run(packed[plan.basis], seed)
            fitted = plan.scaling.to_user_units(found)
            errors[k, index] = squared_errors(fitted, plan.basis, cell.truth)
    return errors


def _run_nonprivate(cell: Cell, method: Method, start: int, data: Sequence[list[Curves]]) -> Floats:
    """Least squares on all curves of all silos together."""
    basis = make_basis(method.basis, method.n_basis or 7)
    scaling = Scaling(_UNCLAMPED, ((1.0, 1.0), *([(-1.0, 1.0)] * cell.d)))
    errors = [squared_errors(least_squares(_pool(one), basis, scaling), basis, cell.truth) for one in data]
    return np.repeat(np.array(errors)[:, None], len(method.epsilons), axis=1)


_RUNS = {"published": _run_published, "adaptive": _run_adaptive, "nonprivate": _run_nonprivate}


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
