"""Pieces of the default method for its unit tests: moments without noise, matrices, and a study round by round."""

from __future__ import annotations

import numpy as np
from installed import installed

from dpfda import Silo
from dpfda.basis.moments import uniform_moments
from dpfda.curves.simulated import simulate_mean
from dpfda.methods.adaptive import rounds
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.protocol.messages import Query
from dpfda.protocol.plans import adaptive_plan
from dpfda.protocol.scaling import Scaling
from dpfda.transports.in_process import InProcessTransport

MEAN = Scaling((-4.0, 6.0), ((1.0, 1.0),), 1.0, 5.0)


def exact_moments(basis, u, sd):
    values = basis.moment_features(u).mean(axis=0) - uniform_moments(basis)
    return Pooled(values, np.full(values.size, sd), float(u.size))


def definite(rng, size):
    root = rng.standard_normal((size, size))
    return root @ root.T + 0.3 * np.eye(size)


def walk(sizes=(400,), epsilon=2.0, absent=None, **options):
    """A seeded study: its plan and, for every round, the state before it, its question, the releases, the state after it.

    `absent` is a round in which the last silo does not answer.
    """
    silos = [
        Silo(simulate_mean(n, 5, rng=k), epsilon=epsilon, delta=1e-5, name=f"s{k}", random_state=k)
        for k, n in enumerate(sizes)
    ]
    plan = adaptive_plan([silo.terms() for silo in silos], MEAN, domain=(0.0, 1.0), **options)
    transport = InProcessTransport(silos)
    transport.open(installed(plan), "run")
    state, steps = None, []
    for index in range(len(plan.rounds)):
        question = rounds.question(plan, state, index)
        releases = dict(transport.gather(Query("run", index, question)))
        if index == absent:
            releases.popitem()
        after = rounds.learn(plan, state, index, releases)
        steps.append((state, question, releases, after))
        state = after
    return plan, steps
