"""Noisy bisection, round by round."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.methods.quantiles import QuantileCoordinator
from dpfda.protocol.messages import Release
from dpfda.protocol.plans.quantiles import STEPS, quantile_plan
from dpfda.protocol.terms import SiloTerms


def test_without_noise_every_level_is_found_to_the_width_of_its_last_bracket() -> None:
    values = np.random.default_rng(0).normal(0.1, 0.2, 5001)
    levels = (0.25, 0.5, 0.9)
    plan = quantile_plan(SiloTerms("a", values.size, 1.0, 1e-5), levels, (0.0, 1.0), (-1.0, 1.0))
    coordinator = QuantileCoordinator(plan)
    for index in range(len(plan.rounds)):
        (threshold,) = coordinator.question(index)["iterate"]
        share = np.array([(values <= threshold).mean() - 0.5])
        coordinator.learn(index, {"a": Release("run", index, "a", share, np.zeros(1), False)})
    assert coordinator.coefficients() == pytest.approx(np.quantile(values, levels), abs=2 * 0.5**STEPS)
