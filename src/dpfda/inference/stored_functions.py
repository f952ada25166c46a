"""Functions as a result file holds them, so that R and JavaScript need two evaluators: waves, and pieces of polynomials.

* waves: scale cos(multiple angle u - quarter pi / 2);
* polynomials: on each piece [a, b] of [0, 1], sums of Chebyshev polynomials T_j(t), t = 2 (u - a) / (b - a) - 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike

from dpfda import _validate
from dpfda._typing import Floats, Interval
from dpfda.basis.basis import Basis
from dpfda.basis.free_ends import FreeEnds
from dpfda.basis.trigonometric import Trigonometric
from dpfda.errors import InvalidInput
from dpfda.inference.law import Functions

WAVES, POLYNOMIALS = "waves", "polynomials"
_ROUNDING = 1e-9  # share of the domain's length by which x may miss it
_MOST_POLYNOMIALS = 1024
_SMALL = 1e-13  # relative size of the last coefficients of a series that has converged


@dataclass(frozen=True, eq=False)
class StoredFunctions:
    """What is needed to evaluate functions, derivatives and integrals, without the basis that they came from."""

    domain: Interval
    fields: Mapping[str, Any]

    @property
    def size(self) -> int:
        """The number of functions."""
        return int(self.fields["size"])

    @property
    def breaks(self) -> Floats | None:
        """Where pieces of polynomials meet, in [0, 1]; None for waves."""
        return np.asarray(self.fields["breaks"], dtype=np.float64) if self.fields["kind"] == POLYNOMIALS else None

    def unit(self, x: ArrayLike) -> Floats:
        """From the domain to [0, 1]; a value outside the domain is refused."""
        low, high = self.domain
        u = (_validate.numeric("x", x) - low) / (high - low)
        if not np.all((u >= -_ROUNDING) & (u <= 1 + _ROUNDING)):
            raise InvalidInput(f"x must lie in the domain ({low:g}, {high:g}).")
        return np.clip(u, 0.0, 1.0)

    def evaluate_unit(self, u: Floats, order: int = 0) -> Floats:
        """All functions at points of [0, 1], one column each; derivatives, or integrals from 0 if `order` is -1."""
        if order < -1:
            raise InvalidInput("order must be at least -1.")
        points = np.asarray(u, dtype=np.float64)
        return (
            _waves(self.fields, points, order) if self.fields["kind"] == WAVES else _pieces(self.fields, points, order)
        )


def describe_functions(functions: Functions) -> dict[str, Any]:
    """The fields of `StoredFunctions` for any basis."""
    if isinstance(functions, StoredFunctions):
        return dict(functions.fields)
    if isinstance(functions, Trigonometric):
        return _describe_waves(functions)
    if isinstance(functions, FreeEnds):
        signs = (-1.0) ** np.arange(functions.harmonics + 1)
        return _describe_pieces([0.0, 1.0], [functions.mixture() * signs])
    breaks = np.asarray(getattr(functions, "breaks", (0.0, 1.0)), dtype=np.float64)
    return _describe_pieces(breaks.tolist(), _interpolate(functions, breaks))


def store_functions(basis: Basis) -> StoredFunctions:
    """The functions of a basis, independent of it."""
    return StoredFunctions(basis.domain, describe_functions(basis))


def _describe_waves(basis: Trigonometric) -> dict[str, Any]:
    index = np.arange(basis.size)
    quarters = ((index > 0) & (index % 2 == 0)).astype(int) if basis.sines else np.zeros_like(index)
    return {
        "kind": WAVES,
        "size": basis.size,
        "angle": basis.angle,
        "multiples": basis.frequencies.tolist(),
        "quarters": quarters.tolist(),
        "scales": basis.sup().tolist(),
    }


def _describe_pieces(breaks: list[float], matrices: list[Floats]) -> dict[str, Any]:
    pieces = [np.asarray(matrix).tolist() for matrix in matrices]
    return {"kind": POLYNOMIALS, "size": len(pieces[0]), "breaks": breaks, "pieces": pieces}


def _interpolate(functions: Functions, breaks: Floats) -> list[Floats]:
    """Chebyshev coefficients on every piece, of as many polynomials as the functions need there."""
    found = []
    for left, right in itertools.pairwise(breaks):
        count = 8
        while True:
            angles = (np.arange(count) + 0.5) * (math.pi / count)
            inside = left + (right - left) * (1 + np.cos(angles)) / 2
            values = functions.evaluate_unit(inside)
            coefficients = 2 / count * values.T @ np.cos(np.multiply.outer(angles, np.arange(count)))
            coefficients[:, 0] /= 2
            size = np.abs(coefficients).max()
            if np.abs(coefficients[:, -count // 4 :]).max() <= _SMALL * size:
                kept = np.flatnonzero(np.abs(coefficients).max(axis=0) > _SMALL * size / 10)
                found.append(coefficients[:, : int(kept[-1]) + 1])
                break
            count *= 2
            if count > _MOST_POLYNOMIALS:
                raise InvalidInput("the functions of this basis are too rough to be stored.")
    return found


def _waves(fields: Mapping[str, Any], u: Floats, order: int) -> Floats:
    multiples, quarters, scales = (np.asarray(fields[name]) for name in ("multiples", "quarters", "scales"))
    speeds = fields["angle"] * multiples
    theta = np.multiply.outer(fields["angle"] * u, multiples)
    if order == -1:
        safe = np.where(multiples > 0, speeds, 1.0)
        rising = np.where(quarters == 1, (1 - np.cos(theta)) / safe, np.sin(theta) / safe)
        return np.asarray(scales * np.where(multiples > 0, rising, u[..., None]))
    turns = (quarters - order) % 4
    values = np.where(turns % 2 == 1, np.sin(theta), np.cos(theta)) * np.where(turns >= 2, -1.0, 1.0)
    return np.asarray(values * scales * speeds ** float(order))


def _pieces(fields: Mapping[str, Any], u: Floats, order: int) -> Floats:
    breaks = np.asarray(fields["breaks"])
    place = np.clip(np.searchsorted(breaks, u, side="right") - 1, 0, len(breaks) - 2)
    values, before = np.zeros((*u.shape, fields["size"])), np.zeros(fields["size"])
    for number, piece in enumerate(fields["pieces"]):
        width = breaks[number + 1] - breaks[number]
        columns = np.asarray(piece, dtype=np.float64).T
        if order > 0:
            columns = np.asarray(chebyshev.chebder(columns, order, scl=2 / width), dtype=np.float64)
        elif order < 0:
            columns = np.asarray(chebyshev.chebint(columns, 1, lbnd=-1.0, scl=width / 2), dtype=np.float64)
        here = place == number
        t = 2 * (u[here] - breaks[number]) / width - 1
        values[here] = np.moveaxis(np.atleast_2d(chebyshev.chebval(t, columns)), 0, -1) + (before if order < 0 else 0)
        if order < 0:
            before = before + chebyshev.chebval(1.0, columns)
    return values
