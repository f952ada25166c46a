"""The anisotropic Gaussian mechanism: Lemma 1 of the paper, calibrated exactly.

Whitened (divided entrywise by the noise sd), every release is a Gaussian mechanism with unit noise on a
vector that replacing one curve moves by at most mu in L2 norm. So it is mu-GDP, whatever the shape of the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfda import _validate
from dpfda.errors import InvalidInput
from dpfda.privacy.accounting import GaussianEvent
from dpfda.privacy.clipping import Sensitivity
from dpfda.privacy.noise import GRID, NoiseSource

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GaussianRelease:
    """A noisy vector, the public sd of its noise, and the event to be accounted."""

    values: Array
    sd: Array
    event: GaussianEvent


def noise_sd(sensitivity: Sensitivity, mu: float) -> Array:
    """The sd of the noise that `release_gaussian` adds: public, and known before anything is drawn.

    The noise source rounds to its grid, which moves whitened neighbours apart by at most 2^-40 in each of the
    q entries, hence by sqrt(q) 2^-40 in norm. That part of mu is set aside, so that the total is mu exactly.
    """
    return sensitivity.whitening(mu - refuse_below_grid(mu, sensitivity.scale.size))


def refuse_below_grid(mu: float, size: int) -> float:
    """The part of mu that the grid takes from a release of so many numbers; refused if it is half of mu or more."""
    grid_part = math.sqrt(size) * GRID
    if not _validate.positive("mu", mu) > 2 * grid_part:
        raise InvalidInput(f"mu must be greater than {2 * grid_part:.2g} (the noise grid), got {mu!r}.")
    return grid_part


@dataclass(frozen=True, eq=False)
class PreparedRelease:
    """A whitened sum that has passed every check: all that is left to do is to draw."""

    whitened: Array
    sd: Array

    def draw(self, noise: NoiseSource) -> Array:
        """f(D) + Z, Z ~ N(0, diag(sd^2)) (Lemma 1)."""
        return noise.standard_normal(self.whitened) * self.sd


def prepare_release(total: ArrayLike, sensitivity: Sensitivity, mu: float) -> PreparedRelease:
    """Check and whiten a bounded sum: everything that can fail, so that a ledger can be asked before the draw."""
    vector = _validate.vector("total", total, length=sensitivity.scale.size)
    sd = noise_sd(sensitivity, mu)
    with np.errstate(over="ignore"):  # an overflow becomes infinite and is refused on the next line
        whitened = vector / sd
    return PreparedRelease(_validate.vector("total / sd", whitened), sd)


def release_gaussian(
    total: ArrayLike,
    sensitivity: Sensitivity,
    mu: float,
    noise: NoiseSource,
    *,
    part: int | None = None,
    label: str = "",
) -> GaussianRelease:
    """Add Gaussian noise to a bounded sum.

    Guarantee: if `total` and `sensitivity` are those of a `BoundedSum` and the noise source is private, the
    release is mu-GDP under replacement of one curve. The caller asks the ledger first: this function draws.

    | input                | result                                                               |
    |----------------------|----------------------------------------------------------------------|
    | empty vector         | refused (a sensitivity has at least one entry)                       |
    | NaN or infinite      | refused before drawing; a `BoundedSum` never holds one               |
    | one point, one curve | as any other sum: the noise depends on the bound only                |
    | no curve             | noise around zero, the same sd                                       |
    """
    prepared = prepare_release(total, sensitivity, mu)
    event = GaussianEvent(mu, part=part, label=label)
    return GaussianRelease(prepared.draw(noise), prepared.sd, event)
