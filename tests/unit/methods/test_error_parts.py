"""The error by source."""

from __future__ import annotations

import numpy as np
from adaptive_pieces import definite

from dpfda.methods.adaptive.error_parts import SiloCovariances, split_error
from dpfda.methods.adaptive.posterior import Posterior


def test_silos_are_weighted_by_their_precisions() -> None:
    rng = np.random.default_rng(0)
    noise, sampling, values = (np.stack([make() for _ in range(3)]) for make in (
        lambda: definite(rng, 3), lambda: definite(rng, 3), lambda: rng.standard_normal(3)))  # fmt: skip
    silos = SiloCovariances(noise, sampling)
    precisions = [np.linalg.inv(one + few) for one, few in zip(noise, sampling, strict=True)]
    pooled = np.linalg.inv(sum(precisions))
    np.testing.assert_allclose(silos.pooled, pooled)
    expected = pooled @ sum(one @ value for one, value in zip(precisions, values, strict=True))
    np.testing.assert_allclose(silos.mean(values), expected)


def test_without_a_prior_noise_and_sampling_are_all_of_the_error() -> None:
    """b = A^-1 h: its covariance is A^-1 (noise + sampling + doubt) A^-1, and nothing is left for bias."""
    rng = np.random.default_rng(1)
    information, doubt = definite(rng, 3), 0.1 * definite(rng, 3)
    silos = SiloCovariances(definite(rng, 3)[None], definite(rng, 3)[None])
    back = np.linalg.inv(information)
    total = back @ (silos.noise[0] + silos.sampling[0] + doubt) @ back.T
    parts = split_error(Posterior(np.zeros(3), total, 1.0), total, information, doubt, silos, 0.3)
    np.testing.assert_allclose(parts.sampling, back @ silos.sampling[0] @ back.T)
    np.testing.assert_allclose(parts.privacy, back @ (silos.noise[0] + doubt) @ back.T)
    np.testing.assert_allclose(parts.sampling + parts.privacy, parts.total)
