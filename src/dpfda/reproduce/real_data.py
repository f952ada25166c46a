"""The paper's real-data protocol: train on a third, estimate privately on the rest, compare; then repeat the mechanism.

Differences from the paper, all of them on purpose: x and y are scaled by PUBLIC bounds, not by observed extremes, and
nobody is dropped for the values of y. The reference is least squares, the limit of ordinary gradient descent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfda._typing import Floats
from dpfda.basis.basis import make_basis
from dpfda.curves import datasets
from dpfda.curves.curves import Curves
from dpfda.estimators.least_squares import least_squares
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans import make_plan, published_n_basis
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.terms import SiloTerms, StudyTerms
from dpfda.reproduce.adaptive_runs import AdaptiveRuns, prepare_sums
from dpfda.reproduce.cells import Method
from dpfda.reproduce.published_runs import Moments, PublishedRuns, curve_moments
from dpfda.reproduce.readings import READINGS
from dpfda.silo.prepared import prepare

_SILO, GRID_POINTS = "silo-1", 101


@dataclass(frozen=True)
class RealCell:
    """A data set, cut to `n` subjects with `m` visits each as in the paper, and the methods to compare on it."""

    dataset: str
    domain: tuple[float, float]
    n: int | None
    m: int
    delta: float
    seed: int
    methods: tuple[Method, ...]
    swan: str | None = None

    @property
    def y_bounds(self) -> tuple[float, float]:
        """The public range of y."""
        return datasets.SWAN_Y_BOUNDS if self.swan else datasets.get_dataset_info(self.dataset).y_bounds

    def load(self) -> Curves:
        """Subjects with at least m visits in the domain, the first m of each, n of them at random: the paper's size."""
        curves = datasets.load_swan(self.swan) if self.swan else datasets.load_dataset(self.dataset)
        curves = curves.restrict(self.domain)
        complete = np.flatnonzero(curves.counts >= self.m)
        if self.n is not None and len(complete) > self.n:
            chosen = np.random.default_rng(self.seed).choice(complete, self.n, replace=False)
            complete = np.sort(chosen)
        points = np.concatenate([np.arange(curves.offsets[i], curves.offsets[i] + self.m) for i in complete])
        offsets = np.arange(len(complete) + 1) * self.m
        return Curves(curves.x[points], curves.y[points], offsets, np.ones((len(complete), 1)))


def run_real(cell: RealCell) -> dict[str, Floats]:
    """Distances to the training curve, and curves of repeated mechanisms on all data, by method."""
    return {name: array for arrays in run_real_methods(cell) for name, array in arrays.items()}


def run_real_methods(cell: RealCell) -> list[dict[str, Floats]]:
    """The same, one by one; what belongs to no method is in each."""
    curves, found = cell.load(), []
    rng = np.random.default_rng([cell.seed, 7])
    repetitions = max(method.repetitions for method in cell.methods)
    splits = [rng.permutation(curves.n) for _ in range(repetitions)]
    for method in cell.methods:
        arrays = {
            f"{method.name} distance": _distances(cell, method, curves, splits[: method.repetitions]),
            f"{method.name} curves": _repeat_mechanism(cell, method, curves),
            "reference": _reference(cell, curves),
            "n": np.array([float(curves.n)]),
        }
        found.append(arrays)
    return found


def _make_plan(cell: RealCell, method: Method, n: int, epsilon: float) -> Plan:
    silos = (SiloTerms(_SILO, n, epsilon, cell.delta, cell.m),)
    public: dict[str, Any] = (
        {} if method.name == "adaptive" else {"constants": method.constants, "variant": method.variant}
    )
    return make_plan(
        StudyTerms(
            method.terms_name, cell.domain, cell.y_bounds, silos,
            basis=method.basis, n_basis=method.n_basis, **public,
        )
    )  # fmt: skip


def _distances(cell: RealCell, method: Method, curves: Curves, splits: list[NDArray[np.int64]]) -> Floats:
    """L2 distance (in units of y, root mean square over the domain) of every split and budget."""
    found = np.empty((len(splits), len(method.epsilons)))
    third = curves.n // 3
    for k, order in enumerate(splits):
        train, test = _subset(curves, order[:third]), _subset(curves, order[third:])
        wanted = _reference(cell, train)
        fitted = _private_curves(cell, method, test, seeds=[1000 * k])[:, 0]
        found[k] = np.sqrt(((fitted - wanted) ** 2).mean(axis=-1))
    return found


def _repeat_mechanism(cell: RealCell, method: Method, curves: Curves) -> Floats:
    """Curves on the grid: (budgets, repetitions, points)."""
    return _private_curves(cell, method, curves, seeds=[1000 * k + 17 for k in range(method.repetitions)])


def _private_curves(cell: RealCell, method: Method, curves: Curves, seeds: list[int]) -> Floats:
    """One private curve for every budget and seed, in the units of y."""
    fitted = []
    for index, epsilon in enumerate(method.epsilons):
        plan = _make_plan(cell, method, curves.n, epsilon)
        coefficients = _coefficients(plan, method, curves, [cell.seed + 100_000 * index + seed for seed in seeds])
        grid = plan.basis.evaluate_unit(np.linspace(0, 1, GRID_POINTS))
        fitted.append([(grid @ plan.scaling.to_user_units(one).T)[:, 0] for one in coefficients])
    return np.array(fitted)


def _coefficients(plan: Plan, method: Method, curves: Curves, seeds: list[int]) -> list[Floats]:
    if plan.method == "adaptive":
        runs, sums = AdaptiveRuns(plan), prepare_sums(plan, [curves])
        return [runs.run(sums, seed) for seed in seeds]
    published = PublishedRuns.of([plan], [READINGS[method.reading]], [method.constants.eta])
    moments = Moments.stack([curve_moments(prepare(curves, plan.basis, plan.scaling), plan.basis)])
    normals = np.stack([published.draw(np.random.default_rng(seed)) for seed in seeds])
    return [one.reshape(plan.shape) for one in published.run([moments], normals)[:, 0]]


def _reference(cell: RealCell, curves: Curves) -> Floats:
    """Least squares with the first method's basis, of the size that the published rule gives without privacy."""
    size = published_n_basis([SiloTerms(_SILO, curves.n, 1e3, 0.5, cell.m)], d=0, alpha=3.0, C_r=1.25)
    basis = make_basis(cell.methods[0].basis, size, cell.domain)
    fitted = least_squares(curves, basis, Scaling(cell.y_bounds, ((1.0, 1.0),)))
    values: Floats = (basis.evaluate_unit(np.linspace(0, 1, GRID_POINTS)) @ fitted.T)[:, 0]
    return values


def _subset(curves: Curves, chosen: NDArray[np.int64]) -> Curves:
    points = np.concatenate([np.arange(curves.offsets[i], curves.offsets[i + 1]) for i in chosen])
    offsets = np.concatenate([[0], np.cumsum(curves.counts[chosen])])
    return Curves(curves.x[points], curves.y[points], offsets, curves.design[chosen])
