"""Where the randomness of a release comes from.

`OpenDPNoise` is for releases: exact discrete Gaussian noise on a fine grid, from the system's entropy.
`SeededNoise` is for simulation: it is reproducible, hence gives no privacy, and says so (`private` is False).
"""

from __future__ import annotations

import hashlib
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfda import _validate

Array = NDArray[np.float64]

GRID_BITS = 40
GRID = 2.0**-GRID_BITS


class NoiseSource(Protocol):
    """Adds standard Gaussian noise to a whitened vector."""

    @property
    def private(self) -> bool:
        """Whether releases made with this source carry a privacy guarantee."""
        ...

    def stream(self, silo: str, round: int) -> NoiseSource:
        """The source to use for one round of one silo."""
        ...

    def make_ready(self, size: int) -> None:
        """Do beforehand whatever could fail when `size` numbers are drawn."""
        ...

    def standard_normal(self, whitened: Array) -> Array:
        """The vector plus independent N(0, 1) noise in every entry."""
        ...


class OpenDPNoise:
    """The discrete Gaussian of OpenDP on the grid 2^-40, drawn with the operating system's entropy.

    Guarantee: the output is x' + Z, where x' is x rounded to the grid (each entry moves by at most 2^-41, so a difference
    of two inputs by at most 2^-40 per entry: `release_gaussian` accounts for it) and Z is discrete Gaussian on the grid
    with scale 1, summed in exact integers and cast to a float once: no bit of the output depends on how a
    floating-point addition was rounded. With h = 2^-40, x' + round(N(0,1)) = round(x' + N(0,1)) is post-processing of the
    continuous mechanism, and Z differs from round(N(0,1)) in total variation by about 0.02 h^2 < 2^-85 per entry. So q
    entries are mu-GDP up to an additional delta of (1 + e^eps) q 2^-85 per release: less than 1e-18 for q <= 1000 and
    eps <= 10. docs/proofs/discrete-noise.md bounds it and sets it against the rounding margins of `accounting`.

    | input       | result                                                                            |
    |-------------|-----------------------------------------------------------------------------------|
    | empty       | refused by `release_gaussian`                                                     |
    | NaN or inf  | refused by `release_gaussian`, for OpenDP would turn it into a number in silence |
    | one entry   | as any other vector (one point, one curve: nothing special)                       |
    """

    private = True

    def stream(self, silo: str, round: int) -> OpenDPNoise:
        """Itself: the operating system's entropy has no streams."""
        return self

    def make_ready(self, size: int) -> None:
        """Build OpenDP's mechanism for this length."""
        _measurement(size)

    def standard_normal(self, whitened: Array) -> Array:
        """The vector, rounded to the grid, plus discrete Gaussian noise of scale 1."""
        vector = _validate.vector("whitened", whitened)
        return np.array(_measurement(vector.size)(vector.tolist()), dtype=np.float64)


class SeededNoise:
    """Reproducible Gaussian noise for simulation; `private` is False.

    Guarantee: none. A stream is a function of (seed, silo, round) alone, so that a run in one process and one
    over a network draw the same bits.
    """

    private = False

    def __init__(self, seed: int, *keys: int) -> None:
        self.seed = _validate.integer("seed", seed, minimum=0)
        self._keys = keys

    @cached_property
    def _generator(self) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, *self._keys])))

    def stream(self, silo: str, round: int) -> SeededNoise:
        """A fresh stream for one round of one silo, the same wherever it is made."""
        name = int.from_bytes(hashlib.sha256(silo.encode()).digest()[:16], "big")
        return SeededNoise(self.seed, name, _validate.integer("round", round, minimum=0))

    def make_ready(self, size: int) -> None:
        """Nothing can fail here."""

    def standard_normal(self, whitened: Array) -> Array:
        """The vector plus the next N(0, 1) draws of this stream."""
        vector = _validate.vector("whitened", whitened)
        return vector + self._generator.standard_normal(vector.size)


@lru_cache(maxsize=256)
def _measurement(size: int) -> Any:
    """OpenDP's vector Gaussian mechanism with scale 1 on the grid 2^-40, built once per length."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T=float, nan=False), size=size)
    return make_gaussian(domain, l2_distance(T=float), scale=1.0, k=-GRID_BITS)
