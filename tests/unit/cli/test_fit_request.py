"""A fit that is asked for: what is checked, what it may cost, which run of the ledger it is."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from cli_helpers import visits

from dpfda import BudgetExceeded, InvalidInput, Ledger, PrivateMean
from dpfda.cli.fit import options
from dpfda.cli.fit.dry_run import show_dry_run
from dpfda.cli.fit.first_budget import set_first_budget
from dpfda.cli.fit.forecast import forecast, guess_points_per_curve
from dpfda.cli.fit.request import FitRequest, make_request
from dpfda.cli.fit.runs import can_resume, choose_run
from dpfda.cli.fit.spending import confirm_large_delta, make_budget_change, refuse_overspending
from dpfda.cli.ledger_choice import HERE, VARIABLE, LedgerChoice, choose_ledger
from dpfda.cli.settings import DEFAULTS, merge_settings, write_toml
from dpfda.cli.terminal import Terminal
from dpfda.protocol.terms import SiloTerms


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FitRequest:
    monkeypatch.chdir(tmp_path)
    typed = {"source": str(visits(tmp_path / "visits.csv")), "id": "pid", "x": "age", "y": "hdl", "domain": "20:90"}
    return make_request(merge_settings({**typed, "y_bounds": "0:150", "epsilon": 1.0, "delta": 1e-5}))


def test_a_request_holds_the_estimator_that_was_asked_for(request_: FitRequest) -> None:
    estimator = request_.estimator()
    assert (estimator.epsilon, estimator.domain, estimator.y_bounds) == (1.0, (20.0, 90.0), (0.0, 150.0))


def again(request_: FitRequest, **changed: object) -> FitRequest:
    return make_request({**request_.settings, "basis": None, **changed})


@pytest.mark.parametrize(("method", "basis"), [("adaptive", "free-ends"), ("published", "cosine")])
def test_the_basis_is_that_of_the_library_unless_one_is_named(request_: FitRequest, method: str, basis: str) -> None:
    assert again(request_, method=method).estimator().basis == PrivateMean(method=method).choose_basis() == basis
    assert again(request_, method=method, basis="fourier").estimator().basis == "fourier"
    assert f'basis = "{basis}"' in write_toml(again(request_, method=method).settings)


def test_declarations_reach_the_terms(request_: FitRequest) -> None:
    declared = {"assume-symmetric": True, "outcome": "count", "visit-times": "20, 45.5,90"}
    estimator = again(request_, **declared).estimator()
    terms = estimator.make_terms([SiloTerms("a", 100, 1.0, 1e-5)], columns=1)
    assert (terms.assume_symmetric, terms.outcome, terms.visit_times) == (True, "count", (20.0, 45.5, 90.0))
    plain = request_.estimator().make_terms([SiloTerms("a", 100, 1.0, 1e-5)], columns=1)
    assert (plain.assume_symmetric, plain.outcome, plain.visit_times) == (False, "any", ())


def test_a_transform_reaches_the_terms(request_: FitRequest) -> None:
    chosen = again(request_, transform="log", **{"y-bounds": "0.5:300"})
    silos = [SiloTerms("a", 100, 1.0, 1e-5)]
    assert chosen.estimator().make_terms(silos, columns=1).transform == "log"
    assert again(request_).estimator().make_terms(silos, columns=1).transform == "none"


def test_what_weighs_the_same_reaches_the_terms(request_: FitRequest) -> None:
    silos = [SiloTerms("a", 100, 1.0, 1e-5)]
    terms = again(request_, weight="visit", **{"visit-cap": 10}).estimator().make_terms(silos, columns=1)
    assert (terms.weight, terms.visit_cap) == ("visit", 10)
    plain = again(request_, weight="subject").estimator().make_terms(silos, columns=1)
    assert (plain.weight, plain.visit_cap) == ("subject", None)


def test_two_values_declare_bounds_and_a_binary_outcome(request_: FitRequest) -> None:
    two = again(request_, **{"y-levels": "no,yes", "y-bounds": None})
    assert (two.settings["y-bounds"], two.settings["outcome"], two.options["outcome"]) == ("0:1", "binary", "binary")
    assert "outcome" not in again(request_, **{"y-levels": "no,yes", "y-bounds": None, "method": "published"}).options
    with pytest.raises(InvalidInput, match="--outcome must be binary with --y-levels, or be left out"):
        again(request_, **{"y-levels": "no,yes", "y-bounds": None, "outcome": "count"})


def test_visit_times_may_be_dates_and_a_list(request_: FitRequest) -> None:
    dates = {"domain": "2019-01-01:2019-12-31", "visit-times": ["2019-01-01", "2019-01-31"]}
    assert again(request_, **dates).options["visit_times"] == (0.0, 30.0)
    assert again(request_, **{"visit-times": [20, 30]}).options["visit_times"] == (20.0, 30.0)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"outcome": "ordinal"}, "--outcome must be one of"),
        ({"transform": "ln"}, "--transform must be one of"),
        ({"transform": "log", "y-bounds": "0:9"}, "y_bounds must be positive"),
        ({"transform": "log", "outcome": "binary"}, "--transform must be left out"),
        ({"outcome": "any"}, "--outcome must be one of"),
        ({"visit-times": "20,95"}, "--visit-times must lie in --domain"),
        ({"visit-times": "20,20"}, "different times"),
        ({"visit-times": ","}, "different times"),
        ({"visit-times": ",".join(str(20 + i) for i in range(65))}, "1 to 64"),
        ({"visit-times": "20,soon"}, "--visit-times must hold numbers"),
        ({"visit-times": "20", "domain": "2019-01-01:2019-12-31"}, "--visit-times must hold dates"),
        ({"weight": "visit"}, "--visit-cap must be given with --weight visit"),
        ({"visit-cap": 10}, "--visit-cap must be given with --weight visit"),
        ({"weight": "day", "visit-cap": 10}, "--weight must be one of"),
        ({"weight": "visit", "visit-cap": 0}, "--visit-cap must be a whole number between 1 and 1000"),
        ({"weight": "visit", "visit-cap": 10, "method": "published"}, "--weight visit must be left out"),
        ({"assume-symmetric": True, "method": "published"}, "--assume-symmetric must be left out"),
        ({"outcome": "binary", "method": "published"}, "--outcome must be left out"),
    ],
)
def test_declarations_that_cannot_be_are_refused_before_the_data_are_read(
    request_: FitRequest, changed: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        again(request_, **changed)


def test_every_option_of_a_fit_has_a_default_that_toml_may_set() -> None:
    panels = {"DATA", "MODEL", "PROMISE", "OUT"}
    named = {name for name in vars(options) if name[0].isupper()} - panels - {"Annotated", "Any", "DryRun", "Yes"}
    dashed = {"".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name)[1:] for name in named}
    assert dashed == set(DEFAULTS)


def test_the_forecast_takes_its_points_from_the_options_and_never_from_the_data(request_: FitRequest) -> None:
    found = forecast(request_, n=1000)
    assert found is not None
    assert found["total"] == pytest.approx(found["bias"] + found["sampling"] + found["privacy"])
    assert guess_points_per_curve(request_) == 5.0


def test_a_dry_run_prints_a_file_and_makes_no_ledger(
    request_: FitRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show_dry_run(request_, Terminal(quiet=True))
    printed = capsys.readouterr().out
    assert "# Would spend at most epsilon = 1" in printed
    assert "epsilon = 1.0" in printed
    assert not request_.ledger.exists


def test_the_same_command_names_the_same_study(request_: FitRequest) -> None:
    first, again = (choose_run(request_, Ledger.in_memory(1.0, 1e-5), Terminal(quiet=True)) for _ in range(2))
    assert first == again
    assert first.is_new
    assert can_resume(first.name)
    assert not can_resume("a-name-of-my-own")


def test_a_budget_that_does_not_reach_is_refused_with_what_would_fit() -> None:
    ledger, choice = Ledger.in_memory(0.5, 1e-5), LedgerChoice("visits.ledger")
    refuse_overspending(ledger, choice, 0.5, 1e-5)
    with pytest.raises(BudgetExceeded, match=r"--epsilon 0\.5 or less") as refused:
        refuse_overspending(ledger, choice, 1.0, 1e-5)
    assert "nothing was spent" in str(refused.value)
    assert make_budget_change(choice, ledger.spent(), ledger.spent()).total_epsilon == 0.5


def test_a_delta_above_the_ledgers_is_what_is_wrong() -> None:
    ledger, choice = Ledger.in_memory(1.0, 1e-5), LedgerChoice("visits.ledger")
    with pytest.raises(BudgetExceeded, match=r"--delta 0\.1 is above the delta = 1e-05 of visits.ledger") as refused:
        refuse_overspending(ledger, choice, 1.0, 0.1)
    assert "used up" not in str(refused.value)


def test_a_delta_that_would_publish_somebody_is_refused_unless_it_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    confirm_large_delta(1e-5, 1000, Terminal())
    assert capsys.readouterr().err == ""
    with pytest.raises(InvalidInput, match=r"--delta 0\.01 is large for 1,000 subjects"):
        confirm_large_delta(1e-2, 1000, Terminal())
    confirm_large_delta(1e-2, 1000, Terminal(), yes=True)
    assert "--delta 0.01 is large for 1,000 subjects" in capsys.readouterr().err


def test_a_ledger_is_named_set_or_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert choose_ledger(None).location.endswith(HERE)
    monkeypatch.setenv(VARIABLE, "set.ledger")
    assert choose_ledger(None).location == "set.ledger"
    assert choose_ledger("named.ledger").location == "named.ledger"
    assert LedgerChoice("postgresql://me:secret@server/x").shown.count("secret") == 0
    with pytest.raises(InvalidInput):
        choose_ledger("named.ledger").open()


def test_the_first_budget_is_what_was_typed(request_: FitRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("2.5\n\n"))
    set_first_budget(request_, Terminal(quiet=True))
    ledger = request_.ledger.open()
    assert (ledger.epsilon, ledger.delta) == (2.5, request_.delta)
