"""Round 0: the level and sd of y, the design density, the sizes of the covariates; and where gradient rounds begin."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dpfda.methods.adaptive.constants import LEVEL_MARGIN, START_LENGTH_SD
from dpfda.methods.adaptive.coordinates import Coordinates, expect_squared_length
from dpfda.methods.adaptive.design import DesignDensity, fit_density
from dpfda.methods.adaptive.geometry import (
    CovariateMatrix,
    Geometry,
    assume_geometry,
    assume_uncorrelated,
    assumed_gradient_covariance,
    fit_covariate_sizes,
)
from dpfda.methods.adaptive.level import Filled, Level, fit_filled, fit_level
from dpfda.methods.adaptive.pooling import pool, pool_if_released
from dpfda.methods.adaptive.posterior import Prior, sobolev_covariance
from dpfda.methods.adaptive.silo_designs import fit_silo_densities
from dpfda.methods.adaptive.state import SiloState, State
from dpfda.protocol.clip_radius import track_lengths
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import ClippedRemainder, CovariateSquares, DesignMoments, LevelHistogram


def start(plan: Plan, releases: Mapping[str, Release]) -> State:
    """What is known after round 0; the first iterate is the level."""
    histogram = pool(plan, 0, LevelHistogram, releases)
    filled = fit_filled(histogram)
    level = fit_level(histogram, filled)
    density, silo_densities = learn_designs(plan, filled, releases)
    squares = pool_if_released(plan, 0, CovariateSquares, releases)
    covariate_sizes = fit_covariate_sizes(squares, plan.n_coefficients)
    covariates = assume_uncorrelated(covariate_sizes, filled.share, filled.sd)
    geometry, silo_geometries = assume_geometries(plan, density, silo_densities, covariates)
    shape = geometry.assumed_shape
    coordinates = Coordinates.of(shape, assumed_gradient_covariance(geometry, filled.share))
    iterate = np.zeros(plan.n_coefficients * plan.basis.size)
    iterate[0] = level.value
    length_prior = expect_first_lengths(level, filled, geometry, coordinates)
    return State(
        level=level,
        filled=filled.share,
        density=density,
        silo_densities=silo_densities,
        covariate_sizes=covariate_sizes,
        prior=choose_prior(plan, level),
        length_prior=length_prior,
        geometry=geometry,
        silo_geometries=silo_geometries,
        shape=shape,
        coordinates=coordinates,
        iterate=iterate,
        silos={terms.name: SiloState(track_lengths(length_prior, (), ())) for terms in plan.silos},
    )


def learn_designs(
    plan: Plan, filled: Filled, releases: Mapping[str, Release]
) -> tuple[DesignDensity, dict[str, DesignDensity]]:
    """The pooled design density, and those of the silos where they clearly differ; curves without points gave zero."""
    moments = pool_if_released(plan, 0, DesignMoments, releases)
    if moments is None:
        return fit_density(plan.basis, None), {}
    moments = moments.scaled(1 / filled.share)
    density = fit_density(plan.basis, moments)
    if len(releases) == 1:
        return density, {}
    by_silo = {
        name: pool(plan, 0, DesignMoments, {name: release}).scaled(1 / filled.share)
        for name, release in releases.items()
    }
    return density, fit_silo_densities(plan.basis, moments, by_silo)


def assume_geometries(
    plan: Plan, density: DesignDensity, silo_densities: Mapping[str, DesignDensity], covariates: CovariateMatrix
) -> tuple[Geometry, dict[str, Geometry]]:
    """The geometry of all silos together, and those of the silos with designs of their own.

    Where skewness will be corrected, clipping must not depend on the design.
    """
    even = any(plan.slice_of(index, ClippedRemainder) is not None for index in range(len(plan.rounds)))
    geometry = assume_geometry(plan.basis, density, covariates, even=even)
    by_silo = {
        name: assume_geometry(plan.basis, found, covariates, even=even) for name, found in silo_densities.items()
    }
    return geometry, by_silo


def choose_prior(plan: Plan, level: Level) -> Prior:
    """The Sobolev prior around the released level."""
    level_sd = math.hypot(level.sd_of_means, level.sd) + LEVEL_MARGIN
    return Prior(sobolev_covariance(plan.basis, plan.alpha), plan.n_coefficients, level.value, level_sd)


def expect_first_lengths(
    level: Level, filled: Filled, geometry: Geometry, coordinates: Coordinates
) -> tuple[float, float, float]:
    """Log median of the first gradients' lengths, its sd, and the share of curves that have points."""
    size = len(geometry.information)
    error_of_level = np.zeros((size, size))
    error_of_level[0, 0] = level.sd**2
    from_curves = level.sd_of_means**2 * size / geometry.gradient_covariance[0, 0]
    from_level = expect_squared_length(coordinates.whitener, geometry.information, filled.share, error_of_level)
    log_median = math.log(from_curves + from_level) / 2
    return log_median, math.hypot(START_LENGTH_SD, level.log_sd_of_means_sd), filled.share
