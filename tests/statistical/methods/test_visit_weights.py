"""Sicker people come more often: means over subjects and over visits differ, and each fit holds its own. Seeds are fixed.

y has a level of .7 b for subject b ~ N(0, 1), who has 1 + Poisson(exp(.9 + .6 b)) visits: over visits, at most 8 of a
subject, the mean is .265 above that over subjects. A fit's level errs by .035 (one sd, measured on other seeds), so that
the mean of 12 fits errs by .01: a bound of .05 is passed by a right fit but for a chance of 1e-6, and a fit of the other
estimand is 20 sds away.
"""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import Curves, PrivateMean, PrivateVaryingCoefficients

pytestmark = pytest.mark.filterwarnings("ignore")
CAP, FITS = 8, 12
GRID = np.linspace(0, 1, 41)
SHAPE = 0.5 * np.sin(2 * np.pi * GRID)
PUBLIC = {"domain": (0, 1), "y_bounds": (-5, 5), "delta": 1e-5}
WEIGHTS = {"subject": {}, "visit": {"weight": "visit", "visit_cap": CAP}}


def draw(n, seed, rate=0.9, *, group=False):
    """Ids, x, y, groups, levels and numbers of visits; the group comes more often, too, and has a larger spread."""
    rng = np.random.default_rng(seed)
    own, member = rng.normal(size=n), rng.integers(0, 2, n) * int(group)
    visits = 1 + rng.poisson(np.exp(rate + 0.6 * own + 0.3 * member))
    level = 0.7 * own * (1 + 0.5 * member)
    ids = np.repeat(np.arange(n), visits)
    x = rng.random(ids.size)
    y = 0.5 * np.sin(2 * np.pi * x) + level[ids] + 0.4 * member[ids] * x + 0.3 * rng.normal(size=ids.size)
    return ids, x, y, member, level, visits


def average(weight, level, visits):
    return np.average(level, weights=np.minimum(visits, CAP) if weight == "visit" else None)


@pytest.fixture(scope="module")
def levels():
    """Both estimands, over two million subjects: sd .0006."""
    *_, level, visits = draw(2_000_000, 99)
    return {weight: average(weight, level, visits) for weight in WEIGHTS}


@pytest.mark.parametrize("weight", WEIGHTS)
def test_each_fit_holds_its_own_estimand(weight, levels) -> None:
    assert levels["visit"] - levels["subject"] == pytest.approx(0.265, abs=0.005)
    other = levels["visit" if weight == "subject" else "subject"]
    truth, apart, held = SHAPE + levels[weight], [], []
    for seed in range(FITS):
        curves = Curves.from_long(*draw(2000, 100 + seed)[:3])
        found = PrivateMean(epsilon=1, random_state=seed, **PUBLIC, **WEIGHTS[weight]).fit(curves)
        low, high = found.band(0.95, x=GRID)
        apart.append(float(np.mean(found.predict(GRID) - truth)))
        held.append(bool(((low <= truth) & (truth <= high)).all()))
    assert abs(np.mean(apart)) < 0.05
    assert abs(np.mean(apart) + levels[weight] - other) > 0.2
    assert sum(held) >= FITS - 2, "bands of 95%: three misses in 12 have a chance of 2%, with a level of exactly 95%"


@pytest.mark.parametrize("weight", WEIGHTS)
def test_least_squares_holds_the_same_estimand(weight, levels) -> None:
    """sd of the level's error at n = 20000: .006; the bound is at five of these."""
    curves = Curves.from_long(*draw(20_000, 7)[:3])
    found = PrivateMean(method="nonprivate", domain=(0, 1), y_bounds=(-5, 5), **WEIGHTS[weight]).fit(curves)
    assert float(np.mean(found.predict(GRID) - SHAPE)) == pytest.approx(levels[weight], abs=0.03)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_sites_whose_subjects_come_more_or_less_often_are_put_together(weight) -> None:
    """Three sites with 2.3, 3.9 and 6.4 visits a subject: a pooled scale of gradients would be wrong at each.

    Errors of the level have an sd of .02, of the mean of 8 fits .007; the estimands are .2 apart.
    """
    rates = (0.1, 0.9, 1.5)
    everyone = [draw(400_000, 50 + number, rate)[-2:] for number, rate in enumerate(rates)]
    level, visits = (np.concatenate(each) for each in zip(*everyone, strict=True))
    truth, other = (average(each, level, visits) for each in (weight, "visit" if weight == "subject" else "subject"))
    assert abs(truth - other) > 0.2
    apart = []
    for seed in range(8):
        sites = [Curves.from_long(*draw(2000, 300 + 3 * seed + k, rate)[:3]) for k, rate in enumerate(rates)]
        found = PrivateMean(epsilon=1, random_state=seed, **PUBLIC, **WEIGHTS[weight]).fit(sites)
        apart.append(float(np.mean(found.sites_.mean()(GRID) - SHAPE - truth)))
    assert abs(np.mean(apart)) < 0.05


@pytest.mark.parametrize("weight", WEIGHTS)
def test_coefficient_functions_hold_their_own_estimands(weight) -> None:
    """The effect of the group over visits is .1 larger than over subjects. Errors have sds of .03, of 8 fits .01."""
    *_, member, level, visits = draw(1_000_000, 99, group=True)
    expected = {}
    for each in WEIGHTS:
        own = [average(each, level[member == k], visits[member == k]) for k in (0, 1)]
        expected[each] = np.array([own[0], own[1] - own[0] + 0.2])
    assert expected["visit"][1] - expected["subject"][1] > 0.08
    apart = []
    for seed in range(8):
        ids, x, y, members, _, _ = draw(4000, 500 + seed, group=True)
        curves = Curves.from_long(ids, x, y, np.column_stack([np.ones(4000), members])[ids])
        model = PrivateVaryingCoefficients(
            epsilon=2, random_state=seed, design_bounds=[(0, 1)], **PUBLIC, **WEIGHTS[weight]
        )
        apart.append(model.fit(curves).predict_coefficients(GRID).mean(axis=0) - expected[weight])
    assert (np.abs(np.mean(apart, axis=0)) < 0.05).all()
