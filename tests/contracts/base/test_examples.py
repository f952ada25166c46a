"""Every public class and function shows how it is used, in an example that `make test` runs."""

from __future__ import annotations

import doctest
import importlib
import inspect

import pytest

import dpfda

ELSEWHERE = (
    "dpfda.basis.basis.Basis", "dpfda.basis.basis.make_basis", "dpfda.curves.datasets.load_dataset",
    "dpfda.curves.simulated.simulate_mean", "dpfda.curves.simulated.simulate_vcm", "dpfda.errors.SourceError",
    "dpfda.estimators.private_quantiles.private_quantiles", "dpfda.planning.expected_error.ExpectedError",
    "dpfda.planning.expected_error.expected_error", "dpfda.planning.theory.rate", "dpfda.planning.theory.optimal_r",
    "dpfda.planning.theory.regime", "dpfda.planning.theory.cost_of_privacy", "dpfda.planning.theory.price_of_privacy",
    "dpfda.planning.theory.what_helps_most", "dpfda.protocol.statement.PrivacyStatement",
)  # fmt: skip
PUBLIC = (*(f"dpfda.{name}" for name in dpfda.__all__), *ELSEWHERE)


def found(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_an_example(name: str) -> None:
    thing = found(name)
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        pytest.skip(f"{name} is a value")
    assert doctest.DocTestParser().get_examples(inspect.getdoc(thing) or ""), f"{name} has no example"


@pytest.mark.parametrize(
    "name", ["dpfda.PrivateMean", "dpfda.PrivateVaryingCoefficients", "dpfda.Silo", "dpfda.Ledger"]
)
def test_what_spends_budget_states_its_guarantee(name: str) -> None:
    text = inspect.getdoc(found(name)) or ""
    assert {"Parameters", "Attributes", "Notes", "References", "Examples"} <= set(text.splitlines())
    assert "Guarantee:" in text.split("Notes\n-----")[1]
