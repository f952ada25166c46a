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
    """Covariances of every silo's measurement of R_s A b*: from the noise that was added, and from its number of curves.

    Stacks of one matrix for each silo. `relative` are the R_s, silo s having the information R_s A; None where all of them
    measure A b* itself.
    """

    noise: Floats
    sampling: Floats
    relative: Floats | None = None

    @cached_property
    def weights(self) -> Floats:
        """What the measurements are multiplied by when silos are pooled."""
        weights = inverse(self.noise + self.sampling)
        return weights if self.relative is None else self.relative.swapaxes(-1, -2) @ weights

    @cached_property
    def pooled(self) -> Floats:
        """The covariance of A b* as all of them together measure it."""
        if self._alone:
            return np.asarray(self.noise[0] + self.sampling[0], dtype=np.float64)
        precisions = self.weights if self.relative is None else self.weights @ self.relative
        return inverse(precisions.sum(axis=0))

    @property
    def _alone(self) -> bool:
        return len(self.noise) == 1 and self.relative is None

    def mean(self, values: Floats) -> Floats:
        """A b* from the silos' measurements."""
        result: Floats = (
            values[0] if self._alone else self.pooled @ (self.weights @ values[..., None]).sum(axis=0)[:, 0]
        )
        return result


@dataclass(frozen=True)
class ErrorParts:
    """Second moments of the coefficients' deviation: all of it, and what of it comes from sampling and from privacy.

    What remains is bias. `total` may be for a longer basis: what the basis cannot show is part of it.
    """

    total: Floats
    sampling: Floats
    privacy: Floats
    sd_of_means: float


def split_error(
    posterior: Posterior,
    total: Floats,
    information: Floats,
    doubt: Floats,
    silos: SiloCovariances,
    sd_of_means: float,
) -> ErrorParts:
    """Carry the noise and the sampling error of every silo through the estimate.

    The posterior covariance is both as they come through, and the prior's variance as far as shrinkage leaves it. Doubt
    about the design is noise of released moments.
    """
    gain = posterior.covariance @ information.T @ inverse(silos.pooled + doubt)
    by_silo = gain @ silos.pooled @ silos.weights

    def carry(parts: Floats) -> Floats:
        return np.asarray((by_silo @ parts @ by_silo.swapaxes(-1, -2)).sum(axis=0), dtype=np.float64)

    privacy = carry(silos.noise) + gain @ doubt @ gain.T
    return ErrorParts(total, carry(silos.sampling), privacy, sd_of_means)
