"""Our entrants: the default method, the published one, two peers without anything to tune, and one that cheats.

No setting below was chosen by a problem's truth. The default method itself was developed with these families of problems at
hand, so a contest needs others. The peers of `benchmarks/peers.py` that an oracle tunes cannot enter: no user could run
them. Noise is simulated (`rng`), so that a table can be made again.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers
from benchmarks.challenge.protocol import Band, Floats, Task
from benchmarks.utility_problems import Data, Problem
from benchmarks.utility_references import fit_binned_means, fit_least_squares
from dpfda import Curves, PrivateMean
from dpfda.basis import make_basis
from dpfda.privacy.accounting import mu_for

GRID = np.linspace(0, 1, 101)


@dataclass(frozen=True)
class Ours:
    """An estimator of dpfda; the release is what is fitted, without any curve in it."""

    name: str
    method: str = "adaptive"
    variant: str = "sample-splitting"

    def fit(self, task: Task, ids: NDArray[np.int64], x: Floats, y: Floats, rng: np.random.Generator) -> Any:
        """One fit with predictable noise."""
        options: dict[str, Any] = {"points_per_curve": task.points, "variant": self.variant}
        estimator = PrivateMean(
            task.epsilon, task.delta, domain=(0, 1), y_bounds=task.y_bounds, method=self.method,
            random_state=int(rng.integers(2**31)), **(options if self.method == "published" else {}),
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(Curves.from_long(ids, x, y))
        bands = {level: estimator.band(level, x=GRID) for level in (0.8, 0.95)} if estimator.has_band else {}
        return {"values": estimator.predict(GRID), "bands": bands}

    def predict(self, release: Any, x: Floats) -> Floats:
        """Between the points of a grid."""
        return np.interp(x, GRID, release["values"])

    def band(self, release: Any, level: float, x: Floats) -> Band | None:
        """The method's own, if it has one."""
        found = release["bands"].get(level)
        return None if found is None else (np.interp(x, GRID, found[0]), np.interp(x, GRID, found[1]))


@dataclass(frozen=True)
class OnGrid:
    """A method that releases a curve on a grid, without a band."""

    name: str

    def predict(self, release: Any, x: Floats) -> Floats:
        """Between the points of the grid."""
        return np.interp(x, GRID, release)

    def band(self, release: Any, level: float, x: Floats) -> Band | None:
        """None."""
        return None


class AdaSSP(OnGrid):
    """Wang's AdaSSP on per-curve sufficient statistics, seven cosines."""

    def fit(self, task: Task, ids: NDArray[np.int64], x: Floats, y: Floats, rng: np.random.Generator) -> Any:
        """A curve on the grid."""
        basis = make_basis("cosine", 7)
        data = peers.statistics(
            Curves.from_long(ids, x, y), basis, [task.n], [mu_for(task.epsilon, task.delta)], task.y_bounds
        )
        return basis.evaluate_unit(GRID) @ peers.adassp(data, rng)[0]


class BinnedMeans(OnGrid):
    """Noisy means in eight bins of x, clipped at the bounds."""

    def fit(self, task: Task, ids: NDArray[np.int64], x: Floats, y: Floats, rng: np.random.Generator) -> Any:
        """A curve on the grid."""
        public = Problem(lambda n, rng: Data(ids, x, y), task.y_bounds, np.zeros(101), np.ones(101, dtype=bool))
        return fit_binned_means(Data(ids, x, y), public, mu_for(task.epsilon, task.delta), rng)


class Cheat(OnGrid):
    """Least squares with noise that is far too small: the audit must refute its claim."""

    def fit(self, task: Task, ids: NDArray[np.int64], x: Floats, y: Floats, rng: np.random.Generator) -> Any:
        """A curve on the grid."""
        return fit_least_squares(Data(ids, x, y), 7)[:, 0] + 1e-3 * rng.standard_normal()


ENTRANTS = (
    Ours("dpfda default"),
    Ours("published (Xue, Lin, Yu)", "published"),
    Ours("published, full batches", "published", "full-batch"),
    AdaSSP("AdaSSP"),
    BinnedMeans("binned means"),
    Cheat("least squares, hardly any noise"),
)
