"""What the coordinator knows after a round. Nothing here changes: a round makes a new state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpfda._typing import Floats
from dpfda.methods.adaptive.coordinates import Coordinates
from dpfda.methods.adaptive.design import DesignDensity
from dpfda.methods.adaptive.estimate import Estimate
from dpfda.methods.adaptive.evidence import Evidence
from dpfda.methods.adaptive.geometry import Geometry, assumed_gradient_covariance
from dpfda.methods.adaptive.level import Level
from dpfda.methods.adaptive.posterior import Posterior, Prior
from dpfda.protocol.clip_radius import SharedCount
from dpfda.protocol.length_filter import LengthFilter


@dataclass(frozen=True)
class SiloState:
    """What is known of one silo: its lengths, from one count for each gradient round (None: it did not answer), and the
    gradients that it has released.
    """

    lengths: LengthFilter
    counts: tuple[SharedCount | None, ...] = ()
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class Result:
    """How a study ends: what the estimate and what a band believes, the shift that clipping made given back to both."""

    posterior: Posterior
    band_posterior: Posterior


@dataclass(frozen=True)
class State:
    """All that is known after a round; every number is released or public.

    Round 0 sets `level`, the share `filled` of curves that have points, `density` (and `silo_densities` where designs
    clearly differ), `covariate_sizes`, `prior` and `length_prior`. Later rounds change the others: `geometry` once products
    of covariates are released, `gradient_covariance` once it is measured, `iterate` and the `shape` W of the `coordinates`
    for the next question, `displacements` (squared lengths of the iterate's moves), `silos` and the last `estimate`.
    """

    level: Level
    filled: float
    density: DesignDensity
    silo_densities: Mapping[str, DesignDensity]
    covariate_sizes: Floats
    prior: Prior
    length_prior: tuple[float, float, float]
    geometry: Geometry
    silo_geometries: Mapping[str, Geometry]
    shape: Floats
    coordinates: Coordinates
    iterate: Floats
    silos: Mapping[str, SiloState]
    displacements: tuple[float, ...] = ()
    gradient_covariance: Floats | None = None
    estimate: Estimate | None = None
    result: Result | None = None

    def covariance_of_gradients(self) -> Floats:
        """Measured or assumed, zeros included, in units of the other gradients' median length squared."""
        if self.gradient_covariance is not None:
            return self.gradient_covariance
        return assumed_gradient_covariance(self.geometry, self.filled)
