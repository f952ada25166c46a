"""What kernels know of a basis: the waves that it is made of, if any, and the sizes that follow."""

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
    """How u becomes an angle, the highest frequency K, and whether there are sines; every size in kernels comes from here.

    For the rate see `trig.wave`. A basis without waves has K = -1 and says how many functions and moments it has.
    """

    rate: float
    harmonics: int
    sines: bool
    without_waves: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        require(type(self.rate) is float and 0 <= self.rate < math.inf, "the rate must be a finite float")
        require(type(self.harmonics) is int and -1 <= self.harmonics <= _MOST_HARMONICS, "harmonics out of range")
        require(type(self.sines) is bool, "sines must be True or False")
        functions, moments = self.without_waves
        require((functions >= 1) == (self.harmonics < 0) and moments >= 0, "a basis has waves or other functions")

    @staticmethod
    @lru_cache(maxsize=16)  # batches of a study ask for the same
    def of(basis: Basis) -> Frequencies:
        """Those of a basis."""
        others = (0, 0) if basis.harmonics >= 0 else (basis.size, basis.moment_count)
        return Frequencies(float(basis.rate), int(basis.harmonics), bool(basis.sines), others)

    @property
    def has_waves(self) -> bool:
        """Whether curves can be kept as points; otherwise all have records."""
        return self.harmonics >= 0

    @property
    def functions(self) -> int:
        """1 and every cosine and sine up to K; a basis may lack the last sine."""
        if not self.has_waves:
            return self.without_waves[0]
        return 1 + (2 * self.harmonics if self.sines else self.harmonics)

    @property
    def moments(self) -> int:
        """Means of cosines and sines up to 2 K."""
        if not self.has_waves:
            return self.without_waves[1]
        return (4 if self.sines else 2) * self.harmonics

    @property
    def record(self) -> int:
        """Numbers that a curve's moments and products with y take (see `moments`)."""
        triangle = 0 if self.has_waves else self.functions * (self.functions + 1) // 2
        return self.moments + self.functions + triangle

    @property
    def room(self) -> int:
        """The harmonics that working memory must be made for."""
        return self.harmonics if self.has_waves else self.functions
