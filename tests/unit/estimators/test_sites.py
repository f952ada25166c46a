"""Sites that differ, through the public interface and against a plain simulation of the model."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import Curves, PrivateMean, Silo
from dpfda.errors import InvalidInput, NotPrivateWarning
from dpfda.estimators.sites import Sites

pytestmark = pytest.mark.filterwarnings("ignore")
GRID = np.linspace(0, 1, 41)


def truth(x):
    return np.sin(3 * np.asarray(x))


def make_silos(shifts, sizes, epsilon=2.0, seed=0):
    rng, silos = np.random.default_rng(seed), []
    for number, (shift, n) in enumerate(zip(shifts, sizes, strict=True)):
        ids, x = np.repeat(np.arange(n), 5), rng.random(5 * n)
        y = truth(x) + shift + 0.4 * rng.normal(size=n)[ids] + 0.4 * rng.normal(size=5 * n)
        silos.append(Silo(Curves.from_long(ids, x, y), epsilon=epsilon, delta=1e-5, name=f"site {number}"))
    return silos


def fit(silos, seed=1):
    with pytest.warns(NotPrivateWarning):
        return PrivateMean(domain=(0, 1), y_bounds=(-4, 5), random_state=seed).fit(silos)


def test_one_silo_has_no_sites() -> None:
    assert fit(make_silos([0.0], [300])).sites_ is None


def test_sites_that_differ_are_told_apart_and_the_band_of_a_new_one_is_wide() -> None:
    shifts, sizes = [-0.8, -0.2, 0.1, 0.5, 0.9, -0.4], [600, 800, 700, 900, 500, 650]
    sites = fit(make_silos(shifts, sizes)).sites_
    assert isinstance(sites, Sites)
    assert sites.probability > 0.99
    assert 0.3 < sites.between_sd[0] < 1.3  # the shifts have an sd of 0.6
    for number, shift in enumerate(shifts):
        low, high = sites.curve(f"site {number}").band(0.99, x=GRID)
        assert ((low <= truth(GRID) + shift) & (truth(GRID) + shift <= high)).all()
    of_subjects = np.average(shifts, weights=sizes) + truth(GRID)
    low, high = sites.mean("subjects").band(0.99, x=GRID)
    assert ((low <= of_subjects) & (of_subjects <= high)).all()
    new, common = (curve.band(0.95, x=GRID) for curve in (sites.new_site(), sites.mean("sites")))
    assert (new[1] - new[0]).mean() > 1.5 * (common[1] - common[0]).mean()
    assert set(sites.to_frame()["site"]) >= {"site 0", "a new site"}


def test_a_small_site_borrows_from_sites_that_are_alike() -> None:
    """Over 5 seeds its own curve errs by far less than its fit alone."""
    together, alone = [], []
    for seed in range(5):
        silos = make_silos([0.0] * 8, [60, *[500] * 7], seed=seed)
        together.append(fit(silos, seed).sites_.curve("site 0")(GRID) - truth(GRID))
        alone.append(fit(make_silos([0.0], [60], seed=seed), seed).predict(GRID) - truth(GRID))
    assert np.mean(np.square(together)) < 0.4 * np.mean(np.square(alone))


def test_an_unknown_site_is_refused_by_name() -> None:
    sites = fit(make_silos([0.0, 0.0], [200, 200])).sites_
    with pytest.raises(InvalidInput, match="name must be one of the sites 'site 0', 'site 1', got 'site 7'"):
        sites.curve("site 7")
    with pytest.raises(InvalidInput, match="over must be one of"):
        sites.mean("hospitals")
