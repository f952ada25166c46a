"""What an entrant is: three functions. It sees the task, the data and a source of noise; never the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Band = tuple[Floats, Floats]


@dataclass(frozen=True)
class Task:
    """All that is public: x lies in [0, 1], y is clamped to `y_bounds`, a subject has about `points` visits."""

    n: int
    epsilon: float
    delta: float
    y_bounds: tuple[float, float]
    points: float = 5.0


class Entrant(Protocol):
    """A method. What `fit` returns is the release: it alone is handed to the two others, as bytes that were pickled."""

    name: str

    def fit(self, task: Task, ids: NDArray[np.int64], x: Floats, y: Floats, rng: np.random.Generator) -> Any:
        """Release something under (epsilon, delta)-differential privacy for the replacement of one subject."""
        ...

    def predict(self, release: Any, x: Floats) -> Floats:
        """The mean function at x."""
        ...

    def band(self, release: Any, level: float, x: Floats) -> Band | None:
        """A band that holds the whole mean function with this probability; None if the method has none."""
        ...
