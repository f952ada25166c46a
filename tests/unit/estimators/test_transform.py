"""transform="log" and its like: a fit to transformed y, whose answers are in the units of y and say what they are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dpfda
from dpfda import Curves, InvalidInput, PrivateMean, PrivateVaryingCoefficients, Silo
from dpfda.protocol.transforms import apply_transform, transform_bounds

BOUNDS = (0.1, 100.0)
PUBLIC = {"epsilon": 2.0, "delta": 1e-5, "domain": (0.0, 1.0), "random_state": 3}
X = np.linspace(0, 1, 9)

pytestmark = pytest.mark.filterwarnings("ignore::dpfda.NotPrivateWarning")


def draw(n: int = 1500, seed: int = 5, transform=lambda y: y, design: bool = False) -> Curves:
    """exp(1 + sin(3x) + 0.7 G + subject + noise)."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n), 4)
    x, group = rng.uniform(0, 1, ids.size), rng.integers(0, 2, n).astype(float)
    log = 1 + np.sin(3 * x) + np.repeat(rng.normal(0, 0.5, n), 4) + rng.normal(0, 0.3, ids.size)
    y = np.exp(log + 0.7 * group[ids] if design else log)
    curves = Curves.from_long(ids, x, transform(y), design=group[ids, None] if design else None)
    return curves.with_intercept() if design else curves


@pytest.fixture(scope="module")
def fit() -> PrivateMean:
    return PrivateMean(**PUBLIC, y_bounds=BOUNDS, transform="log").fit(draw())


@pytest.fixture(scope="module")
def groups() -> PrivateVaryingCoefficients:
    public = {**PUBLIC, "y_bounds": BOUNDS, "covariates": {"old": (0, 1)}, "transform": "log"}
    return PrivateVaryingCoefficients(**public).fit(draw(3000, design=True))


@pytest.mark.parametrize("transform", ["log", "log1p", "sqrt"])
def test_it_is_the_fit_to_transformed_y_bit_by_bit(transform) -> None:
    plain = PrivateMean(**PUBLIC, y_bounds=transform_bounds(transform, BOUNDS))
    plain.fit(draw(transform=lambda y: apply_transform(transform, np.clip(y, *BOUNDS))))
    found = PrivateMean(**PUBLIC, y_bounds=BOUNDS, transform=transform).fit(draw())
    assert np.array_equal(found.coef_, plain.coef_)
    back = {"log": np.exp, "log1p": np.expm1, "sqrt": np.square}[transform]
    np.testing.assert_allclose(found.predict(X), back(plain.predict(X)), rtol=1e-13)
    for one, other in zip(found.band(x=X), plain.band(x=X), strict=True):
        np.testing.assert_allclose(one, back(other), rtol=1e-13)


def test_the_curve_is_the_geometric_mean(fit) -> None:
    truth = np.exp(1 + np.sin(3 * X))
    low, high = fit.band(x=X)
    assert (low < truth).all()
    assert (truth < high).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        public = {"method": "nonprivate", "domain": (0, 1), "y_bounds": BOUNDS, "transform": "log"}
        least_squares = PrivateMean(**public).fit(draw())
    np.testing.assert_allclose(least_squares.predict(X[1:-1]), truth[1:-1], rtol=0.1)
    np.testing.assert_array_equal(fit.predict(X), fit.curve_(X))


def test_it_says_so(fit, tmp_path) -> None:
    assert fit.curve_.name == "geometric mean"
    for text in (fit.estimand_, fit.summary(), dpfda.load(dpfda.save(fit, tmp_path / "r.json")).summary()):
        words = " ".join(text.split())
        assert "geometric mean over subjects of y" in words
        assert "not the mean of y" in words
    assert dict(fit.privacy_.public_inputs)["transform"] == "log"
    assert "log(y)" in str(fit.expected_error_)


def test_differences_are_ratios_and_slopes_growth_rates(fit, groups) -> None:
    ratio = groups.curve_at(old=1) - groups.curve_at(old=0)
    np.testing.assert_allclose(ratio(X), groups.curve_at(old=1)(X) / groups.curve_at(old=0)(X), rtol=1e-12)
    np.testing.assert_allclose(ratio(X), groups.effect("old")(X), rtol=1e-12)
    low, high = ratio.band(0.95, X)
    assert (low < np.exp(0.7)).all()
    assert (np.exp(0.7) < high).all()
    assert ratio.scale.label("hdl") == "ratio of hdl"
    assert ratio.is_zero().rejected
    assert "is 1" in ratio.is_zero().hypothesis
    assert ratio.name == "(geometric mean at old=1) / (geometric mean at old=0)"
    np.testing.assert_allclose(
        (groups.curve_at(old=0) + groups.effect("old"))(X), groups.curve_at(old=1)(X), rtol=1e-12
    )
    np.testing.assert_allclose(groups.effect("old", per=2)(X), (2 * groups.effect("old"))(X), rtol=1e-12)
    rate, step = fit.curve_.derivative(), 1e-5
    inner = X[1:-1]
    numeric = (np.log(fit.curve_(inner + step)) - np.log(fit.curve_(inner - step))) / (2 * step)
    np.testing.assert_allclose(rate(inner), numeric, rtol=1e-4)
    assert rate.name == "relative growth rate of geometric mean"
    assert rate.has_band


