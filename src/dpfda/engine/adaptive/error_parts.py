"""The error that the released quantities let expect, by source. Post-processing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfda.engine.adaptive.posterior import Posterior

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SiloCovariance:
    """Covariance of one silo's measurement of turned A b*: from the noise that was added, and from its number of curves."""

    noise: Floats
    sampling: Floats
    turned: Floats

    def weight(self) -> Floats:
        """What the measurement is multiplied by when silos are pooled."""
        return np.asarray(self.turned.T @ np.linalg.inv(self.noise + self.sampling), dtype=np.float64)

    def precision(self) -> Floats:
        """How much it tells about A b*."""
        return self.weight() @ self.turned


@dataclass(frozen=True)
class ErrorParts:
    """Second moments of the coefficients' deviation: all of it, and what of it comes from sampling and from privacy.

    The rest is bias. `total` may be for a longer basis: what the basis cannot follow is part of it. `spread` is the sd of
    the curves' means.
    """

    total: Floats
    sampling: Floats
    privacy: Floats
    spread: float


def error_parts(
    posterior: Posterior,
    total: Floats,
    information: Floats,
    doubt: Floats,
    silos: Sequence[SiloCovariance],
    spread: float,
) -> ErrorParts:
    """Carry the noise and the sampling error of every silo through the estimate.

    The posterior covariance is both as they come through, and the prior's variance as far as shrinkage leaves it. Doubt
    about the design is noise of released moments.
    """
    weights = [silo.weight() for silo in silos]
    pooled = np.linalg.inv(np.add.reduce([silo.precision() for silo in silos]))
    gain = posterior.covariance @ information.T @ np.linalg.inv(pooled + doubt) @ pooled

    def carried(parts: Sequence[Floats]) -> Floats:
        middle = np.add.reduce([weight @ part @ weight.T for weight, part in zip(weights, parts, strict=True)])
        return np.asarray(gain @ middle @ gain.T, dtype=np.float64)

    moved = gain @ np.linalg.inv(pooled)
    privacy = carried([silo.noise for silo in silos]) + moved @ doubt @ moved.T
    return ErrorParts(total, carried([silo.sampling for silo in silos]), privacy, spread)
