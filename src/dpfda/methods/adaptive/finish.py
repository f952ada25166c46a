"""After the last round: what a band believes, and the shift that clipping made given back."""

from __future__ import annotations

import numpy as np

from dpfda.methods.adaptive.band import fit_band_posterior
from dpfda.methods.adaptive.estimate import Estimate
from dpfda.methods.adaptive.skewness import fit_shift
from dpfda.methods.adaptive.state import Result, State


def finish(state: State, last: Estimate) -> Result:
    """The posteriors of the estimate and of its band; what clipping shifted the level by, as far as measured, is undone."""
    by_silo = [silo.evidence for silo in state.silos.values() if silo.evidence]
    kept = float(np.mean([items[-1].shrinkage for items in by_silo]))
    band_posterior = fit_band_posterior(last, state.geometry, state.density, state.prior, kept)
    evidence = [item for items in by_silo for item in items]
    shift, variance = fit_shift(evidence, state.geometry.information, last.posterior.mean)
    return Result(last.posterior.shifted(shift, variance), band_posterior.shifted(shift, variance))
