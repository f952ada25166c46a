"""The federated fit is the in-process fit, bit for bit, with the same seeds; one site alone is the central fit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_array_equal

pytest.importorskip("nvflare")

from world import SITES, covariate, curves, study

from dpfda.federation.site import open_silo
from dpfda.federation.site_ledger import create_ledger
from dpfda.federation.study import make_estimator, name_study
from dpfda.methods.run import run_study
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.terms import SiloTerms
from dpfda.silo.silo import Silo
from dpfda.transports.in_process import InProcessTransport

UNEQUAL = (
    SiloTerms("alpha", 120, 1.0, 1e-3, 4.0),
    SiloTerms("beta", 200, 2.0, 1e-4, 6.0),
    SiloTerms("gamma", 90, 4.0, 1e-3, 3.0),
)
EQUAL = tuple(SiloTerms(name, 120, 2.0, 1e-3, 4.0) for name in SITES)


def federated(flare, terms, *, columns=()):
    """Run a study on real site processes; its outcome, and the same silos in this process."""
    silos = []
    for index, silo in enumerate(terms.silos):
        data = curves(silo.n, index, points=int(silo.points_per_curve), columns=len(columns))
        policy = flare.sites[silo.name].configure(data, terms, columns=columns, seed=11)
        twin = dataclasses.replace(policy, ledger=policy.ledger + ".twin")
        create_ledger(twin)
        silos.append(open_silo(twin, terms, silo.name))
    return run_study(terms, flare.transport(terms), name_study(terms)), silos


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
    terms = study(
        sites, model=model, method=method, covariates=[covariate(name, -1.0, 1.0) for name in columns],
        constants={"C_T": 1.0} if method == "published" else None,
    )  # fmt: skip
    outcome, silos = federated(flare, terms, columns=columns)
    reference = run_study(terms, InProcessTransport(silos), name_study(terms))
    assert_array_equal(outcome.coefficients, reference.coefficients)
    assert outcome.coefficients.shape == (len(columns) + 1, 4)
    assert not outcome.private


@pytest.mark.parametrize("method", ["published", "adaptive"])
def test_one_site_is_the_central_fit(flare, method):
    terms = study((SiloTerms("alpha", 150, 1.0, 1e-3, 4.0),), method=method)
    outcome, _ = federated(flare, terms)
    estimator = make_estimator(terms).set_params(epsilon=1.0, delta=1e-3, points_per_curve=4.0, random_state=11)
    silo = Silo(curves(150, 0), epsilon=1.0, delta=1e-3, name="alpha", points_per_curve=4.0)
    with pytest.warns(UserWarning, match="not private"):
        central = estimator.fit(silo)
    assert_array_equal(make_plan(terms).scaling.to_user_units(outcome.coefficients)[0], central.coef_)


def test_private_noise_is_private_and_fresh(flare):
    terms = study(EQUAL, constants={"C_T": 1.0})
    rounds = len(make_plan(terms).rounds)
    for index, silo in enumerate(EQUAL):
        flare.sites[silo.name].configure(curves(silo.n, index), terms)
    outcome = run_study(terms, flare.transport(terms), name_study(terms))
    assert outcome.private
    again = run_study(terms, flare.transport(terms), name_study(terms))  # replayed: the same study costs nothing more
    assert_array_equal(outcome.coefficients, again.coefficients)
    for site in flare.sites.values():
        outcomes = [line["outcome"] for line in site.log() if line.get("study") == name_study(terms)]
        assert outcomes.count("released") == rounds
        assert outcomes.count("replayed") == min(rounds, 20)
    assert np.isfinite(outcome.coefficients).all()
