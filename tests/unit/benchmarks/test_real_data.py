"""The real-data page: what it covers, and that its reference is the library's own least squares."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.real_data import compare, fit_least_squares, make_rows
from benchmarks.real_studies import COVARIATES, MEANS, SITES

from dpfda import PrivateMean, PrivateVaryingCoefficients

pytestmark = pytest.mark.filterwarnings("ignore")
BY_NAME = {study.name: study for study in (*MEANS, *COVARIATES)}


def test_outcomes_are_many_and_half_of_them_binary_or_skewed() -> None:
    assert len(MEANS) >= 12
    assert len({study.data for study in MEANS}) >= 6
    assert sum(study.kind in ("binary", "skewed") for study in MEANS) >= len(MEANS) / 2
    assert BY_NAME["obesity"].data == "geepack::muscatine"


def test_one_study_has_covariates_that_change_and_one_has_sites() -> None:
    assert BY_NAME["log wage by union and marriage at the time"].read().rows is not None
    sites = SITES.split()
    assert len(sites) == 42
    assert sum(curves.n for curves in sites.values()) == SITES.read().n


@pytest.mark.parametrize("name", ["bilirubin", "log wage by origin and schooling"])
def test_the_reference_is_the_librarys_least_squares(name) -> None:
    study = BY_NAME[name]
    curves, grid = study.read(), np.linspace(*study.domain, 201)
    found, errors = fit_least_squares(study, curves, grid)
    terms = {"domain": study.domain, "y_bounds": study.y_bounds, "method": "nonprivate"}
    if study.covariates:
        bounds = [(1.0, 1.0), *study.covariates.values()]
        expected = PrivateVaryingCoefficients(design_bounds=bounds, **terms).fit(curves).predict_coefficients(grid)
    else:
        expected = PrivateMean(**terms).fit(curves).predict(grid)[:, None]
    busy = slice(0, 120)  # both are ill determined where hardly anybody was seen
    np.testing.assert_allclose(found[busy], expected[busy], atol=0.02 * np.ptp(expected[busy]))
    assert (errors > 0).all()


def test_standard_errors_are_those_of_other_samples_of_subjects() -> None:
    """Of half the subjects, drawn again and again, the curve varies as much as the standard error of half of them says."""
    study = BY_NAME["bilirubin"]
    frame, grid, rng = study.load(), np.linspace(*study.domain, 201), np.random.default_rng(5)
    names = frame["id"].unique()
    values, errors = [], []
    for _ in range(60):
        chosen = frame[frame["id"].isin(rng.choice(names, len(names) // 2, replace=False))]
        curve, error = fit_least_squares(study, study.make_curves(chosen), grid)
        values.append(curve[60, 0])
        errors.append(error[60, 0])
    spread = np.std(values) * np.sqrt(2)  # halves of one set differ by less: a finite population
    assert 0.7 < spread / np.mean(errors) < 1.4


def test_a_comparison_stands_in_a_row_for_each_epsilon() -> None:
    rows = make_rows(compare(BY_NAME["exercise"], 1))
    assert len(rows) == 3
    assert all(row.startswith("| exercise | ") and row.count("|") == 9 for row in rows)