def test_averages_are_geometric_and_tests_of_shape_hold(fit) -> None:
    grid = 0.2 + 0.4 * (np.arange(20000) + 0.5) / 20000
    value = fit.curve_.mean_over(0.2, 0.6)
    assert value.estimate == pytest.approx(np.exp(np.log(fit.curve_(grid)).mean()), rel=1e-6)
    assert value.name.startswith("geometric average")
    low, high = value.interval()
    assert low < value.estimate < high
    assert value.standard_error == pytest.approx(
        value.estimate * float(fit.curve_.transformed().mean_over(0.2, 0.6).standard_error)
    )
    assert fit.curve_.is_constant().rejected
    top = fit.curve_.argmax()
    assert top.value == pytest.approx(fit.curve_([top.x])[0])


@pytest.mark.parametrize(
    "ask",
    [lambda c: c * 2, lambda c: c / 3, lambda c: -c, lambda c: c + c, lambda c: c + 1, lambda c: 5 - c,
     lambda c: c.is_zero(), lambda c: c.integral(), lambda c: c.to_skfda(), lambda c: c.mean_over().p_value],
)  # fmt: skip
def test_what_has_no_meaning_is_refused_in_a_sentence(fit, ask) -> None:
    with pytest.raises(InvalidInput) as error:
        ask(fit.curve_)
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def test_the_transformed_scale_answers_all(fit) -> None:
    logs = fit.curve_.transformed()
    np.testing.assert_allclose(logs(X), np.log(fit.curve_(X)), rtol=1e-12)
    np.testing.assert_allclose((2 * logs - 1)(X), 2 * np.log(fit.curve_(X)) - 1, rtol=1e-12)
    assert logs.integral().estimate == pytest.approx(np.log(fit.curve_.mean_over().estimate))
    assert logs.scale.label("y") == "log(y)"


def test_curves_of_different_transforms_are_not_mixed(fit) -> None:
    other = PrivateMean(**PUBLIC, y_bounds=BOUNDS).fit(draw(seed=6))
    with pytest.raises(InvalidInput, match="same transform"):
        fit.curve_.minus(other.curve_, independent=True)


def test_bands_end_at_the_bounds_of_y() -> None:
    found = PrivateMean(**(PUBLIC | {"epsilon": 0.05}), y_bounds=(0.7, 40.0), transform="log").fit(draw(300))
    low, high = found.band()
    assert low.min() >= 0.7
    assert high.max() <= 40.0
    assert found.predict(X).min() >= 0.7


@pytest.mark.parametrize("transform", ["log", "log1p", "sqrt"])
def test_a_file_answers_like_the_fit(groups, transform, tmp_path) -> None:
    public = {**PUBLIC, "y_bounds": BOUNDS, "covariates": {"old": (0, 1)}, "transform": transform}
    fit = groups if transform == "log" else PrivateVaryingCoefficients(**public).fit(draw(1000, design=True))
    result = dpfda.load(dpfda.save(fit, tmp_path / "result.json"))
    for one, other in zip(fit.list_curves(), result.list_curves(), strict=True):
        assert one.name == other.name
        np.testing.assert_allclose(one(X), other(X), rtol=1e-10)
        np.testing.assert_allclose(one.band(0.9, X), other.band(0.9, X), rtol=1e-9)
        np.testing.assert_allclose(one.standard_error(X), other.standard_error(X), rtol=1e-9)
    assert result.document["model"]["transform"] == transform
    np.testing.assert_allclose(fit.predict(X, [[1.0, 1.0]]), fit.curve_at(old=1)(X), rtol=1e-12)


def test_silos_apply_it_with_their_own_code() -> None:
    curves = draw(900)
    parts = [Silo(part, epsilon=2, delta=1e-5) for part in (curves[:300], curves[300:500], curves[500:])]
    found = PrivateMean(domain=(0, 1), y_bounds=BOUNDS, transform="log", random_state=2).fit(parts)
    truth = np.exp(1 + np.sin(3 * X))
    assert np.abs(np.log(found.predict(X) / truth)).max() < 0.5
    assert found.sites_ is not None
    site = found.sites_.curve("silo-1")
    assert site.scale.transform == "log"
    assert (site(X) > 0.5).all()


@pytest.mark.parametrize(
    ("changes", "word"),
    [({"y_bounds": (0, 10)}, "y_bounds"), ({"transform": "ln"}, "transform"), ({"transform": True}, "transform"),
     ({"outcome": "binary"}, "transform")],
)  # fmt: skip
def test_impossible_ones_are_refused_before_anything_is_spent(changes, word) -> None:
    options = {**PUBLIC, "y_bounds": BOUNDS, "transform": "log"} | changes
    with pytest.raises(InvalidInput, match=word):
        PrivateMean(**options).fit(draw(50))


def test_the_published_method_has_it_too() -> None:
    public = {**PUBLIC, "method": "published", "points_per_curve": 4.0}
    plain = PrivateMean(**public, y_bounds=transform_bounds("log", BOUNDS)).fit(
        draw(transform=lambda y: apply_transform("log", np.clip(y, *BOUNDS)))
    )
    found = PrivateMean(**public, y_bounds=BOUNDS, transform="log").fit(draw())
    assert np.array_equal(found.coef_, plain.coef_)


@pytest.mark.parametrize("outcome", ["count", "positive"])
def test_what_is_never_negative_has_a_band_that_is_not(outcome) -> None:
    counts = draw(300, transform=lambda y: np.floor(y / 8))
    public = {**PUBLIC, "epsilon": 0.1, "outcome": outcome}
    with pytest.raises(InvalidInput, match="y_bounds must not be negative"):
        PrivateMean(**public, y_bounds=(-5.0, 30.0)).fit(counts)
    low, _ = PrivateMean(**public, y_bounds=(0.0, 30.0)).fit(counts).band()
    assert low.min() >= 0
