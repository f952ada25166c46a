"""The default method, seen from the coordinator: what to ask next, and what was learnt."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpfda.engine.adaptive.density import POSITIVE, DesignDensity, fit_density, thin_directions
from dpfda.engine.adaptive.designs import own_densities
from dpfda.engine.adaptive.error_parts import ErrorParts, SiloCovariance, error_parts
from dpfda.engine.adaptive.evidence import Coordinates, Evidence, Rest, combine_rounds
from dpfda.engine.adaptive.geometry import (
    CovariateMatrix,
    Geometry,
    assumed_geometry,
    clipping_shape,
    covariate_matrix,
    covariate_sizes,
    uncorrelated,
)
from dpfda.engine.adaptive.level import fit_filled, fit_level
from dpfda.engine.adaptive.matrices import power
from dpfda.engine.adaptive.pooling import Pooled, pool
from dpfda.engine.adaptive.posterior import Posterior, Prior, cautious, sobolev_covariance, solve, wider_root, with_tail
from dpfda.engine.adaptive.skew import clipping_shift, kept_share, rest_direction
from dpfda.engine.adaptive.spread import mean_square, pool_scaled, shrunk_spread, trace_sd
from dpfda.engine.plan import Plan
from dpfda.engine.quantities import (
    ClippedRest,
    CovariateProducts,
    CovariateSquares,
    DesignMoments,
    LevelHistogram,
    Measure,
    SpreadMatrix,
    WhitenedGradient,
)
from dpfda.engine.radius import advance, clip_rule, learn, released_count
from dpfda.messages import Release
from dpfda.privacy.cones import from_triangle
from dpfda.privacy.quantiles import LengthFilter

Floats = NDArray[np.float64]

_SPREAD_TRACE = 1.2  # E |v|^2 / median^2 of whitened gradients, before it is measured
_REFINEMENTS = 4
_TYPICAL_SIZE = 0.2


class AdaptiveCoordinator:
    """Learns from one round after the other; every number it holds is released or public."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.size = plan.n_coefficients * plan.basis.size
        self.last = len(plan.rounds) - 1
        self.gives_back = any(plan.slice_of(index, ClippedRest) is not None for index in range(len(plan.rounds)))
        self.evidence: dict[str, list[Evidence]] = {terms.name: [] for terms in plan.silos}
        self.moves: list[float] = []
        self.measured_spread: Floats | None = None

    @property
    def covariance(self) -> Floats | None:
        """Covariance of the coefficients, those beyond the basis included: sampling, privacy noise and truncation."""
        return with_tail(self.for_band, self.plan.basis, self.plan.alpha)

    @property
    def error_parts(self) -> ErrorParts | None:
        """The error to expect, by source."""
        total = with_tail(self.posterior, self.plan.basis, self.plan.alpha)
        information, spread = self.geometry.information, self.level.spread
        return error_parts(self.posterior, total, information, self.doubt, list(self.silos.values()), spread)

    def coefficients(self) -> Floats:
        """The last estimate."""
        return self.posterior.mean.reshape(self.plan.shape)

    def question(self, index: int) -> dict[str, Floats]:
        """The arrays of round `index`."""
        known = {}
        if index > 0:
            known = {
                "iterate": self.iterate,
                "whitener": power(self.shape, -0.5).ravel(),
                "length_prior": np.array(self.length_prior),
                "moves": np.array(self.moves),
                "covariate_scale": self.covariate_sizes,
                "rest_direction": self._rest_direction(),
            }
        return {name: known[name] for name in self.plan.query_sizes(index)}

    def _rest_direction(self) -> Floats:
        return rest_direction(self.geometry.information, power(self.shape, -0.5))

    def learn(self, index: int, releases: Mapping[str, Release]) -> None:
        """Take in the answers of round `index`."""
        if index == 0:
            self._start(releases)
            return
        coordinates = self._coordinates()
        for name, release in releases.items():
            self._record(index, name, release, coordinates)
        if self._pooled(index, CovariateProducts, releases) is not None:
            self._learn_covariates(index, releases)
        if self._pooled(index, SpreadMatrix, releases) is not None:
            self._learn_spread(index, releases, coordinates)
        self.posterior = self._estimate()
        if index < self.last:
            self._advance(coordinates)
        else:
            self._give_back()

    def _pooled(self, index: int, kind: type[Measure], releases: Mapping[str, Release]) -> Pooled | None:
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
        self.shape = clipping_shape(self.geometry, self.geometry.spread)
        level = np.zeros((self.size, self.size))
        level[0, 0] = self.level.sd**2
        own = self.level.spread**2 * self.size / self.geometry.spread[0, 0]
        self.length_prior = (
            math.log(own + self._squared_distance(level)) / 2,
            math.hypot(0.5, self.level.log_spread_sd),
            self.filled,
        )
        self.lengths = {terms.name: LengthFilter(*self.length_prior) for terms in self.plan.silos}

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

    def _coordinates(self) -> Coordinates:
        whitener = power(self.shape, -0.5)
        directions = whitener @ self._spread() @ whitener.T
        return Coordinates(
            self.shape, power(self.shape, 0.5), power(self.shape, -1.0), directions / np.trace(directions)
        )

    def _record(self, index: int, name: str, release: Release, coordinates: Coordinates) -> None:
        """Keep a silo's gradient, with the shrinkage that its count makes likely."""
        terms, lengths = self.plan.terms(name), self.lengths[name]
        radius = clip_rule(lengths, terms.clip_factor).radius
        learn(lengths, released_count(self.plan, index, release, terms.n))
        shrinkage, clipped, uncertainty = lengths.attenuation(math.log(radius))
        place = self.plan.slice_of(index, WhitenedGradient)
        self.evidence[name].append(
            Evidence(
                value=release.values[place],
                noise_sd=float(release.noise_sd[place][0]),
                iterate=self.iterate,
                coordinates=coordinates,
                shrinkage=shrinkage,
                clipped=clipped,
                uncertainty=uncertainty,
                squared_length=math.exp(2 * lengths.log_median),
                radius=radius,
                is_first=index == 1,
                rest=self._rest(index, release, terms.clip_factor),
                filled=self.filled,
            )
        )

    def _rest(self, index: int, release: Release, clip_factor: float) -> Rest | None:
        place = self.plan.slice_of(index, ClippedRest)
        if place is None:
            return None
        reach = next(kind.reach for kind in self.plan.rounds[index].measures if isinstance(kind, ClippedRest))
        value, sd = float(release.values[place][0]), float(release.noise_sd[place][0])
        return Rest(value, sd, self._rest_direction(), kept_share(reach, clip_factor))

    def _learn_covariates(self, index: int, releases: Mapping[str, Release]) -> None:
        products = pool(self.plan, index, CovariateProducts, releases)
        self._set_geometry(covariate_matrix(products, self.covariate_sizes))

    def _learn_spread(self, index: int, releases: Mapping[str, Release], coordinates: Coordinates) -> None:
        """The covariance of whitened gradients: measured, freed of clipping, shrunk towards the assumed one."""
        scaled, restored, cuts = {}, [], []
        place = self.plan.slice_of(index, SpreadMatrix)
        for name, release in releases.items():
            last = self.evidence[name][-1]
            unit = last.radius**2 / last.squared_length
            scaled[name] = (release.values[place] * unit, release.noise_sd[place] * unit)
            restored.append(np.linalg.inv(last.jacobian(0.0)))
            cuts.append(math.sqrt(unit))
        values, noise = pool_scaled(self.plan, scaled)
        clipped, restore = from_triangle(values), np.mean(restored, axis=0)
        square, sd = float(np.trace(clipped)) / self.filled, trace_sd(noise, self.size) / self.filled
        trace = self.filled * mean_square(square, sd, sum(cuts) / len(cuts))
        noise *= float(np.trace(restore @ restore)) / self.size
        matrix = restore @ clipped @ restore.T
        whitened = shrunk_spread(matrix, noise, self._assumed_directions(coordinates), trace)
        self.measured_spread = coordinates.root @ whitened @ coordinates.root

    def _assumed_directions(self, coordinates: Coordinates) -> Floats:
        whitener = np.linalg.inv(coordinates.root)
        directions = whitener @ self.geometry.spread @ whitener.T
        result: Floats = directions / np.trace(directions)
        return result

    def _estimate(self) -> Posterior:
        """Combine all rounds of all silos; the second pass knows how far each round was from the end."""
        information, prior = self.geometry.information, self.prior
        posterior: Posterior | None = None
        self.silos: dict[str, SiloCovariance] = {}
        extra: dict[str, Floats] = {}
        root = prior.root(_TYPICAL_SIZE)
        away = root @ root.T
        for _ in range(_REFINEMENTS):
            precision, weighted = np.zeros((self.size, self.size)), np.zeros(self.size)
            for name, evidence in self.evidence.items():
                if not evidence:
                    continue
                own = self.own_geometries.get(name)
                centre = None if posterior is None else posterior.mean
                seen = information if own is None else own.information
                value, noise = combine_rounds(evidence, seen, self.geometry.misfit, centre, extra.get(name))
                extra[name] = noise
                sampling = self._spread() * (math.exp(2 * self.lengths[name].log_median) / self.plan.terms(name).n)
                turned = np.eye(self.size) if own is None else np.linalg.solve(information, own.information).T
                self.silos[name] = SiloCovariance(
                    noise + (0.0 if own is None else own.doubt(away)), sampling, np.asarray(turned)
                )
                precision += self.silos[name].precision()
                weighted += self.silos[name].weight() @ value
            covariance: Floats = np.asarray(np.linalg.inv(precision), dtype=np.float64)
            value = covariance @ weighted
            self.doubt = np.zeros_like(covariance) if self.own_geometries else self.geometry.doubt(away)
            covariance = covariance + self.doubt
            posterior = solve(value, covariance, information, prior)
            step = posterior.mean - self.iterate
            away = np.outer(step, step) + posterior.covariance
        assert posterior is not None
        kept = float(np.mean([evidence[-1].shrinkage for evidence in self.evidence.values() if evidence]))
        self.for_band = cautious(posterior, value, covariance + self._thin_doubt(posterior), information, prior, kept)
        return posterior

    def _thin_doubt(self, posterior: Posterior) -> Floats:
        """What a wrong design density does where there are hardly any data, if the curve is as the wider prior allows.

        The estimate takes its own displacement for known, also where a wrong density alone has fixed it: bands then held
        mu_2 under a density that falls to zero in half of the runs. What positivity tells of the moments does not count.
        """
        thin = np.kron(np.eye(self.plan.n_coefficients), thin_directions(self.density))
        root = thin @ wider_root(posterior, self.prior)
        return self.geometry.doubt(root @ root.T) / POSITIVE**2

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

    def _advance(self, coordinates: Coordinates) -> None:
        """Move to the estimate, kept within the bounds of y, and choose the next coordinates.

        Lengths fall by what the move explains, but not below what the doubt about the estimate makes likely: radii that fell
        on the strength of noise alone would make a walk of it.
        """
        target = self.posterior.mean
        step = target - self.iterate
        surest = min(self.lengths.values(), key=lambda lengths: lengths.sd)
        room = math.exp(2 * surest.log_median) - self._squared_distance(self.posterior.covariance)
        self.moves.append(min(self._squared_distance(np.outer(step, step)), max(room, 0.0)))
        for lengths in self.lengths.values():
            advance(lengths, self.moves[-1])
        self.iterate = self._within_bounds(target)
        previous = None if self.measured_spread is None else self.shape
        self.shape = clipping_shape(
            self.geometry, self._spread() if previous is not None else self.geometry.spread, previous
        )

    def _squared_distance(self, displacement: Floats) -> float:
        """The mean squared length of whitened gradients, zeros apart, that displacements with these second moments make."""
        information = self.geometry.information / self.filled
        return float(np.trace(np.linalg.solve(self.shape, information @ displacement @ information.T)))

    def _within_bounds(self, coefficients: Floats) -> Floats:
        """Shrink towards the level until the first coefficient function stays in [-1, 1]."""
        level, r = self.level.value, self.plan.basis.size
        curve = self.plan.basis.evaluate_unit(np.linspace(0, 1, 101)) @ coefficients[:r] - level
        factor = min(1.0, (1 - level) / max(curve.max(), 1e-9), (1 + level) / max(-curve.min(), 1e-9))
        kept: Floats = coefficients * factor
        kept[0] += (1 - factor) * level
        return kept
