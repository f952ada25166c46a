"""Curves whose design changes within them, in few numbers: weights at public nodes.

Gradients need means over a curve's points of G_a G_b f and G_a y f for products f of two functions of the basis. Such
products are waves of up to twice the highest frequency (for splines: splines of twice the degree), a space in which a
function is known by its values at as many nodes u_q. So a curve is its record, the weights W_ab(q) and Y_a(q) with

    mean_j G_ja G_jb f(x_j) = sum_q W_ab(q) f(u_q),    mean_j G_ja y_j f(x_j) = sum_q Y_a(q) f(u_q),

and its gradient is sum_q Phi(u_q) {sum_b W_ab(q) f_b(u_q) - Y_a(q)} in block a, f_b being the b-th function of the iterate:
public numbers, the same for all curves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dpfda._compile import DOUBLES, require, require_array
from dpfda._typing import Floats

if TYPE_CHECKING:
    from dpfda.basis.basis import Basis


@dataclass(frozen=True, eq=False)
class Nodes:
    """The functions of a basis at the nodes, one row each, and the matrix from means of products to weights of nodes.

    Columns of `turns` are 1, cosines (and sines) of up to twice the highest frequency or, of a basis without waves, the
    functions that span its products.
    """

    functions: Floats
    turns: Floats

    def __post_init__(self) -> None:
        require_array("functions", self.functions, DOUBLES, len(self.functions), self.functions.shape[-1])
        require_array("turns", self.turns, DOUBLES, len(self.functions), self.turns.shape[-1])
        require(min(self.functions.shape) >= 1 and min(self.turns.shape) >= 1, "there must be a node")

    @property
    def count(self) -> int:
        """The number of nodes."""
        return len(self.functions)

    @property
    def features(self) -> int:
        """How many means of products there are."""
        return int(self.turns.shape[1])

    @staticmethod
    @lru_cache(maxsize=16)  # batches of a study ask for the same
    def of(basis: Basis) -> Nodes:
        """Those of a basis."""
        functions, turns = _of_waves(basis) if basis.harmonics >= 0 else _of_products(basis)
        functions, turns = np.ascontiguousarray(functions), np.ascontiguousarray(turns)
        functions.flags.writeable = turns.flags.writeable = False
        return Nodes(functions, turns)


def channel_count(columns: int) -> int:
    """Of how many kinds the weights are: one for each pair of design columns, and one for each column with y."""
    return columns * (columns + 1) // 2 + columns


def product_features(basis: Basis, u: Floats) -> Floats:
    """The functions that span the products of a basis without waves, one row for each point by itself."""
    moments = basis.moment_features(u)
    return np.ascontiguousarray(np.column_stack([moments, 1.0 - moments.sum(axis=1)]))


def _of_waves(basis: Basis) -> tuple[Floats, Floats]:
    """Equidistant angles: sums over them are orthogonal for all waves of up to twice the highest frequency."""
    top = 2 * basis.harmonics
    count = 2 * top + 1 if basis.sines else top + 1
    angles = np.arange(count) * (2 * math.pi / count) if basis.sines else (np.arange(count) + 0.5) * (math.pi / count)
    waves = [np.ones(count)]
    for k in range(1, top + 1):
        waves += [np.cos(k * angles), np.sin(k * angles)] if basis.sines else [np.cos(k * angles)]
    columns = np.column_stack(waves)
    mixture, scales = basis.mixture(), np.full(basis.size, math.sqrt(2))
    scales[0] = 1.0
    functions = columns[:, : mixture.shape[1]] @ mixture.T if mixture.size else columns[:, : basis.size] * scales
    turns = 2 * columns / count
    turns[:, 0] = 1 / count
    return functions, turns


def _of_products(basis: Basis) -> tuple[Floats, Floats]:
    """As many nodes as the products' space has dimensions, spread as its functions are: each near one of their means."""
    points, weights = basis.quadrature()
    features = product_features(basis, points) * weights[:, None]
    nodes = (points @ features) / features.sum(axis=0)
    nodes[0], nodes[-1] = (0.0, 1.0) if nodes.size > 1 else (nodes[0], nodes[-1])
    return basis.evaluate_unit(nodes), np.asarray(np.linalg.inv(product_features(basis, nodes)).T, dtype=np.float64)
