"""What an experiment found: squared errors by method, budget and point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfda.reproduce.catalogue import Experiment, Point
from dpfda.reproduce.real_data import RealCell
from dpfda.reproduce.store import Arrays

METHODS = ("published", "full-batch", "adaptive")


@dataclass(frozen=True)
class Series:
    """Squared errors of one method at one budget at one point of an experiment."""

    sweep: str
    coordinates: dict[str, Any]
    method: str
    epsilon: float
    errors: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """The average over repetitions."""
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        """Of the average."""
        return float(self.errors.std(ddof=1) / np.sqrt(self.errors.size)) if self.errors.size > 1 else float("nan")


class Results:
    """All series of one experiment, and the arrays of its real-data points."""

    def __init__(self, experiment: Experiment, found: Sequence[Arrays]) -> None:
        self.experiment = experiment
        self.series: list[Series] = []
        self.real: list[tuple[Point, Arrays]] = []
        self.parts: list[Results] = []
        start = 0
        for part in experiment.parts:
            stop = start + len(part.points)
            self.parts.append(Results(part, found[start:stop]))
            start = stop
        for point, arrays in zip(experiment.points[start:], found[start:], strict=True):
            if isinstance(point.cell, RealCell):
                self.real.append((point, arrays))
            else:
                self.series.extend(_series(point, arrays))

    def select(self, sweep: str, method: str, epsilon: float | None = None, **coordinates: Any) -> list[Series]:
        """The series that agree, in the order of the configuration."""
        return [
            one
            for one in self.series
            if (one.sweep, one.method) == (sweep, method)
            and epsilon in (None, one.epsilon)
            and all(one.coordinates.get(key) == value for key, value in coordinates.items())
        ]

    @property
    def methods(self) -> list[str]:
        """The private methods that were run, in the order of RESULTS.md."""
        found = {one.method for one in self.series}
        return [method for method in METHODS if method in found]

    def epsilons(self, sweep: str, method: str) -> list[float]:
        """The budgets of a method in a sweep."""
        return sorted({one.epsilon for one in self.series if (one.sweep, one.method) == (sweep, method)})

    def axis(self, sweep: str, name: str) -> list[Any]:
        """The values of a coordinate in a sweep."""
        return list(dict.fromkeys(one.coordinates[name] for one in self.series if one.sweep == sweep))


def _series(point: Point, arrays: Arrays) -> Iterator[Series]:
    for method in point.cell.methods:
        for index, epsilon in enumerate(method.epsilons):
            yield Series(point.sweep, dict(point.coordinates), method.name, epsilon, arrays[method.name][:, index])
