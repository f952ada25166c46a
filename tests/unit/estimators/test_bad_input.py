"""A user's mistake gives one clear sentence that names the argument, and spends nothing."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from dpfda import (
    Curves,
    InvalidInput,
    Ledger,
    OwnerWarning,
    PrivateMean,
    PrivateVaryingCoefficients,
    PublishedConstants,
    Silo,
)
from dpfda.report.results import save

N = 60
NAN, INF = math.nan, math.inf


def rows(n=N):
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(n), 4)
    x = rng.uniform(0, 1, ids.size)
    return ids, x, x + rng.normal(0, 0.2, ids.size)


def mean_curves():
    return Curves.from_long(*rows())


def design_curves(columns=2):
    ids, x, y = rows()
    G = np.random.default_rng(1).uniform(-1, 1, (N, columns))[ids]
    return Curves.from_long(ids, x, y, design=G).with_intercept()


def assert_one_sentence(error, *words):
    """An InvalidInput and ValueError whose text is a single sentence with the argument's name."""
    message = str(error.value)
    assert isinstance(error.value, ValueError)
    assert "\n" not in message
    assert message.endswith(".")
    assert not re.search(r"\. [A-Z]", message), message
    assert len(message) < 250
    for word in words:
        assert word in message, message


# ---------------------------------------------------------------- estimators

BASE = {
    "epsilon": 1.0,
    "delta": 1e-3,
    "domain": (0, 1),
    "y_bounds": (-5, 5),
    "method": "published",
    "n_basis": 3,
    "points_per_curve": 4,
}

# What is wrong, and the argument that the message must name. Each is tried on raw curves; those that concern a silo's
# own budget are not of interest where a silo brings its own.
BUDGET_CASES = [
    ({"epsilon": NAN}, "epsilon"),
    ({"epsilon": 0}, "epsilon"),
    ({"epsilon": -1.0}, "epsilon"),
    ({"epsilon": INF}, "epsilon"),
    ({"epsilon": "1"}, "epsilon"),
    ({"epsilon": True}, "epsilon"),
    ({"epsilon": [1.0]}, "epsilon"),
    ({"epsilon": None}, "epsilon"),
    ({"epsilon": 40.0}, "epsilon"),
    ({"delta": 1}, "delta"),
    ({"delta": 2.0}, "delta"),
    ({"delta": 0}, "delta"),
    ({"delta": -1e-3}, "delta"),
    ({"delta": NAN}, "delta"),
    ({"delta": "tiny"}, "delta"),
    ({"delta": None}, "delta"),
]
PARAMETER_CASES = [
    ({"domain": None}, "domain"),
    ({"domain": (1, 0)}, "domain"),
    ({"domain": (0, 0)}, "domain"),
    ({"domain": (0, NAN)}, "domain"),
    ({"domain": (0, INF)}, "domain"),
    ({"domain": (0, 1, 2)}, "domain"),
    ({"domain": 1.0}, "domain"),
    ({"domain": "01"}, "domain"),
    ({"domain": (-1e308, 1e308)}, "domain"),
    ({"y_bounds": None}, "y_bounds"),
    ({"y_bounds": (5, -5)}, "y_bounds"),
    ({"y_bounds": (NAN, 5)}, "y_bounds"),
    ({"y_bounds": ("low", "high")}, "y_bounds"),
    ({"basis": "wavelet"}, "basis"),
    ({"basis": ""}, "basis"),
    ({"basis": True}, "basis"),
    ({"basis": ["fourier"]}, "basis"),
    ({"method": "magic"}, "method"),
    ({"method": None}, "method"),
    ({"n_basis": 0}, "n_basis"),
    ({"n_basis": -3}, "n_basis"),
    ({"n_basis": 2.5}, "n_basis"),
    ({"n_basis": "3"}, "n_basis"),
    ({"n_basis": True}, "n_basis"),
    ({"alpha": 0}, "alpha"),
    ({"alpha": NAN}, "alpha"),
    ({"alpha": "smooth"}, "alpha"),
    ({"points_per_curve": 0}, "points_per_curve"),
    ({"points_per_curve": -2}, "points_per_curve"),
    ({"points_per_curve": NAN}, "points_per_curve"),
    ({"y_scale": "sd"}, "y_scale"),
    ({"projection": "ball"}, "projection"),
    ({"random_state": -1}, "random_state"),
    ({"random_state": 1.5}, "random_state"),
    ({"random_state": "seed"}, "random_state"),
    ({"constants": PublishedConstants(C_T=100.0)}, "C_T"),  # T > n_s
]


