"""The default method, seen from the coordinator: what to ask next, and what was learnt."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.methods.adaptive.design import DesignDensity, fit_density, thin_directions
from dpfda.methods.adaptive.error_parts import ErrorParts, error_parts
from dpfda.methods.adaptive.estimate import Estimate, Measured, estimate
from dpfda.methods.adaptive.evidence import Coordinates, Evidence, Rest
from dpfda.methods.adaptive.geometry import (
    CovariateMatrix,
    Geometry,
    assumed_geometry,
    clipping_shape,
    covariate_matrix,
    covariate_sizes,
    uncorrelated,
)
from dpfda.methods.adaptive.gradient_covariance import mean_square, pool_scaled, shrunk_spread, trace_sd
from dpfda.methods.adaptive.level import fit_filled, fit_level
from dpfda.methods.adaptive.matrices import kron
from dpfda.methods.adaptive.pooling import Pooled, pool
from dpfda.methods.adaptive.posterior import Posterior, Prior, cautious, sobolev_covariance, with_tail
from dpfda.methods.adaptive.silo_designs import own_densities
from dpfda.methods.adaptive.skewness import clipping_shift, kept_share, rest_direction
from dpfda.privacy.cones import from_triangle
from dpfda.protocol.clip_radius import SharedCount, clip_rule, follow, released_count
from dpfda.protocol.length_filter import LengthFilter
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import (
    ClippedRemainder,
    CovariateProducts,
    CovariateSquares,
    DesignMoments,
    GradientOuterProducts,
    LevelHistogram,
    Statistic,
    WhitenedGradient,
)

_SPREAD_TRACE = 1.2  # E |v|^2 / median^2 of whitened gradients, before it is measured


class AdaptiveCoordinator:
    """Learns from one round after the other; every number it holds is released or public."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.size = plan.n_coefficients * plan.basis.size
        self.last = len(plan.rounds) - 1
        self.gives_back = any(plan.slice_of(index, ClippedRemainder) is not None for index in range(len(plan.rounds)))
        self.evidence: dict[str, list[Evidence]] = {terms.name: [] for terms in plan.silos}
        self.moves: list[float] = []
        self.measured_spread: Floats | None = None
        self.shape: Floats | None = None

    @property
    def covariance(self) -> Floats | None:
        """Covariance of the coefficients, those beyond the basis included: sampling, privacy noise and truncation."""
        return with_tail(self.for_band, self.plan.basis, self.plan.alpha)

    @property
    def error_parts(self) -> ErrorParts | None:
        """The error to expect, by source."""
        total = with_tail(self.posterior, self.plan.basis, self.plan.alpha)
        last, information = self.estimate, self.geometry.information
        return error_parts(self.posterior, total, information, last.doubt, last.silos, self.level.spread)

    def coefficients(self) -> Floats:
        """The last estimate."""
        return self.posterior.mean.reshape(self.plan.shape)

    def question(self, index: int) -> dict[str, Floats]:
        """The arrays of round `index`."""
        if index == 0:
            return {}
        known = {
            "iterate": self.iterate,
            "whitener": self.coordinates.whitener.ravel(),
            "length_prior": np.array(self.length_prior),
            "displacements": np.array(self.moves),
            "covariate_scale": self.covariate_sizes,
            "remainder_direction": self._rest_direction(),
        }
        return {name: known[name] for name in self.plan.query_sizes(index)}

    def _rest_direction(self) -> Floats:
        return rest_direction(self.geometry.information, self.coordinates.whitener)

    def learn(self, index: int, releases: Mapping[str, Release]) -> None:
        """Take in the answers of round `index`."""
        if index == 0:
            self._start(releases)
            return
        for name, release in releases.items():
            self._record(index, name, release)
        if self.plan.slice_of(index, CovariateProducts) is not None:
            self._learn_covariates(index, releases)
        if self.plan.slice_of(index, GradientOuterProducts) is not None:
            self._learn_spread(index, releases)
        self.estimate = self._estimate()
        self.posterior = self.estimate.posterior
        if index < self.last:
            self._advance()
        else:
            self.for_band = self._for_band()
            self._give_back()

    def _pooled(self, index: int, kind: type[Statistic], releases: Mapping[str, Release]) -> Pooled | None:
        if self.plan.slice_of(index, kind) is None:
            return None
        return pool(self.plan, index, kind, releases)

    def _start(self, releases: Mapping[str, Release]) -> None:
        """Round 0: level and spread of y, design density, sizes of the covariates."""
        histogram = pool(self.plan, 0, LevelHistogram, releases)
        filled = fit_filled(histogram)
        self.filled = filled.share
        self.level = fit_level(histogram, filled)
        moments = self._pooled(0, DesignMoments, releases)
        if moments is not None:  # curves without points contributed zero
            moments = moments.scaled(1 / filled.share)
        self.density = fit_density(self.plan.basis, moments)
        self.own_densities: dict[str, DesignDensity] = {}
        if moments is not None and len(releases) > 1:
            own = {name: pool(self.plan, 0, DesignMoments, {name: release}) for name, release in releases.items()}
            own = {name: moments.scaled(1 / filled.share) for name, moments in own.items()}
            self.own_densities = own_densities(self.plan.basis, moments, own)
        squares = self._pooled(0, CovariateSquares, releases)
        self.covariate_sizes = covariate_sizes(squares, self.plan.n_coefficients)
        self._set_geometry(uncorrelated(self.covariate_sizes, filled.share, filled.sd))
        self.prior = self._prior()
        self.iterate = np.zeros(self.size)
        self.iterate[0] = self.level.value
        self._choose_coordinates(self.geometry.assumed_shape)
        level = np.zeros((self.size, self.size))
        level[0, 0] = self.level.sd**2
        own = self.level.spread**2 * self.size / self.geometry.spread[0, 0]
        self.length_prior = (
            math.log(own + self._squared_distance(level)) / 2,
            math.hypot(0.5, self.level.log_spread_sd),
            self.filled,
        )
        self.counts: dict[str, list[SharedCount | None]] = {terms.name: [] for terms in self.plan.silos}
        self.lengths = {name: self._lengths(name) for name in self.counts}

    def _lengths(self, name: str) -> LengthFilter:
        return follow(self.length_prior, self.moves, self.counts[name])

    def _set_geometry(self, covariates: CovariateMatrix) -> None:
        basis, even = self.plan.basis, self.gives_back
        self.geometry: Geometry = assumed_geometry(basis, self.density, covariates, even=even)
        self.own_geometries = {
            name: assumed_geometry(basis, density, covariates, even=even)
            for name, density in self.own_densities.items()
        }

    def _spread(self) -> Floats:
        """The covariance of gradients, many of which may be zero, in units of the others' median length squared."""
        if self.measured_spread is not None:
            return self.measured_spread
        return self.geometry.spread * (self.filled * _SPREAD_TRACE / self.size)

    def _choose_coordinates(self, shape: Floats) -> None:
        """The coordinates of the next round; nothing to do where the last ones had the same W."""
        if shape is not self.shape:
            self.shape, self.coordinates = shape, Coordinates.of(shape, self._spread())

    def _record(self, index: int, name: str, release: Release) -> None:
        """Keep a silo's gradient, with the shrinkage that its count makes likely."""
        terms = self.plan.terms(name)
        radius = clip_rule(self.lengths[name], terms.clip_factor).radius
        self.counts[name].append(released_count(self.plan, index, release, terms.n))
        self.lengths[name] = lengths = self._lengths(name)
        shrinkage, clipped, uncertainty = lengths.attenuation(math.log(radius))
        place = self.plan.slice_of(index, WhitenedGradient)
        self.evidence[name].append(
            Evidence(
                value=release.values[place],
                noise_sd=float(release.noise_sd[place][0]),
                iterate=self.iterate,
                coordinates=self.coordinates,
                shrinkage=shrinkage,
                clipped=clipped,
                uncertainty=uncertainty,
                squared_length=math.exp(2 * lengths.log_median),
                radius=radius,
                round=index,
                rest=self._rest(index, release, terms.clip_factor),
                filled=self.filled,
            )
        )

    def _rest(self, index: int, release: Release, clip_factor: float) -> Rest | None:
        place = self.plan.slice_of(index, ClippedRemainder)
        if place is None:
            return None
        reach = next(kind.reach for kind in self.plan.rounds[index].statistics if isinstance(kind, ClippedRemainder))
        value, sd = float(release.values[place][0]), float(release.noise_sd[place][0])
        return Rest(value, sd, self._rest_direction(), kept_share(reach, clip_factor))

    def _learn_covariates(self, index: int, releases: Mapping[str, Release]) -> None:
        products = pool(self.plan, index, CovariateProducts, releases)
        self._set_geometry(covariate_matrix(products, self.covariate_sizes))

    def _learn_spread(self, index: int, releases: Mapping[str, Release]) -> None:
        """The covariance of whitened gradients: measured, freed of clipping, shrunk towards the assumed one."""
        scaled, restored, cuts = {}, [], []
        place = self.plan.slice_of(index, GradientOuterProducts)
        for name, release in releases.items():
            last = self.evidence[name][-1]
            unit = last.radius**2 / last.squared_length
            scaled[name] = (release.values[place] * unit, release.noise_sd[place] * unit)
            restored.append(last.restoration())
            cuts.append(math.sqrt(unit))
        values, noise = pool_scaled(self.plan, scaled)
        clipped, restore = from_triangle(values), np.mean(restored, axis=0)
        square, sd = float(np.trace(clipped)) / self.filled, trace_sd(noise, self.size) / self.filled
        trace = self.filled * mean_square(square, sd, sum(cuts) / len(cuts))
        noise *= float(np.trace(restore @ restore)) / self.size
        matrix = restore @ clipped @ restore.T
        whitened = shrunk_spread(matrix, noise, self._assumed_directions(), trace)
        self.measured_spread = self.coordinates.root @ whitened @ self.coordinates.root

    def _assumed_directions(self) -> Floats:
        whitener = self.coordinates.whitener
        directions = whitener @ self.geometry.spread @ whitener
        result: Floats = directions / np.trace(directions)
        return result

    def _estimate(self) -> Estimate:
        """From all silos that have answered a gradient round."""
        names = [name for name, evidence in self.evidence.items() if evidence]
        per_curve = [math.exp(2 * self.lengths[name].log_median) / self.plan.terms(name).n for name in names]
        measured = Measured(
            evidence=[self.evidence[name] for name in names],
            sampling=self._spread() * np.array(per_curve)[:, None, None],
            own=[self.own_geometries.get(name) for name in names],
        )
        return estimate(measured, self.geometry, self.prior)

    def _for_band(self) -> Posterior:
        """What a band should believe.

        Where there may be hardly any data, A tells next to nothing of how far the curve is from the estimate, however well
        the rounds seem to agree: bands that took their agreement for knowledge held mu_2 under a density that falls to zero
        in two runs of three.
        """
        last, kept = self.estimate, np.mean([items[-1].shrinkage for items in self.evidence.values() if items])
        thin = kron(np.eye(self.plan.n_coefficients), thin_directions(self.density))

        def doubt(away: Floats, widest: Floats) -> Floats:
            return self.geometry.doubt(away + thin @ widest @ thin.T)

        return cautious(
            last.posterior, last.value, last.known, self.geometry.information, self.prior, float(kept), doubt
        )

    def _give_back(self) -> None:
        """Subtract from the estimate what clipping shifted it by, as far as it was measured."""
        evidence = [item for items in self.evidence.values() for item in items]
        shift, variance = clipping_shift(evidence, self.geometry.information, self.posterior.mean)
        self.posterior = self.posterior.shifted(shift, variance)
        self.for_band = self.for_band.shifted(shift, variance)

    def _prior(self) -> Prior:
        kernel = sobolev_covariance(self.plan.basis, self.plan.alpha)
        level_sd = math.hypot(self.level.spread, self.level.sd) + 0.02
        return Prior(kernel, self.plan.n_coefficients, self.level.value, level_sd)

    def _advance(self) -> None:
        """Move to the estimate, kept within the bounds of y, and choose the next coordinates.

        Lengths fall by what the move explains, but not below what the doubt about the estimate makes likely: radii that fell
        on the strength of noise alone would make a walk of it.
        """
        target = self.posterior.mean
        step = target - self.iterate
        surest = min(self.lengths.values(), key=lambda lengths: lengths.sd)
        room = math.exp(2 * surest.log_median) - self._squared_distance(self.posterior.covariance)
        self.moves.append(min(self._squared_distance(step[:, None] * step), max(room, 0.0)))
        for name, counts in self.counts.items():
            if len(counts) < len(self.moves):  # it did not answer
                counts.append(None)
            self.lengths[name] = self._lengths(name)
        self.iterate = self._within_bounds(target)
        if self.measured_spread is None:
            self._choose_coordinates(self.geometry.assumed_shape)
        else:
            self._choose_coordinates(clipping_shape(self.geometry, self.measured_spread, self.shape))

    def _squared_distance(self, displacement: Floats) -> float:
        """The mean squared length of whitened gradients, zeros apart, that displacements with these second moments make."""
        whitened = self.coordinates.whitener @ self.geometry.information / self.filled
        return float(((whitened @ displacement) * whitened).sum())

    def _within_bounds(self, coefficients: Floats) -> Floats:
        """Shrink towards the level until the first coefficient function stays in [-1, 1]."""
        level, r = self.level.value, self.plan.basis.size
        curve = _over_domain(self.plan.basis) @ coefficients[:r] - level
        factor = min(1.0, (1 - level) / max(curve.max(), 1e-9), (1 + level) / max(-curve.min(), 1e-9))
        kept: Floats = coefficients * factor
        kept[0] += (1 - factor) * level
        return kept


@lru_cache(maxsize=64)
def _over_domain(basis: Basis) -> Floats:
    """The basis functions on a grid of the domain."""
    return basis.evaluate_unit(np.linspace(0, 1, 101))
