"""Round 0: where the gradient rounds begin."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import definite, walk

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.start import assume_covariance, join_blocks, lengthen, start


def test_the_first_iterate_is_the_level() -> None:
    plan, steps = walk((2000,), epsilon=8.0, n_basis=5)
    state = start(plan, steps[0][2])
    assert state.iterate[0] == state.start[0] == state.level.value
    assert not state.iterate[1:].any()
    assert state.filled == pytest.approx(1.0, abs=0.01)
    assert state.two_valued < 0.5
    assert (state.asked, state.posterior, state.result) == ((), None, None)
    assert np.linalg.eigvalsh(state.open_now[1]).min() > 0


def test_silos_of_one_design_share_their_information() -> None:
    plan, steps = walk((300, 900), n_basis=3)
    state = start(plan, steps[0][2])
    assert set(state.informations) == {"s0", "s1"}
    assert all(each is state.pooled for each in state.informations.values())


def test_estimates_live_in_more_functions_than_gradients() -> None:
    for name in ("free-ends", "cosine"):
        basis = make_basis(name, 5)
        longer, u = lengthen(basis), np.linspace(0, 1, 50)
        assert longer.size > basis.size
        np.testing.assert_allclose(longer.evaluate_unit(u)[:, :5], basis.evaluate_unit(u), atol=1e-9)
    assert lengthen(make_basis("cosine", 1)).size == 1


def test_an_assumed_covariance_goes_with_the_square_of_the_unit() -> None:
    _, steps = walk((300,), n_basis=4)
    information = steps[0][3].pooled
    one, two = (assume_covariance(information, unit) for unit in (0.1, 0.2))
    np.testing.assert_allclose(two, 4 * one)
    assert np.linalg.eigvalsh(one).min() > 0


def test_blocks_are_joined_along_the_diagonal() -> None:
    rng = np.random.default_rng(0)
    blocks = [definite(rng, 2), definite(rng, 2)]
    joined = join_blocks(blocks)
    np.testing.assert_array_equal(joined[2:, 2:], blocks[1])
    assert not joined[:2, 2:].any()
