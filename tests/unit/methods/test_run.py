"""The one loop: ask, gather, learn."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import MEAN
from installed import installed

from dpfda import Silo, TransportError
from dpfda.curves.simulated import simulate_mean
from dpfda.methods.run import COORDINATORS, run_study
from dpfda.protocol.plans import adaptive_plan
from dpfda.transports.in_process import InProcessTransport


@pytest.fixture
def study():
    silo = Silo(simulate_mean(300, 4, rng=0), epsilon=1.0, delta=1e-5, name="a", random_state=1)
    return adaptive_plan([silo.terms()], MEAN, domain=(0.0, 1.0), n_basis=3), InProcessTransport([silo])


def test_every_round_is_asked_once_and_reported(study) -> None:
    plan, transport = study
    seen = []
    outcome = run_study(installed(plan), transport, "run", lambda done, of: seen.append((done, of)))
    assert seen == [(number, len(plan.rounds)) for number in range(1, len(plan.rounds) + 1)]
    assert outcome.coefficients.shape == plan.shape
    assert np.linalg.eigvalsh(outcome.covariance).min() > 0
    assert not outcome.private  # the silo is seeded
    assert outcome.errors is not None
    assert plan.method in COORDINATORS


def test_a_round_without_answers_ends_the_study(study) -> None:
    plan, transport = study
    transport.gather = lambda query: {}
    with pytest.raises(TransportError, match="No silo answered"):
        run_study(installed(plan), transport, "run")
