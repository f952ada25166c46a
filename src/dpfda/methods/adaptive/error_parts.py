"""The error that is implied by the released quantities, by source. Post-processing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.posterior import Posterior

if TYPE_CHECKING:
    from dpfda.methods.adaptive.state import State


@dataclass(frozen=True)
class ErrorParts:
    """Second moments of the coefficients' deviation: all of it, and what of it comes from sampling and from privacy.

    What remains is bias. `total` may be for a longer basis: what the basis cannot show is part of it.
    """

    total: Floats
    sampling: Floats
    privacy: Floats
    sd_of_means: float


def split_error(state: State, posterior: Posterior, restore: Callable[[Floats], Floats]) -> ErrorParts:
    """Carry the sampling error and the noise of every silo through the estimate."""
    sampling, privacy = np.zeros_like(posterior.covariance), np.zeros_like(posterior.covariance)
    for name, each in state.measured.items():
        gain = each.find_gain(posterior.covariance, state.informations[name])
        sampling += gain @ each.sampling @ gain.T
        privacy += gain @ (each.noise + each.doubt) @ gain.T
    total = posterior.covariance.copy()
    if state.hardly_filled:  # nobody knows the level: an error of a quarter of the bounds' width is no surprise
        total[0, 0] += constants.UNKNOWN_LEVEL**2
    return ErrorParts(restore(total), restore(sampling), restore(privacy), state.level.sd_of_means)
