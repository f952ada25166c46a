"""The federated fit is the in-process fit, bit for bit, with the same seeds; one site alone is the central fit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_array_equal

pytest.importorskip("nvflare")

from world import SITES, covariate, curves, study

from dpfda.federation.site import open_silo
from dpfda.federation.study import make_estimator
from dpfda.methods.run import run_study
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.terms import SiloTerms
from dpfda.silo.silo import Silo
from dpfda.transports.in_process import InProcessTransport

UNEQUAL = (
    SiloTerms("alpha", 120, 1.0, 1e-3, 4.0),
    SiloTerms("beta", 200, 2.0, 1e-4, 6.0),
    SiloTerms("gamma", 90, 4.0, 1e-3, 3.0),
)
EQUAL = tuple(SiloTerms(name, 120, 2.0, 1e-3, 4.0) for name in SITES)


def federated(flare, document, *, columns=(), points=None):
    """Run a study on real site processes; its outcome, and the same silos in this process."""
    silos = []
    for index, terms in enumerate(document.terms.silos):
        data = curves(terms.n, index, points=int(terms.points_per_curve), columns=len(columns))
        policy = flare.deployment.configure(terms.name, data, document, columns=columns, seed=11)
        twin = dataclasses.replace(policy, ledger=policy.ledger + ".twin")
        Ledger.create(twin.ledger_place, twin.total_epsilon, twin.total_delta)
        silos.append(open_silo(twin, document, terms.name))
    clients = {terms.name: terms.name for terms in document.terms.sites}
    return run_study(document.plan, flare.transport(clients), document.id), silos


@pytest.mark.parametrize(
    ("method", "model", "sites"),
    [
        pytest.param("published", "mean", EQUAL, id="published mean, equal sites"),
        pytest.param("published", "vcm", UNEQUAL, id="published VCM, unequal sites"),
        pytest.param("adaptive", "mean", UNEQUAL, id="adaptive mean, unequal sites"),
        pytest.param("adaptive", "vcm", EQUAL, id="adaptive VCM, equal sites"),
        pytest.param("published", "mean", UNEQUAL, id="published mean, unequal sites", marks=pytest.mark.slow),
        pytest.param("published", "vcm", EQUAL, id="published VCM, equal sites", marks=pytest.mark.slow),
        pytest.param("adaptive", "mean", EQUAL, id="adaptive mean, equal sites", marks=pytest.mark.slow),
        pytest.param("adaptive", "vcm", UNEQUAL, id="adaptive VCM, unequal sites", marks=pytest.mark.slow),
    ],
)
def test_federated_is_in_process(flare, method, model, sites):
    columns = ("dose",) if model == "vcm" else ()
    document = study(
        sites, method=method, covariates=[covariate(name, -1.0, 1.0) for name in columns],
        constants=PublishedConstants(C_T=1.0) if method == "published" else None,
    )  # fmt: skip
    outcome, silos = federated(flare, document, columns=columns)
    reference = run_study(document.terms, InProcessTransport(silos), document.id)
    assert_array_equal(outcome.coefficients, reference.coefficients)
    assert outcome.coefficients.shape == (len(columns) + 1, 4)
    assert not outcome.private


@pytest.mark.parametrize("method", ["published", "adaptive"])
def test_one_site_is_the_central_fit(flare, method):
    sites = (SiloTerms("alpha", 150, 1.0, 1e-3, 4.0),)
    document = study(sites, method=method)
    outcome, _ = federated(flare, document)
    estimator = make_estimator(document.terms).set_params(
        epsilon=1.0, delta=1e-3, points_per_curve=4.0, random_state=11
    )
    silo = Silo(curves(150, 0), epsilon=1.0, delta=1e-3, name="alpha", points_per_curve=4.0)
    with pytest.warns(UserWarning, match="not private"):
        central = estimator.fit(silo)
    assert_array_equal(document.plan.scaling.to_user_units(outcome.coefficients)[0], central.coef_)


def test_private_noise_is_private_and_fresh(flare):
    document = study(EQUAL, constants=PublishedConstants(C_T=1.0))
    for index, terms in enumerate(EQUAL):
        flare.deployment.configure(terms.name, curves(terms.n, index), document)
    outcome = run_study(document.terms, flare.transport(), document.id)
    assert outcome.private
    again = run_study(document.terms, flare.transport(), document.id)  # replayed: the same study costs nothing more
    assert_array_equal(outcome.coefficients, again.coefficients)
    for terms in EQUAL:
        outcomes = [line["outcome"] for line in flare.deployment.log(terms.name) if line.get("study") == document.id]
        assert outcomes.count("released") == len(document.plan.rounds)
        assert outcomes.count("replayed") == len(document.plan.rounds)
    assert np.isfinite(outcome.coefficients).all()