DECLARATION_CASES = [
    ({"assume_symmetric": 1}, "assume_symmetric"),
    ({"assume_symmetric": "yes"}, "assume_symmetric"),
    ({"robust_sites": 1}, "robust_sites"),
    ({"outcome": "any"}, "outcome"),
    ({"outcome": "ordinal"}, "outcome"),
    ({"outcome": True}, "outcome"),
    ({"visit_times": 0.5}, "visit_times"),
    ({"visit_times": "soon"}, "visit_times"),
    ({"visit_times": None}, "visit_times"),
    ({"visit_times": [0.5, NAN]}, "visit_times"),
    ({"visit_times": [0.5, 1.5]}, "visit_times"),
    ({"visit_times": [0.5, 0.5]}, "visit_times"),
    ({"visit_times": np.linspace(0, 1, 65)}, "visit_times"),
]


def case_id(case):
    ((name, value),) = case[0].items()
    return f"{name}={value!r}"[:60]


def params(cases):
    return [pytest.param(*case, id=case_id(case)) for case in cases]


@pytest.mark.parametrize(("change", "word"), params(BUDGET_CASES + PARAMETER_CASES))
def test_bad_parameters_with_raw_curves(change, word):
    with pytest.raises(InvalidInput) as error:
        PrivateMean(**(BASE | change)).fit(mean_curves())
    assert_one_sentence(error, word)


@pytest.mark.parametrize(("change", "word"), params(DECLARATION_CASES))
def test_bad_declarations_spend_nothing(change, word, tmp_path):
    ledger = Ledger.create(tmp_path / "silo.ledger", 1.0, 1e-3)
    silo = Silo(mean_curves(), epsilon=1.0, delta=1e-3, ledger=ledger)
    with pytest.raises(InvalidInput) as error:
        PrivateMean(**(BASE | {"method": "adaptive"} | change)).fit([silo])
    assert_one_sentence(error, word)
    assert (ledger.spent().mu_squared, ledger.spent().debits) == (0.0, 0)


@pytest.mark.parametrize("declared", [{"assume_symmetric": True}, {"outcome": "binary"}, {"visit_times": [0.5]}])
def test_the_published_method_takes_no_declarations(declared):
    with pytest.raises(InvalidInput) as error:
        PrivateMean(**(BASE | declared)).fit(mean_curves())
    assert_one_sentence(error, next(iter(declared)))


@pytest.mark.parametrize(("change", "word"), params(PARAMETER_CASES))
def test_bad_parameters_spend_nothing(change, word, tmp_path):
    ledger = Ledger.create(tmp_path / "silo.ledger", 1.0, 1e-3)
    silo = Silo(mean_curves(), epsilon=1.0, delta=1e-3, points_per_curve=4, ledger=ledger)
    with pytest.raises(InvalidInput) as error:
        PrivateMean(**(BASE | change)).fit([silo])
    assert_one_sentence(error, word)
    assert (ledger.spent().mu_squared, ledger.spent().debits) == (0.0, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"extension": 1.0},
        {"extension": NAN},
        {"extension": "long"},
    ],
)
def test_bad_extension(change):
    with pytest.raises(InvalidInput) as error:
        PrivateMean(**(BASE | {"basis": "fourier-extension"} | change)).fit(mean_curves())
    assert_one_sentence(error, "extension" if "extension" in str(error.value) else "factor")


