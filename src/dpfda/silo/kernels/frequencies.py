"""What kernels know of a basis: its trigonometric functions, and the sizes that follow from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from dpfda._compile import require

if TYPE_CHECKING:
    from dpfda.basis.basis import Basis

_MOST_HARMONICS = 1 << 16


@dataclass(frozen=True)
class Frequencies:
    """Turns per unit of u, the highest frequency K, and whether there are sines; every size in kernels comes from here."""

    rate: float
    harmonics: int
    sines: bool

    def __post_init__(self) -> None:
        require(type(self.rate) is float and math.isfinite(self.rate), "the rate must be a finite float")
        require(type(self.harmonics) is int and 0 <= self.harmonics <= _MOST_HARMONICS, "harmonics out of range")
        require(type(self.sines) is bool, "sines must be True or False")

    @staticmethod
    @lru_cache(maxsize=16)  # batches of a study ask for the same
    def of(basis: Basis) -> Frequencies:
        """Those of a basis."""
        return Frequencies(float(basis.angle / (2 * math.pi)), int(basis.frequencies[-1]), bool(basis.sines))

    @property
    def functions(self) -> int:
        """1 and every cosine and sine up to K; a basis may lack the last sine."""
        return 1 + (2 * self.harmonics if self.sines else self.harmonics)

    @property
    def moments(self) -> int:
        """Means of cosines and sines up to 2 K."""
        return (4 if self.sines else 2) * self.harmonics

    @property
    def record(self) -> int:
        """Numbers that a curve's moments and products with y take (see `moments`)."""
        return self.moments + self.functions
