"""The utility benchmark: the same data for all, verdicts that can fail, pages that say so."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.utility_cells import measure
from benchmarks.utility_families import FAMILIES, list_tasks
from benchmarks.utility_fits import draw, get_problems
from benchmarks.utility_pages import write_pages
from benchmarks.utility_problems import GRID, make_problems
from benchmarks.utility_references import fit_least_squares
from benchmarks.utility_sites import measure_sites
from benchmarks.utility_verdicts import bound_coverage, check_coverage, check_error

pytestmark = pytest.mark.filterwarnings("ignore")


def test_data_repeat_and_differ_between_repetitions() -> None:
    first, again, other = draw("lognormal", 50, 0), draw("lognormal", 50, 0), draw("lognormal", 50, 1)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.x, other.x)


@pytest.mark.parametrize("name", make_problems())
def test_truths_are_the_means_of_what_is_drawn(name) -> None:
    """Least squares with many subjects finds the stated truth where the design is; values are within their bounds."""
    problem, data = make_problems()[name], draw(name, 30_000, 0)
    error = fit_least_squares(data, 16)[:, 0] - problem.truth
    spread = data.y.std()
    assert np.sqrt(np.mean(error[problem.seen] ** 2)) < 0.03 * spread
    if name != "sharp peak" and problem.slope is None:
        assert problem.y_bounds[0] - 1 <= data.y.min() <= data.y.max() <= problem.y_bounds[1] + 1
    if problem.slope is not None:
        np.testing.assert_allclose(np.gradient(problem.truth, GRID)[1:-1], problem.slope[1:-1], atol=0.02)


@pytest.mark.parametrize("name", sorted(set(get_problems()) - set(make_problems())))
def test_coefficient_functions_are_those_of_what_is_drawn(name) -> None:
    problem, data = get_problems()[name], draw(name, 30_000, 0)
    error = fit_least_squares(data, 7) - problem.truth
    scale = np.abs(data.rows).max(axis=0)
    assert np.sqrt(np.mean(error[problem.seen] ** 2, axis=0) * scale**2).max() < 0.4 * data.y.std()


def test_verdicts_can_fail() -> None:
    narrow = {"reps": 200, "new": {"held": 170, "width": 1.0}}
    wide = {"reps": 200, "new": {"held": 200, "width": 4.1}}
    good = {"reps": 200, "new": {"held": 188, "width": 3.0}}
    assert check_coverage(narrow, 0.93) == ["coverage"]
    assert check_coverage(wide, 0.93) == ["width"]
    assert check_coverage(good, 0.93) == []
    assert bound_coverage(200, 200) == 1.0


def test_every_family_has_cells_and_every_problem_a_family() -> None:
    tasks = list_tasks(FAMILIES.values(), None, None)
    assert {task.family for task in tasks} == set(FAMILIES)
    assert set(get_problems()) <= {task.problem for task in tasks}
    assert len({task.key for task in tasks}) == len(tasks)


def test_a_measured_cell_stands_on_the_page(tmp_path) -> None:
    cell = measure("rare binary 2-6%", 200, 1.0, 2, None, oracle=True)
    cell |= {"family": "rare", "seconds": 1.0, "commit": "abc", "date": "2026-11-17"}
    assert cell["oracle"] >= cell["least_oracle"] > 0
    write_pages([cell], tmp_path)
    page = (tmp_path / "utility.md").read_text()
    assert "| rare binary 2-6% | 200 | 1 | 2 |" in page
    assert "Fewer than the 200" in page


def test_sites_that_differ_are_measured_against_the_best_combination_of_their_releases() -> None:
    cell = measure_sites("means differ", 2.0, 2)
    assert 0 < cell["combined"] < 5 * cell["new"]["mse"]
    limit, _ = check_error(cell, FAMILIES["sites"], {})
    assert limit == f"{1.3 * cell['combined'] / cell['ls']:.2f} (1.3 x combination)"
    worse = cell | {"new": cell["new"] | {"mse": 1.31 * cell["combined"]}}
    better = cell | {"new": cell["new"] | {"mse": 1.29 * cell["combined"]}}
    assert check_error(worse, FAMILIES["sites"], {})[1] is False
    assert check_error(better, FAMILIES["sites"], {})[1] is True


def test_a_combination_with_hardly_any_noise_is_the_mean_over_subjects() -> None:
    """At a budget that hides nothing the oracle must meet the truth: else its weights, units or designs are wrong."""
    cell = measure_sites("designs and means differ", 200.0, 1)
    assert cell["combined"] < 4 * cell["ls"]