@pytest.mark.parametrize(
    "X",
    [
        pytest.param(None, id="None"),
        pytest.param([], id="empty list"),
        pytest.param((), id="empty tuple"),
        pytest.param("curves", id="text"),
        pytest.param(3.0, id="number"),
        pytest.param(np.zeros((5, 3)), id="array"),
        pytest.param(pd.DataFrame({"a": [1]}), id="frame"),
        pytest.param([np.zeros(3)], id="list of arrays"),
        pytest.param({"a": mean_curves()}, id="dict"),
        pytest.param([mean_curves(), None], id="curves and None"),
    ],
)
@pytest.mark.parametrize("method", ["published", "nonprivate"])
def test_x_of_a_wrong_type(X, method):
    with pytest.raises(InvalidInput) as error:
        PrivateMean(**(BASE | {"method": method})).fit(X)
    assert_one_sentence(error, "X")


def test_x_outside_the_domain_is_refused_on_request():
    with pytest.raises(InvalidInput) as error:
        PrivateMean(**(BASE | {"domain": (0, 0.5), "outside": "refuse"})).fit(mean_curves())
    assert_one_sentence(error, "domain")


def test_a_domain_that_misses_every_point_is_refused():
    with pytest.raises(InvalidInput) as error:
        PrivateMean(**(BASE | {"domain": (50, 90)})).fit(mean_curves())
    assert_one_sentence(error, "domain")


@pytest.mark.parametrize("method", ["adaptive", "nonprivate"])
def test_x_outside_the_domain_is_left_out_and_only_the_owner_hears_of_it(method):
    data, domain = mean_curves(), (0.0, 0.5)
    options = BASE | {"domain": domain, "random_state": 1, "method": method}
    with pytest.warns(OwnerWarning, match="NOT PRIVATE"):
        whole = PrivateMean(**options).fit(data)
    np.testing.assert_array_equal(whole.coef_, PrivateMean(**options).fit(data.restrict(domain)).coef_)


def owner_warnings(fit) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(each.message) for each in caught if each.category is OwnerWarning]


