"""Plan builders keep within what silos declared, and the statement and the transport interface say what they should."""

from __future__ import annotations

import pytest

from dpfda import Curves, Silo
from dpfda.errors import InvalidInput
from dpfda.privacy.accounting import mu_for, mu_squared
from dpfda.protocol.plans.adaptive import adaptive_plan
from dpfda.protocol.plans.published import inverse_variance_weights, published_plan
from dpfda.protocol.plans.quantiles import STEPS, quantile_plan
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statement import not_private, statement
from dpfda.protocol.terms import SiloTerms, StudyTerms
from dpfda.protocol.transport import Transport
from dpfda.transports.in_process import InProcessTransport

TERMS = SiloTerms("clinic", 500, 1.0, 1e-5, points_per_curve=5.0)
SCALING = Scaling((-1.0, 1.0), ((1.0, 1.0),))


def plans():
    return [
        adaptive_plan([TERMS], SCALING, domain=(0.0, 1.0)),
        published_plan([TERMS], SCALING, domain=(0.0, 1.0)),
        quantile_plan(TERMS, [0.25, 0.5], (0.0, 1.0), (-1.0, 1.0)),
    ]


@pytest.mark.parametrize("plan", plans(), ids=lambda plan: plan.method)
def test_a_plan_costs_no_more_than_was_declared_and_the_statement_says_what(plan) -> None:
    cost = mu_squared(plan.events("clinic"))
    assert 0 < cost <= mu_for(1.0, 1e-5) ** 2 * (1 + 1e-12)
    said = statement(plan, private=True)
    assert said.private
    assert said.silos[0].mu == pytest.approx(cost**0.5)
    assert said.silos[0].epsilon_spent <= said.epsilon == 1.0
    assert "one curve" in str(said)
    assert "void" in statement(plan, private=False).mechanism


def test_a_statement_names_what_was_declared_among_the_public_inputs() -> None:
    study = {"domain": (46.0, 63.0), "y_bounds": (0.0, 1.0), "silos": (TERMS,)}
    declared = {"assume_symmetric": True, "outcome": "binary", "visit_times": (46.0, 50.3, 63.0)}
    said = statement(make_plan(StudyTerms("adaptive", **study, **declared)), private=True)
    assert {name: said.public_inputs[name] for name in declared} == declared
    assert "assume_symmetric = True, outcome = binary, visit_times = (46.0, 50.3, 63.0)." in str(said)
    nothing = statement(make_plan(StudyTerms("adaptive", **study)), private=True)
    assert not nothing.public_inputs.keys() & declared.keys()


@pytest.mark.parametrize("method", ["published", "quantiles"])
def test_other_methods_refuse_weights_that_they_would_ignore(method) -> None:
    levels = {"levels": (0.5,)} if method == "quantiles" else {}
    with pytest.raises(InvalidInput, match="weight='visit' is for method='adaptive'"):
        make_plan(StudyTerms(method, (0.0, 1.0), (0.0, 1.0), (TERMS,), weight="visit", visit_cap=5, **levels))


def test_quantiles_share_the_budget_equally_over_their_steps() -> None:
    plan = plans()[2]
    assert len(plan.rounds) == 2 * STEPS
    assert len({event.mu for event in plan.events("clinic")}) == 1


def test_weights_are_inverse_to_variances() -> None:
    assert inverse_variance_weights({"a": 1.0, "b": 3.0}) == pytest.approx({"a": 0.75, "b": 0.25})


def test_a_result_without_guarantee_promises_nothing() -> None:
    said = not_private("least squares")
    assert (said.epsilon, said.delta) == (float("inf"), 1.0)
    assert str(said).startswith("NOT PRIVATE")


def test_silos_in_this_process_are_behind_a_transport() -> None:
    curves = Curves.from_long([0, 1], [0.5, 0.5], [0.0, 1.0])
    transport: Transport = InProcessTransport([Silo(curves, epsilon=1, delta=1e-5)])
    assert callable(transport.open)
    assert callable(transport.gather)
