"""The algebra of released curves, against dense formulas; questions never touch a ledger."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from laws import make_known, make_law

from dpfda import InvalidInput, PrivateMean, PrivateVaryingCoefficients, Silo
from dpfda.curves.simulated import simulate_mean, simulate_vcm
from dpfda.inference.curve import ReleasedCurve, simultaneous_bands
from dpfda.inference.form import Form
from dpfda.inference.value import ReleasedValue

X = np.linspace(20, 80, 31)


def dense(curve, law, row, order=0):
    """Estimate and standard error by the obvious formula."""
    phi = law.functions.evaluate_unit((X - 20) / 60, order) / 60**order
    rows = np.kron(row, phi)
    return rows @ law.mean.ravel(), np.sqrt(np.einsum("xa,ab,xb->x", rows, law.covariance, rows))


@pytest.fixture
def known():
    return make_known("free-ends", 9, domain=(20.0, 80.0), male=(0, 1), bmi={"bounds": (10, 70), "reference": 25})


def test_contrasts_use_the_joint_covariance(known) -> None:
    women, men = known.curve_at(male=0, bmi=30), known.curve_at(male=1, bmi=30)
    contrast = men - women
    estimate, sd = dense(contrast, known.law_, np.array([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(contrast(X), estimate, atol=1e-12)
    np.testing.assert_allclose(contrast.standard_error(X), sd, rtol=1e-10)
    np.testing.assert_allclose(contrast(X), men(X) - women(X), atol=1e-12)
    np.testing.assert_allclose(known.effect("male").band(0.9, X), contrast.band(0.9, X), atol=1e-10)
    added = men.standard_error(X) + women.standard_error(X)
    assert (contrast.standard_error(X) <= added + 1e-12).all()


def test_sums_multiples_and_numbers(known) -> None:
    a, b = known.effect("male"), known.effect("bmi", per=5)
    mixed = 2 * a - b / 4 + 3 - (1 - a)
    estimate, sd = dense(mixed, known.law_, np.array([0.0, 3.0, -5 / 4]))
    np.testing.assert_allclose(mixed(X), estimate + 2, atol=1e-12)
    np.testing.assert_allclose(mixed.standard_error(X), sd, rtol=1e-10)
    np.testing.assert_allclose((-a)(X), -a(X))
    np.testing.assert_allclose((a - a).standard_error(X), 0, atol=1e-12)
    with pytest.raises(InvalidInput, match="divisor must not be 0"):
        a / 0
    with pytest.raises(InvalidInput, match="other must be a finite number"):
        a + "b"


@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_are_with_respect_to_x(known, order) -> None:
    slope = known.effect("bmi").derivative(order)
    estimate, sd = dense(slope, known.law_, np.array([0.0, 0.0, 1.0]), order)
    np.testing.assert_allclose(slope(X), estimate, atol=1e-12)
    np.testing.assert_allclose(slope.standard_error(X), sd, rtol=1e-9)
    both = known.effect("bmi") + slope
    np.testing.assert_allclose(both(X), known.effect("bmi")(X) + slope(X), atol=1e-12)


def test_integrals_and_averages(known) -> None:
    curve = known.curve_at(male=1)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    places = 30 + 10 * (nodes + 1) / 2
    value = curve.integral(30, 40)
    assert value.estimate == pytest.approx(5 * weights @ curve(places), abs=1e-12)
    rows = 5 * weights @ np.kron([1.0, 1.0, 25.0], known.law_.functions.evaluate_unit((places - 20) / 60))
    assert value.standard_error == pytest.approx(np.sqrt(rows @ known.law_.covariance @ rows), rel=1e-9)
    mean = curve.mean_over(30, 40)
    assert float(mean) == pytest.approx(value.estimate / 10)
    low, high = mean.interval(0.95)
    assert (high - low) / 2 == pytest.approx(1.959963985 * mean.standard_error, rel=1e-6)
    assert 0 < (mean - mean.estimate + 0.5 * mean.standard_error).p_value < 1
    assert isinstance(2 * mean - mean / 2 + 1, ReleasedValue)
    centred = curve - curve.mean_over()
    assert centred.mean_over().estimate == pytest.approx(0, abs=1e-12)
    assert centred.mean_over().standard_error == pytest.approx(0, abs=1e-7)
    with pytest.raises(InvalidInput, match="low < high"):
        curve.integral(40, 30)


def test_bands_keep_within_what_is_possible() -> None:
    known = make_known(male=(0, 1))
    known.limits_ = (-0.2, 0.3)
    curve = known.curve_at(male=1)
    lower, upper = curve.band(0.999)
    assert lower.min() == -0.2
    assert upper.max() == 0.3
    assert ((lower <= curve(curve.grid(None))) & (curve(curve.grid(None)) <= upper)).all()
    assert (curve - known.curve_at()).limits == (-0.5, 0.5)
    assert (2 * curve).limits == (-0.4, 0.6)
    assert (-curve).limits == (-0.3, 0.2)
    assert (0 * curve).limits == (0.0, 0.0)
    assert curve.mean_over(0.2, 0.4).curve.limits == pytest.approx((-0.2, 0.3))
    assert curve.derivative().limits == (-np.inf, np.inf)
    assert known.effect("male").limits == (-np.inf, np.inf)


def test_joint_bands_hold_all_curves_at_once(known) -> None:
    curves = [known.effect("male"), known.effect("bmi")]
    bands = known.simultaneous_bands(curves, 0.95, X)
    for curve, (lower, upper) in zip(curves, bands, strict=True):
        alone = curve.band(0.95, X)
        assert (upper - lower > alone[1] - alone[0]).all()
        assert (upper - lower < 1.3 * (alone[1] - alone[0])).all()
    with pytest.raises(InvalidInput, match="curves must be a list"):
        simultaneous_bands([])


def test_curves_of_two_fits_are_joined_only_if_the_user_says_so(known) -> None:
    other = make_known("bspline", 7, seed=5, domain=(20.0, 80.0))
    ours, theirs = known.effect("male"), other.curve_
    with pytest.raises(InvalidInput, match="independent=True"):
        ours - theirs
    difference = ours.minus(theirs, independent=True)
    np.testing.assert_allclose(difference(X), ours(X) - theirs(X), atol=1e-12)
    expected = np.hypot(ours.standard_error(X), theirs.standard_error(X))
    np.testing.assert_allclose(difference.standard_error(X), expected, rtol=1e-9)
    np.testing.assert_allclose((difference + theirs)(X), ours(X), atol=1e-12)
    np.testing.assert_allclose(ours.plus(theirs, independent=True)(X), ours(X) + theirs(X), atol=1e-12)
    elsewhere = make_known(seed=2)
    with pytest.raises(InvalidInput, match="same domain"):
        ours.minus(elsewhere.curve_, independent=True)


def test_level_ends_are_not_taken_for_slopes() -> None:
    with pytest.raises(InvalidInput, match="basis='free-ends'"):
        make_known("cosine").curve_.derivative()
    assert make_known("fourier", 5).curve_.has_free_ends


def test_a_form_without_weights_is_a_number() -> None:
    law = make_law()
    number = Form(law, {0: np.ones(1)}).integral(0.0, 1.0)
    assert number.is_constant
    both = number + Form(law, {0: np.ones(1)}) + number * 2
    assert not both.is_constant
    curve = ReleasedCurve((both,))
    assert curve.at_unit(np.array([0.3]))[0] == pytest.approx(
        law.functions.evaluate_unit(np.array([0.3]))[0] @ law.mean[0] + 3 * number.coefficients()[0]
    )


@pytest.fixture(scope="module")
def fits():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        public = {"epsilon": 2.0, "delta": 1e-5, "domain": (0, 1), "y_bounds": (-4, 4), "random_state": 3}
        mean = PrivateMean(**public).fit(simulate_mean(1500, 6, rng=1))
        silos = [
            Silo(simulate_vcm(900, 6, 1, rng=seed), epsilon=3, delta=1e-5, name=f"site-{seed}", random_state=seed)
            for seed in (1, 2)
        ]
        vcm = PrivateVaryingCoefficients(
            **{**public, "epsilon": None, "delta": None}, covariates={"dose": (-1, 1)}, basis="free-ends"
        ).fit(silos)
    return mean, vcm, silos


def test_curves_of_estimators_are_their_predictions_and_bands(fits) -> None:
    mean, vcm, _ = fits
    x = np.linspace(0, 1, 41)
    np.testing.assert_allclose(mean.curve_(x), mean.predict(x), atol=1e-10)
    pointwise = mean.band(0.9, x=x, simultaneous=False)
    np.testing.assert_allclose(mean.curve_.band(0.9, x, simultaneous=False), pointwise, atol=1e-10)
    np.testing.assert_allclose(vcm.effect("dose")(x), vcm.predict_coefficients(x)[:, 1], atol=1e-10)
    np.testing.assert_allclose(vcm.curve_at(dose=0.2)(x), vcm.predict(x, [[1, 0.2]]), atol=1e-10)
    np.testing.assert_allclose(vcm.predict(x, dose=0.2), vcm.predict(x, [[1, 0.2]]), atol=1e-10)
    for fit, curve in ((mean, mean.curve_), (vcm, vcm.effect("dose"))):
        lower, upper = fit.band(0.95, x=x)
        ours = curve.band(0.95, x)[1] - curve.band(0.95, x)[0]
        theirs = (upper - lower).reshape(len(x), -1)[:, -1]
        assert 0.98 < (ours / theirs).min() <= (ours / theirs).max() < 1.06


def test_no_question_changes_the_ledger(fits) -> None:
    _, vcm, silos = fits
    before = [(silo.ledger.spent(), silo.ledger.log()) for silo in silos]
    contrast = vcm.curve_at(dose=1) - vcm.curve_at(dose=-1)
    contrast.band()
    contrast.derivative().is_zero()
    contrast.is_constant()
    contrast.argmax()
    contrast.argmin()
    contrast.integral(0.2, 0.4).interval()
    vcm.simultaneous_bands()
    vcm.summary()
    vcm.to_frame()
    assert [(silo.ledger.spent(), silo.ledger.log()) for silo in silos] == before


def test_methods_without_a_covariance_have_curves_but_no_bands() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = PrivateMean(domain=(0, 1), y_bounds=(-4, 4), method="nonprivate").fit(simulate_mean(300, 5, rng=1))
    assert not fit.curve_.has_band
    assert fit.curve_.mean_over(0, 0.5).estimate == pytest.approx(
        np.mean(fit.predict(np.linspace(0, 0.5, 2001))), abs=1e-3
    )
    assert repr(fit.curve_.mean_over()).startswith("average of mean")
    with pytest.raises(InvalidInput, match="band needs method='adaptive'"):
        fit.curve_.band()
    assert "average" in fit.summary()
