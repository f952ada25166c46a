"""Linear forms of a law: what every curve and every number that can be asked for is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dpfda._typing import Floats
from dpfda.inference.law import Law


@dataclass(frozen=True, eq=False)
class Form:
    """x -> sum over orders q and columns j of weights[q][j] (D^q f_j)(x), plus fixed . coefficients, of one law."""

    law: Law
    weights: Mapping[int, Floats] = field(default_factory=dict)
    fixed: Floats | None = None

    def __add__(self, other: Form) -> Form:
        weights = dict(self.weights)
        for order, row in other.weights.items():
            weights[order] = weights[order] + row if order in weights else row
        if self.fixed is None or other.fixed is None:
            return Form(self.law, weights, other.fixed if self.fixed is None else self.fixed)
        return Form(self.law, weights, self.fixed + other.fixed)

    def __mul__(self, factor: float) -> Form:
        weights = {order: factor * row for order, row in self.weights.items()}
        return Form(self.law, weights, None if self.fixed is None else factor * self.fixed)

    @property
    def is_constant(self) -> bool:
        """Whether x does not matter."""
        return not self.weights

    def derivative(self, order: int) -> Form:
        """The form's derivative; what does not depend on x is gone."""
        return Form(self.law, {at + order: row for at, row in self.weights.items()})

    def integral(self, low: float, high: float) -> Form:
        """The integral over [low, high], places in [0, 1], with respect to x: a form that does not depend on x."""
        law, ends = self.law, np.array([low, high])
        fixed = np.zeros(law.mean.size) if self.fixed is None else self.fixed * (high - low) * law.length
        for order, row in self.weights.items():
            at_ends = law.functions.evaluate_unit(ends, order - 1) * law.length ** (1 - order)
            fixed = fixed + np.outer(row, at_ends[1] - at_ends[0]).ravel()
        return Form(law, {}, fixed)

    def features(self, u: Floats) -> Floats:
        """Rows whose product with `coefficients` is the form at u; few columns: one for each order and function."""
        blocks = [self.law.features(u, order) for order in sorted(self.weights)]
        return np.hstack([*blocks, np.ones((len(u), 1))] if self.fixed is not None else blocks)

    def coefficients(self) -> Floats:
        """What `features` are multiplied with."""
        rows = [self.weights[order] @ self.law.mean for order in sorted(self.weights)]
        if self.fixed is not None:
            rows.append(np.array([self.fixed @ self.law.mean.ravel()]))
        return np.concatenate(rows)

    def covariance(self) -> Floats | None:
        """Of `coefficients`."""
        if self.law.covariance is None:
            return None
        columns, size = self.law.mean.shape
        whole = self.law.covariance.reshape(columns, size, columns, size)
        rows = [self.weights[order] for order in sorted(self.weights)]
        blocks = [[np.einsum("j,jlkm,k->lm", one, whole, other, optimize=True) for other in rows] for one in rows]
        if self.fixed is not None:
            against = (self.law.covariance @ self.fixed).reshape(columns, size)
            for block, row in zip(blocks, rows, strict=True):
                block.append((row @ against)[:, None])
            last = [(row @ against)[None] for row in rows]
            blocks.append([*last, np.array([[self.fixed @ against.ravel()]])])
        return np.block(blocks)
