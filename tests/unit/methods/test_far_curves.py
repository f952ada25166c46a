"""Curves far away on the side where bounds leave room: where they are looked for, and what noise leaves open of them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dpfda.methods.adaptive.far_curves import FarCurves, Room, judge_one_sided
from dpfda.methods.adaptive.lengths import AtBounds, LengthLaw, first_weights
from dpfda.protocol.statistics import LENGTH_CELLS
from dpfda.silo.sums import find_octaves

NEAR = Room(
    unit=5.0, near=0.1, doubt=0.02, at_bound=0.8
)  # a curve at the nearer bound is 0.5 long, at the other one 9.5
LONGEST = 40.0


def count(lengths):
    return np.bincount(find_octaves(np.asarray(lengths)), minlength=LENGTH_CELLS) / len(lengths)


def law_of(lengths, sd=1e-3):
    return LengthLaw.start(first_weights(AtBounds(3.0, 0.0)), 500.0, LONGEST).observe(count(lengths), sd)


BULK = 0.5 * np.sqrt(np.random.default_rng(0).chisquare(4, 4000) / 4)


def test_there_is_room_on_one_side_only_near_a_bound() -> None:
    assert judge_one_sided(1.0) == judge_one_sided(0.7) == 0.0  # the other bound is less than twice as far away
    assert judge_one_sided(0.4) == pytest.approx(1.0)
    assert judge_one_sided(0.0) == 1.0
    assert 0 < judge_one_sided(0.5) < 1


def test_curves_are_expected_between_both_bounds_and_the_fewer_the_further_away() -> None:
    shares = NEAR.expect(law_of(BULK))
    octaves = np.flatnonzero(shares)
    assert octaves[0] == find_octaves(np.array([1.5]))[0]  # from twice the distance of the nearer bound
    assert octaves[-1] == find_octaves(np.array([12.0]))[0]
    assert (np.diff(octaves) == 1).all()
    assert (np.diff(shares[octaves]) < 0).all()
    fewer = dataclasses.replace(NEAR, at_bound=0.0).expect(law_of(BULK))
    assert (fewer[octaves] < shares[octaves]).all()
    np.testing.assert_allclose(dataclasses.replace(NEAR, part=0.1).expect(law_of(BULK)), 0.1 * shares)


def test_a_bulk_in_the_middle_of_its_bounds_hides_nobody() -> None:
    middle = dataclasses.replace(NEAR, near=0.9)
    found = middle.observe(count(BULK), 0.05, law_of(BULK))
    assert found.take(np.array([0.1, 1.0])).tolist() == [0.0, 0.0]


def test_a_bulk_far_from_both_bounds_hides_nobody() -> None:
    """The nearer bound is four octaves away from what curves are."""
    assert NEAR.suspect(law_of(BULK / 20)) == pytest.approx(0.0, abs=1e-3)
    assert NEAR.suspect(law_of(BULK)) > 0.95


def test_zeros_that_come_and_go_hide_fewer_curves_than_curves_that_stay_at_zero() -> None:
    """Values at the bound count in full if the bulk's curves are as far from the mean as the bound is."""
    stays, comes_and_goes = (NEAR.expect(law_of(BULK * longer)).sum() for longer in (1.0, 0.4))
    never = dataclasses.replace(NEAR, at_bound=0.0).expect(law_of(BULK)).sum()
    assert stays > 5 * never
    assert comes_and_goes == pytest.approx(never, rel=0.1)


def test_noise_leaves_open_what_it_hides_and_no_more_than_is_expected() -> None:
    radii = np.array([0.5, 2.0, 8.0, LONGEST])
    loud, usual, quiet = (NEAR.observe(count(BULK), sd, law_of(BULK)).take(radii) for sd in (10.0, 0.03, 1e-4))
    assert (loud[:-1] > usual[:-1]).all()
    assert (usual[:-1] > 5 * quiet[:-1]).all()
    assert loud[-1] == usual[-1] == quiet[-1] == 0.0  # nothing is longer
    assert (np.diff(usual) < 0).all()
    expected = FarCurves(NEAR.unit, NEAR.suspect(law_of(BULK)) * NEAR.expect(law_of(BULK)) ** 2, LONGEST)
    np.testing.assert_allclose(loud, expected.take(radii), rtol=0.01)


def test_it_is_the_shift_of_the_level_that_clipping_makes() -> None:
    """A share of curves with lengths all over an octave, each as long as a constant's gradient."""
    share, radius, lengths = 0.04, 2.0, 2.0 ** np.linspace(2.001, 2.999, 1000)
    found = FarCurves(NEAR.unit, (share * count(lengths)) ** 2, LONGEST)
    true = share * (lengths - radius).mean() / NEAR.unit
    assert found.take(np.array([radius]))[0] == pytest.approx(true, rel=0.01)


def test_curves_that_are_seen_and_not_in_the_law_are_not_forgotten() -> None:
    seen = count(BULK)
    far = int(find_octaves(np.array([6.0]))[0])
    more = seen + 0.1 * (np.arange(LENGTH_CELLS) == far)
    law = law_of(BULK)
    radius = np.array([1.0])
    assert NEAR.observe(more, 0.03, law).take(radius)[0] > 1.5 * NEAR.observe(seen, 0.03, law).take(radius)[0]
