"""weight="visit": the estimand is said everywhere, least squares has the same weights, and equal visits change nothing."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import Curves, PrivateMean, PrivateVaryingCoefficients, Silo, load, save
from dpfda.errors import InvalidInput
from dpfda.planning.expected_error import expected_error
from dpfda.protocol.statistics import VisitWeights

pytestmark = pytest.mark.filterwarnings("ignore")
PUBLIC = {"domain": (0, 1), "y_bounds": (-4, 4)}
BY_VISITS = {"weight": "visit", "visit_cap": 4}
GRID = np.linspace(0, 1, 51)


def make_curves(counts, seed=0, *, columns=1):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(len(counts)), counts)
    own, x = rng.normal(size=len(counts)), rng.random(ids.size)
    y = np.sin(5 * x) + 0.5 * own[ids] + 0.3 * rng.normal(size=ids.size)
    if columns == 1:
        return Curves.from_long(ids, x, y)
    group = rng.integers(0, 2, len(counts))
    return Curves.from_long(ids, x, y + 0.4 * group[ids], np.column_stack([np.ones(len(counts)), group])[ids])


def fit(curves, **options):
    return PrivateMean(**{"epsilon": 1, "delta": 1e-5, "random_state": 1, **PUBLIC, **options}).fit(curves)


@pytest.mark.parametrize("cap", [3, 5, 10])
def test_where_all_have_as_many_visits_the_curve_is_that_of_subjects(cap) -> None:
    """Up to noise: it is next to nothing at epsilon 100, where curves are .001 apart and have errors of .02."""
    curves = make_curves(np.full(1000, 5))
    one, other = (fit(curves, epsilon=100, **options) for options in ({}, {"weight": "visit", "visit_cap": cap}))
    assert np.sqrt(np.mean((one.predict(GRID) - other.predict(GRID)) ** 2)) < 0.002
    assert other.expected_error_.total == pytest.approx(one.expected_error_.total, rel=0.4)


def test_where_all_have_as_many_visits_least_squares_is_the_same() -> None:
    curves = make_curves(np.full(60, 5))
    one, other = (fit(curves, method="nonprivate", **options) for options in ({}, BY_VISITS))
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-10)


@pytest.mark.parametrize("basis", ["cosine", "free-ends", "bspline"])
@pytest.mark.parametrize("columns", [1, 2])
def test_least_squares_weighs_visits_up_to_the_cap(basis, columns) -> None:
    counts = np.random.default_rng(1).integers(0, 9, 80)
    curves = make_curves(counts, columns=columns)
    model = PrivateMean if columns == 1 else PrivateVaryingCoefficients
    options = {} if columns == 1 else {"design_bounds": [(0, 1)]}
    found = model(method="nonprivate", basis=basis, n_basis=5, **PUBLIC, **BY_VISITS, **options).fit(curves)
    kept = counts[counts > 0]
    root = np.sqrt(np.repeat(np.minimum(kept, 4) / kept, kept))
    features = found.basis_.evaluate(curves.x)
    rows = (curves.point_design[:, :, None] * features[:, None, :]).reshape(curves.x.size, -1)
    expected = np.linalg.lstsq(rows * root[:, None], np.clip(curves.y, -4, 4) * root, rcond=None)[0]
    np.testing.assert_allclose(np.ravel(found.coef_), expected, atol=1e-8)


def test_the_estimand_is_said_wherever_a_reader_looks(tmp_path) -> None:
    found = fit(make_curves(np.full(400, 3)), random_state=None, **BY_VISITS)
    said = "Every visit counts equally, but a subject with more than 4 counts as 4: the mean over visits of y at each"
    assert found.estimand_.startswith(said)
    assert said in " ".join(found.summary().split())
    assert "weight = visit, visit_cap = 4" in str(found.privacy_)
    assert found.privacy_.public_inputs["visit_cap"] == 4
    save(found, tmp_path / "result.json")
    loaded = load(tmp_path / "result.json")
    assert loaded.estimand_ == found.estimand_
    assert "visit_cap" in (tmp_path / "result.json").read_text()
    subjects = fit(make_curves(np.full(400, 3)))
    assert subjects.estimand_.startswith("Every subject counts equally: the mean over subjects")
    assert "weight" not in subjects.privacy_.public_inputs


def test_of_a_binary_y_it_is_the_share_of_visits() -> None:
    curves = make_curves(np.full(400, 3))
    ones = Curves(curves.x, (curves.y > 0).astype(float), curves.offsets, curves.design)
    found = fit(ones, y_bounds=(0, 1), outcome="binary", **BY_VISITS)
    assert "the share of visits with y = 1 at each x" in found.estimand_


def test_with_a_transform_it_is_a_geometric_mean_over_visits() -> None:
    curves = make_curves(np.full(400, 3))
    positive = Curves(curves.x, np.exp(curves.y), curves.offsets, curves.design)
    found = fit(positive, y_bounds=(0.01, 50), transform="log", **BY_VISITS)
    assert "the geometric mean over visits of y" in found.estimand_


def test_it_costs_what_was_promised_and_no_more() -> None:
    silo = Silo(make_curves(np.full(300, 3)), epsilon=1, delta=1e-5, name="clinic")
    found = PrivateMean(**PUBLIC, **BY_VISITS).fit([silo])
    assert any(isinstance(kind, VisitWeights) for kind in found.plan_.rounds[0].statistics)
    assert found.privacy_.silos[0].epsilon_spent <= 1
    assert silo.ledger.spent().epsilon <= 1
    assert not any(isinstance(kind, VisitWeights) for kind in fit(make_curves([3] * 300)).plan_.rounds[0].statistics)


def test_sites_of_such_a_study_have_a_mean_over_visits() -> None:
    found = fit([make_curves(np.full(300, 1 + 2 * k), k) for k in range(3)], **BY_VISITS).sites_
    assert found.units == "visits"
    assert found.mean().name == found.mean("visits").name == "mean over visits"
    assert "mean over visits" in list(found.to_frame()["site"])
    with pytest.raises(InvalidInput, match="'visits', 'sites'"):
        found.mean("subjects")


def test_a_cap_far_above_the_visits_is_noticed() -> None:
    found = fit(make_curves(np.full(200, 2)), weight="visit", visit_cap=1000)
    assert any("visit_cap nearer to the usual number" in sentence for sentence in found.warnings_)
    assert not any("visit_cap" in sentence for sentence in fit(make_curves(np.full(2000, 2)), **BY_VISITS).warnings_)


def test_a_forecast_says_what_it_assumes() -> None:
    model = PrivateMean(epsilon=1, delta=1e-5, **PUBLIC, **BY_VISITS)
    assert "every subject is taken to have the same number of visits" in str(model.forecast(n=1000, m=4))
    binary = expected_error(1000, 4, y_bounds=(0, 1), epsilon=1, delta=1e-5, outcome="binary", **BY_VISITS)
    assert "a share of 0.5 is assumed" in binary.assumed
    assert "visits" in binary.assumed
    assert "visits" not in expected_error(1000, 4, y_bounds=(0, 1), epsilon=1, delta=1e-5).assumed


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"weight": "visit"}, "visit_cap must be given with weight='visit'"),
        ({"visit_cap": 5}, "visit_cap must be given with weight='visit'"),
        ({"weight": "visits", "visit_cap": 5}, "weight must be one of"),
        ({"weight": "visit", "visit_cap": 0}, "visit_cap must be a whole number between 1 and 1000"),
        ({"weight": "visit", "visit_cap": 1001}, "visit_cap must be a whole number between 1 and 1000"),
        ({"weight": "visit", "visit_cap": 2.5}, "visit_cap must be a whole number"),
        ({"weight": "visit", "visit_cap": True}, "visit_cap must be a whole number"),
        ({"weight": "visit", "visit_cap": 5, "method": "published"}, "weight='visit' is for method='adaptive'"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_spent(options, said) -> None:
    silo = Silo(make_curves(np.full(50, 3)), epsilon=1, delta=1e-5, name="clinic")
    with pytest.raises(InvalidInput, match=said):
        PrivateMean(**PUBLIC, **options).fit([silo])
    assert silo.ledger.log() == []
