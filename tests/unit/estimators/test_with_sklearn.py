"""scikit-learn around the estimators: clones and pipelines work, searches are refused before anything is spent."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpfda import InvalidInput, PrivateMean, PrivateVaryingCoefficients, Silo
from dpfda.curves.simulated import simulate_mean, simulate_vcm
from dpfda.estimators.parameters import refuse_searches
from dpfda.estimators.totals import state_totals

SENTENCE = "a search or cross-validation cannot be private here"
PUBLIC = {"domain": (0, 1), "y_bounds": (-4, 4)}


def mean(**options):
    return PrivateMean(**{"epsilon": 1.0, "delta": 1e-5, **PUBLIC, **options})


@pytest.fixture(scope="module")
def curves():
    return simulate_mean(60, 5, rng=1)


def score(estimator, X, y=None):
    return 0.0


@pytest.mark.parametrize("scoring", [None, score])
@pytest.mark.parametrize("on_silos", [False, True])
def test_searches_are_refused_before_anything_is_spent(curves, scoring, on_silos) -> None:
    silos = [Silo(curves[k : k + 10], epsilon=1, delta=1e-5, name=f"s{k}") for k in range(0, 60, 10)]
    data = silos if on_silos else curves
    for refused in (
        lambda: GridSearchCV(mean(), {"n_basis": [3, 5]}, scoring=scoring, cv=2).fit(data),
        lambda: RandomizedSearchCV(mean(), {"n_basis": [3, 5]}, scoring=scoring, n_iter=2, cv=2).fit(data),
        lambda: cross_val_score(mean(), data, scoring=scoring, cv=2),
        lambda: cross_val_predict(mean(), data, cv=2),
    ):
        with pytest.raises(InvalidInput, match=SENTENCE):
            refused()
    assert all(silo.ledger.spent().mu_squared == 0 for silo in silos)


def test_a_search_around_a_pipeline_is_refused_too(curves) -> None:
    search = GridSearchCV(make_pipeline(mean()), {"privatemean__n_basis": [3]}, scoring=score, cv=2)
    with pytest.raises(ValueError, match=SENTENCE):
        search.fit(curves)
    refuse_searches()  # nobody searches here


def test_scores_are_refused(curves) -> None:
    with pytest.raises(InvalidInput, match=SENTENCE):
        mean().score(curves)


def test_a_list_of_single_curves_is_refused_but_single_subject_silos_are_not(curves) -> None:
    with pytest.raises(InvalidInput, match="list of single curves"):
        mean().fit([curves[k] for k in range(4)])
    silos = [Silo(curves[k], epsilon=2, delta=1e-5, name=f"s{k}", random_state=k) for k in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert mean(epsilon=None, delta=None).fit(silos).privacy_.silos[2].n == 1


def test_clones_and_pipelines_work(curves) -> None:
    vcm = PrivateVaryingCoefficients(1.0, 1e-5, covariates={"dose": (-1, 1)}, **PUBLIC)
    assert clone(vcm).get_params() == vcm.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe = Pipeline(
            [("cut", FunctionTransformer(lambda c: c.restrict((0.1, 0.9)))), ("mean", mean(random_state=1))]
        )
        fitted = clone(pipe).fit(curves)
        alone = make_pipeline(mean(random_state=1)).fit(curves)
    assert fitted["mean"].predict([0.5]).shape == alone.predict([0.5]).shape == (1,)
    assert not hasattr(mean(), "privacy_")


def test_a_curve_is_not_predicted_at_curves(curves) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = mean(random_state=1).fit(curves)
        vcm = PrivateVaryingCoefficients(4, 1e-5, covariates={"dose": (-1, 1)}, random_state=1, **PUBLIC)
        vcm.fit(simulate_vcm(60, 5, 1, rng=1))
    for fit in (fitted, vcm):
        with pytest.raises(InvalidInput, match="x must be numbers, got Curves"):
            fit.predict(curves)
    with pytest.raises(InvalidInput, match="a design or a profile by names, not both"):
        vcm.predict([0.5], [[1, 0]], dose=1)
    np.testing.assert_allclose(vcm.predict([0.5], dose=0.3), vcm.predict([0.5], [[1, 0.3]]))
    assert "<pre>" in vcm._repr_html_()
    assert "PrivateMean" in mean()._repr_html_()


def test_the_statement_says_what_was_spent_on_the_data_in_all() -> None:
    curves = simulate_mean(80, 5, rng=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, second = mean().fit(curves), mean(epsilon=0.5).fit(curves)
        other = mean().fit(simulate_mean(80, 5, rng=3))
    once, twice, alone = (fit.privacy_.silos[0] for fit in (first, second, other))
    assert once.epsilon_total == pytest.approx(once.epsilon_spent)
    assert twice.epsilon_total > once.epsilon_total > twice.epsilon_spent
    assert alone.epsilon_total == pytest.approx(alone.epsilon_spent)
    assert "in all epsilon" in str(second.privacy_)
    assert "in all epsilon" not in str(first.privacy_)
    assert state_totals(other.privacy_, curves, [Silo(curves, epsilon=1, delta=1e-5)]).silos[0].epsilon_total > 1.3


def test_silos_with_a_ledger_state_the_ledgers_total(tmp_path) -> None:
    from dpfda import Ledger

    ledger = Ledger.create(tmp_path / "data.ledger", epsilon=3, delta=1e-5)
    silo = Silo(simulate_mean(80, 5, rng=2), epsilon=1, delta=1e-5, ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean().fit(silo)
        again = mean().fit(silo)
    assert again.privacy_.silos[0].epsilon_total == pytest.approx(ledger.spent().epsilon, rel=1e-6)


def test_names_of_a_frame_reach_the_answers() -> None:
    import polars as pl

    from dpfda import Curves

    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(200), 4)
    frame = pl.DataFrame({"pid": ids, "t": rng.random(800), "y": rng.normal(size=800), "male": (ids % 2).astype(float)})
    curves = Curves.from_frame(frame, id="pid", x="t", y="y", design=["male"]).with_intercept()
    assert curves.names == ("intercept", "male")
    assert curves[:5].restrict((0, 0.5)).names == curves.names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = PrivateVaryingCoefficients(1, 1e-5, design_bounds=[(0, 1)], random_state=1, **PUBLIC).fit(curves)
        assert fit.effect("male")([0.5]).shape == (1,)
        with pytest.raises(InvalidInput, match="list the covariates in the order"):
            PrivateVaryingCoefficients(1, 1e-5, covariates={"female": (0, 1)}, **PUBLIC).fit(curves)
    with pytest.raises(InvalidInput, match="covariates or design_bounds, not both"):
        PrivateVaryingCoefficients(1, 1e-5, covariates={"male": (0, 1)}, design_bounds=(0, 1), **PUBLIC).fit(curves)
    with pytest.raises(InvalidInput, match="names must be 2 different ones"):
        curves.with_names(("a",))


def test_a_study_across_sites_keeps_the_names_of_its_terms() -> None:
    from dpfda.methods.run import run_study
    from dpfda.protocol.plans.registry import make_plan
    from dpfda.protocol.statement import statement
    from dpfda.protocol.terms import CovariateTerms, StudyTerms
    from dpfda.transports.in_process import InProcessTransport

    silo = Silo(simulate_vcm(60, 5, 1, rng=1), epsilon=4, delta=1e-5, name="north", random_state=1)
    terms = StudyTerms(
        "adaptive", (0.0, 1.0), (-4.0, 4.0), (silo.terms(),), (CovariateTerms("dose", (-1.0, 1.0)),), x="t", y="hdl"
    )
    fit, plan = PrivateVaryingCoefficients(design_bounds=[(-1, 1)], **PUBLIC), make_plan(terms)
    fit.terms_ = terms
    fit.remember(
        plan.basis, plan.scaling, run_study(terms, InProcessTransport([silo]), "r"), statement(plan, private=False)
    )
    assert fit.names_ == ("intercept", "dose")
    assert repr(fit.effect("dose")) == "ReleasedCurve('dose', hdl over t in 0 to 1)"
