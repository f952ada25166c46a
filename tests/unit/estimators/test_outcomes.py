"""`fit` of several outcomes: what it takes, what it refuses before anything is spent, and what it returns."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from dpfda import Curves, InvalidInput, Ledger, Outcomes, PrivateMean, PrivateVaryingCoefficients, Silo
from dpfda.errors import NotPrivateWarning, OwnerWarning
from dpfda.estimators.outcomes import FittedOutcomes, plan_alone, separate
from dpfda.inference.outcomes import OutcomeAnswers

pytestmark = pytest.mark.filterwarnings("ignore::dpfda.errors.NotPrivateWarning")
BOUNDS = {"sbp": (60, 250), "dbp": (30, 150)}
COLUMNS = {"id": "pid", "x": "age", "y": ["sbp", "dbp"]}


@pytest.fixture(scope="module")
def visits():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"pid": np.repeat(np.arange(2000), 4), "age": rng.uniform(20, 80, 8000)})
    table["male"] = np.repeat(rng.integers(0, 2, 2000), 4)
    table["sbp"] = 100 + 0.5 * table["age"] + 4 * table["male"] + rng.normal(0, 8, 8000)
    table["dbp"] = 60 + 0.3 * table["age"] + rng.normal(0, 6, 8000)
    table["ill"] = np.where(table["sbp"] > 130, "yes", "no")
    table.loc[rng.random(8000) < 0.1, "dbp"] = np.nan
    return table


def mean(**changes):
    return PrivateMean(
        **{"epsilon": 1, "delta": 1e-5, "domain": (20, 80), "y_bounds": BOUNDS, "random_state": 3} | changes
    )


@pytest.fixture(scope="module")
def fitted(visits):
    return mean().fit(visits, **COLUMNS)


def test_every_outcome_is_a_fitted_estimator_by_its_name(fitted) -> None:
    assert isinstance(fitted, FittedOutcomes)
    assert list(fitted) == ["sbp", "dbp"]
    assert len(fitted) == 2
    assert "dbp" in fitted
    assert "hdl" not in fitted
    for name, slope, level in (("sbp", 0.5, 102), ("dbp", 0.3, 60)):
        assert np.abs(fitted[name].predict([30, 50, 70]) - (level + slope * np.array([30, 50, 70]))).max() < 2
        assert fitted[name].y_name == name
        assert fitted[name].x_name == "age"
        low, high = fitted[name].curve_.band(0.95)
        assert (low < high).all()
    with pytest.raises(InvalidInput, match="no outcome 'hdl'"):
        fitted["hdl"]
    assert repr(fitted) == "FittedOutcomes('sbp', 'dbp')"


def test_a_question_to_one_outcome_says_whom_to_ask(fitted) -> None:
    with pytest.raises(InvalidInput, match=r"ask result\['sbp'\].predict or result\['dbp'\].predict\.$"):
        fitted.predict([30])
    with pytest.raises(InvalidInput, match=r"^curve_ is a question to one outcome"):
        _ = fitted.curve_
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = fitted.nonsense
    assert not hasattr(fitted, "coef_")
    assert list(copy.deepcopy(fitted)) == ["sbp", "dbp"]


def test_one_statement_covers_all_outcomes(visits) -> None:
    fit = mean(random_state=None).fit(visits, **COLUMNS)
    assert fit.privacy_.private
    assert fit.privacy_.unit == "subject with all outcomes"
    assert fit["sbp"].privacy_ is fit["dbp"].privacy_ is fit.privacy_
    (silo,) = fit.privacy_.silos
    assert (silo.n, silo.epsilon, silo.delta) == (2000, 1, 1e-5)
    assert 0.99 < silo.epsilon_spent <= 1
    assert fit.summary().count("exact cost epsilon") == 1


def test_all_the_ways_to_give_outcomes_are_the_same_fit(visits, fitted) -> None:
    both = Outcomes.from_frame(visits, **COLUMNS)
    ways = [
        mean().fit(both),
        mean().fit({"sbp": both["sbp"], "dbp": both["dbp"]}),
        mean(random_state=None).fit(Silo(both, epsilon=1, delta=1e-5, random_state=3)),
        mean().fit([Silo(both, epsilon=1, delta=1e-5)]),
        mean().fit(visits.sample(frac=1, random_state=1), **COLUMNS),
    ]
    for way in ways:
        for name in BOUNDS:
            np.testing.assert_allclose(way[name].coef_, fitted[name].coef_, rtol=1e-9)


def test_what_is_declared_of_one_outcome_is_not_declared_of_another(visits) -> None:
    estimator = mean(y_bounds=BOUNDS | {"ill": (0, 1)}, transform={"dbp": "log"})
    fit = estimator.fit(visits, id="pid", x="age", y=["sbp", "dbp", "ill"], y_levels={"ill": ("no", "yes")})
    assert [fit[name].transform_ for name in fit] == ["none", "log", "none"]
    assert [fit[name].terms_.outcome for name in fit] == ["any", "any", "binary"]
    assert "share of subjects with ill = 1" in fit["ill"].estimand_
    assert "geometric mean" in fit["dbp"].estimand_
    assert fit.privacy_.public_inputs["outcome of ill"] == "binary"


def test_one_pair_of_bounds_may_stand_for_all(visits) -> None:
    fit = mean(y_bounds=(30, 250)).fit(visits, **COLUMNS)
    assert [fit[name].limits_ for name in fit] == [(30, 250)] * 2


def test_covariates_are_released_once_and_have_effects_on_each_outcome(visits) -> None:
    model = PrivateVaryingCoefficients(
        4, 1e-5, domain=(20, 80), y_bounds=BOUNDS, covariates={"male": (0, 1)}, random_state=1
    )
    fit = model.fit(visits, **COLUMNS)
    assert fit["sbp"].names_ == fit["dbp"].names_ == ("intercept", "male")
    assert float(fit["sbp"].effect("male").mean_over()) == pytest.approx(4, abs=1.5)
    assert float(fit["dbp"].effect("male").mean_over()) == pytest.approx(0, abs=1.5)
    frame = fit.tidy(x=[30, 60])
    assert list(frame["outcome"]) == ["sbp"] * 4 + ["dbp"] * 4
    assert set(frame["curve"]) == {"mean at male=0", "male"}
    assert len(fit.plot()) == 4


def test_several_silos_are_fitted_together(visits) -> None:
    both = Outcomes.from_frame(visits, **COLUMNS, visits="own")
    silos = [Silo(both.take(slice(k * 500, (k + 1) * 500)), epsilon=1, delta=1e-5, name=f"site {k}") for k in range(4)]
    fit = mean(epsilon=None, delta=None).fit(silos)
    assert all(fit[name].sites_.names == tuple(silo.name for silo in silos) for name in fit)
    assert all(len(silo.ledger.log()) == 14 for silo in silos)
    assert all(0.98 < silo.ledger.spent().epsilon <= 1 for silo in silos)


def test_joint_bands_hold_more_than_the_bands_of_each_curve(fitted) -> None:
    joint = fitted.simultaneous_bands(0.95, [30, 50, 70])
    for name in fitted:
        ((low, high),) = joint[name]
        own_low, own_high = fitted[name].band(0.95, x=[30, 50, 70])
        assert (low < own_low).all()
        assert (high > own_high).all()
    frame = fitted.tidy(x=[30, 50, 70])
    assert_array_equal(frame["joint_lower"][:3], joint["sbp"][0][0])
    assert_array_equal(frame["upper"][3:], fitted["dbp"].band(0.95, x=[30, 50, 70])[1])


def test_the_summary_and_the_notebook_show_all_outcomes(fitted) -> None:
    text = fitted.summary()
    assert text.startswith("2 outcomes over age: sbp, dbp")
    assert "the mean over subjects of dbp at each age" in text
    assert text in fitted._repr_html_().replace("&lt;", "<")
    assert isinstance(fitted, OutcomeAnswers)
    with pytest.raises(InvalidInput, match="level"):
        fitted.summary(2)


def test_curves_of_two_outcomes_are_not_subtracted(fitted) -> None:
    """How their errors go together is not known."""
    with pytest.raises(InvalidInput, match="outcome of its own"):
        fitted["sbp"].curve_ - fitted["dbp"].curve_


def test_all_fits_to_the_same_curves_are_counted_once_each(visits) -> None:
    both = Outcomes.from_frame(visits, **COLUMNS)
    alone = mean(y_bounds=BOUNDS["sbp"], random_state=None).fit(both["sbp"]).privacy_.silos[0]
    again = mean(y_bounds=BOUNDS["dbp"], random_state=None).fit(both["dbp"]).privacy_.silos[0]
    together = mean(random_state=None).fit(both).privacy_.silos[0]
    assert again.epsilon_total == pytest.approx(again.epsilon_spent)
    assert together.epsilon_total == pytest.approx(
        together.with_total(alone.mu**2 + again.mu**2 + together.mu**2).epsilon_total
    )


def test_a_forecast_has_every_outcome(visits) -> None:
    found = mean().forecast_outcomes(n=2000, m=4, spread={"sbp": 8.0, "dbp": 6.0})
    assert list(found) == ["sbp", "dbp"]
    alone = mean(y_bounds=BOUNDS["sbp"]).forecast(n=2000, m=4, spread=8.0)
    half = mean(y_bounds=BOUNDS["sbp"], epsilon=0.68).forecast(n=2000, m=4, spread=8.0)
    assert alone.total < found["sbp"].total < half.total
    with pytest.raises(InvalidInput, match="dict of several outcomes"):
        mean(y_bounds=(0, 1)).forecast_outcomes(n=2000, m=4)
    with pytest.raises(InvalidInput, match="y_bounds is a dict"):
        mean().forecast(n=2000, m=4)


def test_a_plan_of_one_outcome_for_a_forecast_has_the_prices_of_the_first(fitted) -> None:
    plans = [plan_alone(fitted.plan_, place) for place in range(2)]
    assert plans[0].rounds == plans[1].rounds
    assert plans[1].scaling.y_bounds == (30, 150)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"y_bounds": {"sbp": (60, 250)}}, "those of 'dbp' are missing"),
        ({"y_bounds": BOUNDS | {"hdl": (0, 1)}}, "y_bounds names 'hdl'"),
        ({"y_bounds": None}, "y_bounds"),
        ({"y_bounds": {"sbp": (250, 60), "dbp": (30, 150)}}, "y_bounds"),
        ({"transform": {"hdl": "log"}}, "transform names 'hdl'"),
        ({"outcome": {"sbp": "often"}}, "outcome must be"),
        ({"method": "published"}, "method must be 'adaptive' for several outcomes"),
        ({"method": "nonprivate"}, "method must be 'adaptive' for several outcomes"),
        ({"epsilon": None}, "epsilon and delta must be given"),
    ],
)
def test_wrong_parameters_are_refused(visits, changes, sentence) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        mean(**changes).fit(visits, **COLUMNS)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"y": ["sbp"]}, "y must list"),
        ({"x": None}, "x must name a column"),
        ({"y_levels": ("no", "yes")}, "y_levels must be a dict"),
        ({"y_levels": {"sbp": ("no", "yes")}}, "y_bounds of 'sbp' must be"),
        ({"visits": "all"}, "visits must be"),
    ],
)
def test_wrong_columns_are_refused(visits, columns, sentence) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        mean().fit(visits, **COLUMNS | columns)


def test_data_that_do_not_belong_together_are_refused(visits) -> None:
    both = Outcomes.from_frame(visits, **COLUMNS)
    own = Outcomes.from_frame(visits, **COLUMNS, visits="own")
    silos = [Silo(each, epsilon=1, delta=1e-5, name=str(k)) for k, each in enumerate((both, own))]
    with pytest.raises(InvalidInput, match="different outcomes or visits"):
        mean().fit(silos)
    with pytest.raises(InvalidInput, match="X must be Outcomes"):
        mean().fit([silos[0], both["sbp"]])
    with pytest.raises(InvalidInput, match="y_bounds is a dict"):
        mean().fit(both["sbp"])
    with pytest.raises(InvalidInput, match="use PrivateVaryingCoefficients"):
        mean().fit(Outcomes.from_frame(visits, **COLUMNS, design="male"))
    assert not silos[0].ledger.log()


def test_a_run_by_name_is_resumed_from_its_ledger(visits, tmp_path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.sqlite", 1.0, 1e-5, "test")
    both = Outcomes.from_frame(visits, **COLUMNS)

    def stop(done: int, planned: int) -> None:
        if done == 9:
            raise KeyboardInterrupt

    silo = Silo(both, epsilon=1, delta=1e-5, name="clinic", ledger=ledger)
    with pytest.raises(KeyboardInterrupt):
        mean(random_state=None).fit(silo, run="study", progress=stop)
    assert len(ledger.log()) == 9
    fit = mean(random_state=None).fit(Silo(both, epsilon=1, delta=1e-5, name="clinic", ledger=ledger), run="study")
    assert len(ledger.log()) == 14
    assert fit.privacy_.private
    again = mean(random_state=None).fit(Silo(both, epsilon=1, delta=1e-5, name="clinic", ledger=ledger), run="study")
    assert_array_equal(again["dbp"].coef_, fit["dbp"].coef_)


def test_the_owner_hears_of_visits_that_complete_visits_leave_out(visits) -> None:
    missing = int(visits["dbp"].isna().sum())
    with pytest.warns(OwnerWarning, match=f"NOT PRIVATE.*{missing:,} of 8,000 of sbp, 0 of") as said:
        mean().fit(visits, **COLUMNS)
    assert next(each for each in said if each.category is OwnerWarning).filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", OwnerWarning)
        mean().fit(visits, **COLUMNS, visits="own")


def test_a_seed_voids_the_guarantee_and_says_so(visits) -> None:
    with pytest.warns(NotPrivateWarning, match="not private"):
        fit = mean().fit(visits, **COLUMNS)
    assert not fit.privacy_.private


def test_an_estimator_for_each_outcome_keeps_all_other_parameters() -> None:
    each = separate(mean(n_basis=9, alpha=1.5), ["sbp", "dbp"])
    assert [estimator.y_bounds for estimator in each.values()] == [(60, 250), (30, 150)]
    assert all((estimator.n_basis, estimator.alpha) == (9, 1.5) for estimator in each.values())


def test_a_list_of_raw_outcomes_is_a_list_of_silos(visits) -> None:
    both = Outcomes.from_frame(visits, **COLUMNS)
    fit = mean().fit([both.take(slice(0, 1000)), both.take(slice(1000, 2000))])
    assert [silo.n for silo in fit.privacy_.silos] == [1000, 1000]
    assert isinstance(both["sbp"], Curves)


@pytest.mark.parametrize("visits", ["complete", "own"])
def test_visits_may_weigh_the_same_in_several_outcomes(visits) -> None:
    """Both outcomes have the estimand of visits, and the weights are released once where they are the same."""
    rng = np.random.default_rng(3)
    often = rng.integers(0, 2, 1500)
    ids = np.repeat(np.arange(1500), np.where(often, 9, 3))
    x = rng.uniform(0, 1, ids.size)
    high = 1.0 + often[ids] + rng.normal(0, 0.3, ids.size)  # over visits 1.75, over subjects 1.5
    frame = pd.DataFrame({"id": ids, "x": x, "a": high, "b": -high})
    bounds = {"a": (-4, 4), "b": (-4, 4)}
    model = PrivateMean(8, 1e-5, domain=(0, 1), y_bounds=bounds, weight="visit", visit_cap=9, random_state=1)
    fit = model.fit(Outcomes.from_frame(frame, id="id", x="x", y=["a", "b"], visits=visits))
    assert fit["a"].predict([0.5])[0] == pytest.approx(1.75, abs=0.12)
    assert fit["b"].predict([0.5])[0] == pytest.approx(-1.75, abs=0.12)