def test_bounds_in_the_wrong_unit_are_told_to_the_owner_before_spending_and_to_nobody_else(tmp_path):
    rng = np.random.default_rng(1)
    ids, x = np.repeat(np.arange(300), 4), rng.random(1200)
    kilograms = rng.normal(70, 10, 1200)
    kilograms[:8] = 1.0
    data, model = (
        Curves.from_long(ids, x, kilograms),
        PrivateMean(**(BASE | {"y_bounds": (0, 2), "method": "adaptive"})),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", OwnerWarning)
        with pytest.raises(OwnerWarning, match=r"300 subjects .* nearly everybody would be clamped; check the unit"):
            model.fit(data)
    assert len(owner_warnings(lambda: model.fit(data))) == 1
    save(model, tmp_path / "result.json")
    for place in (str(model.warnings_), model.summary(), (tmp_path / "result.json").read_text()):
        assert "clamped;" not in place
        assert "NOT PRIVATE" not in place
    table = pd.DataFrame({"id": ids, "x": x, "y": kilograms})
    assert len(owner_warnings(lambda: model.fit(table, id="id", x="x", y="y"))) == 1
    silo = Silo(data, epsilon=1.0, delta=1e-5)
    assert owner_warnings(lambda: model.fit(silo)) == []
    right = PrivateMean(**(BASE | {"y_bounds": (0, 300), "method": "adaptive"}))
    assert owner_warnings(lambda: right.fit(data)) == []


def test_curves_that_leave_nothing_to_fit_are_refused():
    data = mean_curves()
    with pytest.raises(InvalidInput) as error:
        PrivateMean(**(BASE | {"y_bounds": (500, 900)})).fit(data)
    assert_one_sentence(error, "y_bounds")
    with pytest.raises(InvalidInput, match="No row has both x and y"):
        PrivateMean(**BASE).fit(data.restrict((50.0, 90.0)))
    blank = pd.DataFrame({"id": [1, 2], "x": [0.1, 0.2], "y": [np.nan, np.nan]})
    with pytest.raises(InvalidInput, match="No row has both x and y"):
        PrivateMean(**BASE).fit(blank, id="id", x="x", y="y")


def test_the_message_about_x_shows_no_data():
    data = mean_curves()
    with pytest.raises(InvalidInput) as error:
        PrivateMean(**(BASE | {"domain": (0.25, 0.5), "outside": "refuse"})).fit(data)
    numbers = re.findall(r"\d+\.\d+", str(error.value))
    assert set(map(float, numbers)) <= {0.25, 0.5}


def test_more_rounds_than_curves(tmp_path):
    """T = ceil(4 log 75) = 18 > 15: the silo with 15 curves is named, nobody spends."""
    ids, x, y = rows(15)
    ledger = Ledger.create(tmp_path / "small.ledger", 1.0, 1e-3)
    small = Silo(Curves.from_long(ids, x, y), epsilon=1.0, delta=1e-3, name="small", points_per_curve=4, ledger=ledger)
    large = Silo(mean_curves(), epsilon=1.0, delta=1e-3, name="large", points_per_curve=4)
    with pytest.raises(InvalidInput) as error:
        PrivateMean(**BASE).fit([large, small])
    assert_one_sentence(error, "'small'", "15", "18", "C_T")
    assert (ledger.spent().debits, large.ledger.spent().debits) == (0, 0)


# ---------------------------------------------------------------- designs

VCM = BASE | {"design_bounds": (-1, 1)}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"design_bounds": None}, "design_bounds"),
        ({"design_bounds": [(-1, 1)]}, "design_bounds"),
        ({"design_bounds": [(-1, 1)] * 4}, "design_bounds"),
        ({"design_bounds": []}, "design_bounds"),
        ({"design_bounds": [(1, -1), (-1, 1)]}, "design_bounds[0]"),
        ({"design_bounds": [(-1, 1), (0, NAN)]}, "design_bounds[1]"),
        ({"design_bounds": (1, -1)}, "design_bounds"),
        ({"design_bounds": [1, 2, 3]}, "design_bounds"),
        ({"intercept": False, "design_bounds": [(-1, 1)] * 2}, "design_bounds"),
    ],
)
def test_bad_design_bounds(change, word, tmp_path):
    ledger = Ledger.create(tmp_path / "silo.ledger", 1.0, 1e-3)
    silo = Silo(design_curves(), epsilon=1.0, delta=1e-3, points_per_curve=4, ledger=ledger)
    for data in (design_curves(), silo):
        with pytest.raises(InvalidInput) as error:
            PrivateVaryingCoefficients(**(VCM | change)).fit(data)
        assert_one_sentence(error, word)
    assert ledger.spent().debits == 0


def test_silos_with_designs_of_different_lengths():
    silos = [Silo(design_curves(columns), epsilon=1.0, delta=1e-3, points_per_curve=4) for columns in (1, 2)]
    with pytest.raises(InvalidInput) as error:
        PrivateVaryingCoefficients(**VCM).fit(silos)
    assert_one_sentence(error, "X", "design")
    assert [silo.ledger.spent().debits for silo in silos] == [0, 0]


@pytest.mark.parametrize("wrap", [lambda c: c, lambda c: Silo(c, epsilon=1, delta=1e-3, points_per_curve=4)])
def test_a_mean_of_curves_with_a_design(wrap):
    with pytest.raises(InvalidInput) as error:
        PrivateMean(**BASE).fit(wrap(design_curves()))
    assert_one_sentence(error, "design", "PrivateVaryingCoefficients")


def test_a_design_without_its_intercept():
    ids, x, y = rows()
    data = Curves.from_long(ids, x, y, design=np.random.default_rng(1).uniform(-1, 1, N)[ids])
    with pytest.raises(InvalidInput) as error:
        PrivateVaryingCoefficients(**VCM).fit(data)
    assert_one_sentence(error, "design", "with_intercept")


# ---------------------------------------------------------------- curves


def long(**change):
    ids, x, y = rows(5)
    return {"ids": ids, "x": x, "y": y} | change


