"""Odd sites round by round: nobody is judged by less than there is."""

from __future__ import annotations

import numpy as np
from adaptive_pieces import walk

from dpfda.methods.adaptive.judging import count_clipped, judge, judge_first
from dpfda.methods.adaptive.odd_sites import LongShares, Oddness
from dpfda.methods.adaptive.rounds import learn


def test_with_fewer_than_three_silos_nobody_is_judged() -> None:
    plan, steps = walk((300, 900), n_basis=3)
    assert judge_first(plan, steps[0][2]) == (None, Oddness())
    state = learn(plan, None, 0, steps[0][2])
    assert judge(plan, state) == Oddness()


def test_silos_that_are_alike_are_judged_after_every_round_and_count_in_full() -> None:
    _, steps = walk((400, 500, 600, 300), epsilon=4.0, n_basis=3)
    for _, _, releases, after in steps:
        assert set(after.oddness.probability) == set(releases)
        assert after.oddness.trust == {}
    last = steps[-1][3]
    assert last.clipped.weights.keys() == last.long.weights.keys() == {"s0", "s1", "s2", "s3"}


def test_a_silo_that_misses_a_round_is_judged_by_the_others_of_its_answers() -> None:
    _, steps = walk((400, 500, 600), absent=3, n_basis=3)
    assert set(steps[-1][3].oddness.probability) == {"s0", "s1", "s2"}


def test_companions_count_gradients_that_are_not_clipped() -> None:
    """Silos of one kind, a large budget: their shares are alike."""
    plan, steps = walk((2000, 2000, 2000), epsilon=8.0, n_basis=3)
    _, question, releases, _ = steps[2]
    found = count_clipped(plan, LongShares(), 2, releases, float(question["radius"][0]))
    values = found.read(tuple(releases), np.zeros(3)).values[:, 0]
    assert abs(values).max() < 0.2
