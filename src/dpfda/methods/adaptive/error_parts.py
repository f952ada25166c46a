"""The error that the released quantities let expect, by source. Post-processing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive.matrices import inverse
from dpfda.methods.adaptive.posterior import Posterior


@dataclass(frozen=True)
class SiloCovariances:
    """Covariances of every silo's measurement of turned A b*: from the noise that was added, and from its number of curves.

    Stacks of one matrix for each silo; `turned` is None where all of them measure A b* itself.
    """

    noise: Floats
    sampling: Floats
    turned: Floats | None = None

    @cached_property
    def weights(self) -> Floats:
        """What the measurements are multiplied by when silos are pooled."""
        weights = inverse(self.noise + self.sampling)
        return weights if self.turned is None else self.turned.swapaxes(-1, -2) @ weights

    @cached_property
    def pooled(self) -> Floats:
        """The covariance of what all of them together tell about A b*."""
        if self._alone:
            return np.asarray(self.noise[0] + self.sampling[0], dtype=np.float64)
        precisions = self.weights if self.turned is None else self.weights @ self.turned
        return inverse(precisions.sum(axis=0))

    @property
    def _alone(self) -> bool:
        return len(self.noise) == 1 and self.turned is None

    def mean(self, values: Floats) -> Floats:
        """A b* from the silos' measurements."""
        result: Floats = (
            values[0] if self._alone else self.pooled @ (self.weights @ values[..., None]).sum(axis=0)[:, 0]
        )
        return result


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
    silos: SiloCovariances,
    spread: float,
) -> ErrorParts:
    """Carry the noise and the sampling error of every silo through the estimate.

    The posterior covariance is both as they come through, and the prior's variance as far as shrinkage leaves it. Doubt
    about the design is noise of released moments.
    """
    moved = posterior.covariance @ information.T @ inverse(silos.pooled + doubt)
    gain = moved @ silos.pooled @ silos.weights

    def carried(parts: Floats) -> Floats:
        return np.asarray((gain @ parts @ gain.swapaxes(-1, -2)).sum(axis=0), dtype=np.float64)

    privacy = carried(silos.noise) + moved @ doubt @ moved.T
    return ErrorParts(total, carried(silos.sampling), privacy, spread)
