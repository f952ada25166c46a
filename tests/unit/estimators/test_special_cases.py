"""A special case is the SAME sample as the general path: equal bits, not close numbers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dpfda import Curves, InvalidInput, PrivateMean, PrivateVaryingCoefficients, Silo

N = 90
COMMON = {
    "domain": (0.0, 10.0),
    "y_bounds": (-5.0, 5.0),
    "method": "published",
    "n_basis": 4,
    "points_per_curve": 4,
}


@pytest.fixture(autouse=True)
def _seeds_are_meant_here():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 8, n)
    ids = np.repeat(np.arange(n), counts)
    x = rng.uniform(0, 10, ids.size)
    return ids, x, np.sin(x) + rng.normal(0, 0.5, ids.size) + rng.normal(0, 0.5, n)[ids]


def curves(n=N, seed=0):
    return Curves.from_long(*rows(n, seed))


def curves_with_design_one(n=N, seed=0):
    ids, x, y = rows(n, seed)
    return Curves.from_long(ids, x, y, design=np.ones(ids.size))


def silo(data=None, *, epsilon=1.0, delta=1e-3, **kwargs):
    return Silo(curves() if data is None else data, epsilon=epsilon, delta=delta, points_per_curve=4, **kwargs)


def mean(**kwargs):
    return PrivateMean(1.0, 1e-3, **(COMMON | kwargs))


def vcm(**kwargs):
    return PrivateVaryingCoefficients(1.0, 1e-3, **(COMMON | kwargs))


@pytest.mark.parametrize("basis", ["cosine", "fourier", "fourier-extension"])
@pytest.mark.parametrize("y_scale", ["bounds", "none"])
@pytest.mark.parametrize("projection", ["ellipsoid", "none"])
def test_vcm_with_design_one_is_the_mean(basis, y_scale, projection):
    options = {"basis": basis, "y_scale": y_scale, "projection": projection, "random_state": 3}
    as_mean = mean(**options).fit(curves())
    as_vcm = vcm(**options).fit(curves_with_design_one())
    assert as_vcm.coef_.shape == (1, 4)
    assert_array_equal(as_vcm.coef_[0], as_mean.coef_)
    x = np.linspace(0, 10, 17)
    assert_array_equal(as_vcm.predict_coefficients(x)[:, 0], as_mean.predict(x))
    assert_array_equal(as_vcm.predict(x, [1.0]), as_mean.predict(x))
    assert as_vcm.privacy_.mechanism == as_mean.privacy_.mechanism
    assert as_vcm.privacy_.silos == as_mean.privacy_.silos


def test_vcm_with_design_one_is_the_mean_across_silos():
    def members(make):
        return [silo(make(80, 1), epsilon=0.5), silo(make(130, 2), epsilon=2.0)]

    as_mean = mean(random_state=3).fit(members(curves))
    as_vcm = vcm(random_state=3).fit(members(curves_with_design_one))
    assert_array_equal(as_vcm.coef_[0], as_mean.coef_)


def test_vcm_with_design_one_stated_by_bounds_instead_of_intercept():
    """The cone with |G| <= 1 and one block is the ellipsoid, up to the rounding of two root searches."""
    ellipsoid = mean(random_state=3, projection="ellipsoid").fit(curves())
    cone = mean(random_state=3, projection="cone").fit(curves())
    np.testing.assert_allclose(cone.coef_, ellipsoid.coef_, rtol=1e-9)


@pytest.mark.parametrize("make", [mean, vcm])
def test_one_silo_is_the_central_algorithm(make):
    data = curves() if make is mean else curves_with_design_one()
    central = make(random_state=8).fit(data)
    for federated in (silo(data), [silo(data)], [silo(data, name="silo-1")], [data]):
        fitted = make(random_state=8).fit(federated)
        assert_array_equal(fitted.coef_, central.coef_)
        assert fitted.privacy_ == central.privacy_


def test_one_silo_is_the_central_algorithm_with_a_design():
    ids, x, y = rows()
    group = np.random.default_rng(5).uniform(-1, 1, N)[ids]
    data = Curves.from_long(ids, x, y, design=group).with_intercept()
    central = vcm(random_state=8, design_bounds=(-1, 1)).fit(data)
    federated = vcm(random_state=8, design_bounds=(-1, 1)).fit([silo(data)])
    assert central.coef_.shape == (2, 4)
    assert_array_equal(central.coef_, federated.coef_)
    assert central.privacy_.mechanism.startswith("Algorithm 4")


def test_algorithm_is_named_after_silos_and_design():
    assert mean(random_state=1).fit(curves()).privacy_.mechanism.startswith("Algorithm 1")
    two = [silo(curves(80, 1)), silo(curves(80, 2))]
    assert mean(random_state=1).fit(two).privacy_.mechanism.startswith("Algorithm 2")


def test_a_silos_own_seed_equals_the_estimators():
    by_silo = mean().fit([silo(random_state=8)])
    by_estimator = mean(random_state=8).fit([silo()])
    assert_array_equal(by_silo.coef_, by_estimator.coef_)
    assert not by_silo.privacy_.private


def test_silos_keep_their_own_budget_whatever_the_estimator_says():
    other = PrivateMean(7.0, 1e-2, **COMMON, random_state=8).fit([silo()])
    assert_array_equal(other.coef_, mean(random_state=8).fit([silo()]).coef_)
    assert (other.privacy_.epsilon, other.privacy_.delta) == (1.0, 1e-3)


def test_noise_depends_on_seed_and_name():
    reference = mean(random_state=8).fit([silo(name="a")]).coef_
    assert_array_equal(mean(random_state=8).fit([silo(name="a")]).coef_, reference)
    assert (mean(random_state=9).fit([silo(name="a")]).coef_ != reference).all()
    assert (mean(random_state=8).fit([silo(name="b")]).coef_ != reference).all()


def test_equal_silos_with_different_names_or_seeds_draw_different_noise():
    named = mean(random_state=8).fit([silo(name="a"), silo(name="b")])
    seeded = mean().fit([silo(name="a", random_state=1), silo(name="b", random_state=2)])
    same = mean(random_state=8).fit([silo(name="a"), silo(name="b")])
    assert (named.coef_ != seeded.coef_).all()
    assert_array_equal(named.coef_, same.coef_)


def test_order_of_named_silos_matters_only_by_rounding():
    def members():
        return [silo(curves(70, 1), name="a"), silo(curves(150, 2), name="b"), silo(curves(90, 3), name="c")]

    forward = mean(random_state=8).fit(members())
    backward = mean(random_state=8).fit(members()[::-1])
    np.testing.assert_allclose(forward.coef_, backward.coef_, rtol=1e-12, atol=1e-13)


def test_order_of_rows_does_not_matter_to_the_bits():
    ids, x, y = rows()
    order = np.argsort(np.random.default_rng(1).permutation(N)[ids], kind="stable")
    shuffled = Curves.from_long(ids[order], x[order], y[order])
    assert_array_equal(mean(random_state=8).fit(shuffled).coef_, mean(random_state=8).fit(curves()).coef_)


def test_list_of_curves_is_a_list_of_silos():
    parts = [curves(80, 1), curves(90, 2)]
    raw = mean(random_state=8).fit(parts)
    wrapped = mean(random_state=8).fit([silo(part) for part in parts])
    assert_array_equal(raw.coef_, wrapped.coef_)
    assert [member.name for member in raw.privacy_.silos] == ["silo-1", "silo-2"]


def test_a_silo_cannot_take_part_twice():
    member = silo(curves(120))
    with pytest.raises(InvalidInput, match="twice"):
        mean(random_state=8).fit([member, member])
    with pytest.raises(InvalidInput, match="names"):
        mean(random_state=8).fit([silo(name="a"), silo(name="a")])
    assert member.ledger.spent().debits == 0