@pytest.mark.parametrize(
    ("change", "word"),
    [
        pytest.param({"x": np.zeros(19)}, "x", id="short x"),
        pytest.param({"y": np.zeros(21)}, "y", id="long y"),
        pytest.param({"x": np.zeros((20, 1))}, "x", id="matrix x"),
        pytest.param({"y": ["a"] * 20}, "y", id="text y"),
        pytest.param({"y": ["1.5"] * 20}, "y", id="numbers as text"),
        pytest.param({"y": np.array(["a", 1.0] * 10, dtype=object)}, "y", id="mixed y"),
        pytest.param({"y": np.zeros(20, dtype="M8[D]")}, "y", id="dates as y"),
        pytest.param({"y": np.zeros(20) + 1j}, "y", id="complex y"),
        pytest.param({"x": [object()] * 20}, "x", id="objects as x"),
        pytest.param({"ids": []}, "ids", id="no ids"),
        pytest.param({"ids": np.zeros((20, 2))}, "ids", id="matrix of ids"),
        pytest.param({"ids": [None] * 20}, "ids", id="missing ids"),
        pytest.param({"ids": [NAN] + [1.0] * 19}, "ids", id="nan id"),
        pytest.param({"ids": [[1]] * 20}, "ids", id="unhashable ids"),
        pytest.param({"ids": 7}, "ids", id="a number for ids"),
        pytest.param({"ids": "abc"}, "ids", id="a text for ids"),
        pytest.param({"design": np.zeros(19)}, "design", id="short design"),
        pytest.param({"design": np.zeros((20, 0))}, "design", id="design without columns"),
        pytest.param({"design": ["m"] * 20}, "design", id="text design"),
        pytest.param({"design": np.zeros((20, 2, 2))}, "design", id="cube design"),
    ],
)
def test_bad_long_rows(change, word):
    with pytest.raises(InvalidInput) as error:
        Curves.from_long(**long(**change))
    assert_one_sentence(error, word)


FRAME = pd.DataFrame({"id": [1, 1, 2], "x": [0.1, 0.2, 0.3], "y": [1.0, 2.0, 3.0], "sex": ["f", "f", "m"]})


@pytest.mark.parametrize(
    ("frame", "change", "word"),
    [
        pytest.param(FRAME, {"id": "subject"}, "id", id="no id column"),
        pytest.param(FRAME, {"y": "lipid"}, "y", id="no y column"),
        pytest.param(FRAME, {"design": ["age"]}, "design", id="no design column"),
        pytest.param(FRAME, {"design": []}, "design", id="no design columns"),
        pytest.param(FRAME, {"y": "sex"}, "sex", id="text as y"),
        pytest.param(FRAME, {"design": ["sex"]}, "sex", id="text as design"),
        pytest.param(FRAME.iloc[:0], {}, "df", id="empty frame"),
        pytest.param(pd.DataFrame(), {}, "id", id="frame without columns"),
        pytest.param(FRAME.set_axis(["id", "x", "y", "y"], axis=1), {}, "df", id="duplicate column names"),
        pytest.param([[1, 2, 3]], {}, "df", id="a list"),
        pytest.param(None, {}, "df", id="None"),
    ],
)
def test_bad_frames(frame, change, word):
    with pytest.raises(InvalidInput) as error:
        Curves.from_frame(frame, **({"id": "id", "x": "x", "y": "y"} | change))
    assert_one_sentence(error, word)


def test_a_message_shows_no_value_of_the_data():
    """Values of y would end up in logs."""
    with pytest.raises(InvalidInput) as error:
        Curves.from_long(**long(y=["secret 123"] * 20))
    assert "secret" not in str(error.value)


def test_the_base_parameters_are_fine():
    """So that every refusal above is due to its one change."""
    PrivateMean(**BASE).fit(mean_curves())
    PrivateVaryingCoefficients(**VCM).fit(design_curves())
    Curves.from_long(**long())
    Curves.from_frame(FRAME, id="id", x="x", y="y")


@pytest.mark.parametrize(
    ("constants", "name"), [({"C_T": NAN}, "C_T"), ({"C_R": 0.0}, "C_R"), ({"rho": -0.1}, "rho"), ({"eta": 1.5}, "eta")]
)
def test_constants_out_of_range_cannot_be_made(constants, name) -> None:
    with pytest.raises(InvalidInput) as error:
        PublishedConstants(**constants)
    assert_one_sentence(error, name)
