"""All rounds as one measurement, all silos as one likelihood: algebra against the textbook."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from adaptive_pieces import definite

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.asymmetry import Bias
from dpfda.methods.adaptive.covariates import assume_no_covariates
from dpfda.methods.adaptive.design import fit_design
from dpfda.methods.adaptive.evidence import (
    Answer,
    Asked,
    Measured,
    ReadRounds,
    measure_silo,
    pool_silos,
    spread_bias,
    weigh_measurements,
)
from dpfda.methods.adaptive.information import build_information
from dpfda.methods.adaptive.shape import Coordinates
from dpfda.methods.adaptive.weights import MeanWeight

SIZE = 4
BASIS = make_basis("free-ends", SIZE)
INFORMATION = build_information(
    BASIS, BASIS, fit_design(make_basis("cosine", 1), None), assume_no_covariates(), MeanWeight.of_share(1.0)
)
SURE = np.zeros(SIZE), np.zeros((SIZE, SIZE))
SHARES = np.eye(SIZE) / 2


def bias(size, mean=(0.0, 0.0)):
    """Of a size, along two coordinates half of it each."""
    return Bias(np.asarray(mean), np.full(2, size / 2), size)


def ask(iterate, kept=1.0, excess=0.0, seed=0):
    rng = np.random.default_rng(seed)
    coordinates = Coordinates.of(np.eye(1), definite(rng, SIZE), np.eye(SIZE))
    return Asked(iterate, coordinates, 1.0, kept * np.eye(SIZE), bias(excess), bias(2 * excess))


def read(asked):
    return ReadRounds.of(asked, SHARES)


def answer(number, asked, truth, sd=1e-3, kept=1.0):
    """What a silo without noise would say: the whitened, clipped mean gradient, up to its sign."""
    return Answer(number, kept * asked.coordinates.whitener @ INFORMATION.matrix @ (truth - asked.iterate), sd)


@pytest.mark.parametrize("kept", [1.0, 0.6])
def test_answers_without_error_give_back_b_theta(kept) -> None:
    """At any iterates, in any coordinates, whatever clipping kept."""
    truth = np.array([0.2, -0.1, 0.05, 0.3])
    asked = [ask(np.zeros(SIZE), kept), ask(np.array([0.1, 0.0, 0.1, 0.0]), kept, seed=1)]
    answers = [answer(k, each, truth, kept=kept) for k, each in enumerate(asked)]
    found = measure_silo(read(asked), answers, INFORMATION, np.zeros((SIZE, SIZE)), SURE)
    np.testing.assert_allclose(found.value, INFORMATION.matrix @ truth, atol=1e-9)


def test_rounds_count_by_their_noise_and_noise_adds_up_as_in_the_textbook() -> None:
    """Without doubt and bias: inverse variances, and the covariance of the weighted mean."""
    asked = [ask(np.zeros(SIZE)), ask(np.zeros(SIZE), seed=1)]
    answers = [Answer(0, np.ones(SIZE), 0.1), Answer(1, -np.ones(SIZE), 0.02)]
    sure = INFORMATION.__class__(
        INFORMATION.matrix, INFORMATION.degrees, np.zeros_like(INFORMATION.errors), INFORMATION.law, INFORMATION.weight
    )
    found = measure_silo(read(asked), answers, sure, np.zeros((SIZE, SIZE)), SURE)
    covariances = [
        each.noise_sd**2 * asked[each.round].coordinates.inverse @ asked[each.round].coordinates.inverse.T
        for each in answers
    ]
    pooled = np.linalg.inv(sum(np.linalg.inv(one) for one in covariances))
    np.testing.assert_allclose(found.noise, pooled, rtol=1e-4, atol=1e-8)
    values = [asked[each.round].coordinates.inverse @ each.value for each in answers]
    expected = pooled @ sum(np.linalg.inv(one) @ value for one, value in zip(covariances, values, strict=True))
    np.testing.assert_allclose(found.value, expected, rtol=1e-3, atol=1e-6)
    assert not found.bias.any()


def test_a_bias_that_rounds_share_does_not_average_out() -> None:
    asked = [ask(np.zeros(SIZE), excess=0.1) for _ in range(4)]
    one, four = (
        measure_silo(read(asked), [answer(k, asked[k], np.zeros(SIZE), 0.5) for k in range(rounds)], INFORMATION,
                     np.zeros((SIZE, SIZE)), SURE)
        for rounds in (1, 4)
    )  # fmt: skip
    assert np.trace(four.noise) == pytest.approx(np.trace(one.noise) / 4, rel=0.05)
    assert np.trace(four.bias) > 0.7 * np.trace(one.bias)


def test_a_band_believes_in_more_bias() -> None:
    asked = [ask(np.zeros(SIZE), excess=0.1)]
    given = [answer(0, asked[0], np.zeros(SIZE))], INFORMATION, np.zeros((SIZE, SIZE)), SURE
    usual, band = (measure_silo(ReadRounds.of(asked, SHARES, for_band=each), *given) for each in (False, True))
    assert np.trace(band.bias) == pytest.approx(4 * np.trace(usual.bias))


def test_a_silo_that_missed_a_round_is_read_with_the_rounds_that_it_answered() -> None:
    asked = [ask(np.full(SIZE, 0.1 * k), excess=0.1, seed=k) for k in range(3)]
    given = INFORMATION, np.zeros((SIZE, SIZE)), (np.full(SIZE, 0.2), 0.01 * np.eye(SIZE))
    answers = [answer(k, asked[k], np.zeros(SIZE), 0.5) for k in (0, 2)]
    found = measure_silo(read(asked), answers, *given)
    alone = measure_silo(read([asked[0], asked[2]]), [answers[0], replace(answers[1], round=1)], *given)
    for each, other in zip(vars(found).values(), vars(alone).values(), strict=True):
        np.testing.assert_allclose(each, other, rtol=1e-12)


def test_a_bias_that_is_known_is_taken_off() -> None:
    """What clipping took along two coordinates, and what usually goes with it in the others."""
    truth, pull = np.array([0.2, -0.1, 0.05, 0.3]), (0.03, -0.02)
    asked = ask(np.zeros(SIZE), excess=1e-6)
    asked = replace(asked, bias=replace(asked.bias, mean=np.array(pull)))
    taken, _ = asked.bias.root(spread_bias(asked.coordinates, SHARES))
    np.testing.assert_allclose(taken[:2], pull)
    whole = answer(0, asked, truth)
    found = measure_silo(
        read([asked]), [replace(whole, value=whole.value - taken)], INFORMATION, np.zeros((SIZE, SIZE)), SURE
    )
    np.testing.assert_allclose(found.value, INFORMATION.matrix @ truth, atol=1e-9)


def test_one_silo_is_generalised_least_squares() -> None:
    rng = np.random.default_rng(2)
    parts = [definite(rng, SIZE) for _ in range(4)]
    measured = Measured(rng.normal(size=SIZE), *parts)
    data = pool_silos({"a": measured}, {"a": INFORMATION})
    weight = np.linalg.inv(sum(parts))
    expected = INFORMATION.matrix.T @ weight @ INFORMATION.matrix
    np.testing.assert_allclose(data.rows.T @ data.rows, expected, atol=1e-8)
    np.testing.assert_allclose(data.rows.T @ data.y, INFORMATION.matrix.T @ weight @ measured.value, atol=1e-8)


def test_noise_of_silos_averages_out_and_what_they_share_does_not() -> None:
    noisy = Measured(np.zeros(SIZE), np.eye(SIZE), *(np.zeros((SIZE, SIZE)),) * 3)
    biased = Measured(np.zeros(SIZE), 1e-9 * np.eye(SIZE), np.zeros((SIZE, SIZE)), np.eye(SIZE), np.zeros((SIZE, SIZE)))
    for measured, gain in ((noisy, 2.0), (biased, 1.0)):
        one, two = (
            pool_silos(dict.fromkeys(names, measured), dict.fromkeys(names, INFORMATION)).rows for names in ("a", "ab")
        )
        np.testing.assert_allclose(two.T @ two, gain * one.T @ one, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("designs", [1, 2, 3])
def test_silos_with_designs_of_their_own_are_one_likelihood(designs) -> None:
    """Whether there are fewer rows than coefficients or more."""
    rng = np.random.default_rng(3)
    own = [replace(INFORMATION, matrix=rng.normal(size=(SIZE, 2 * SIZE))) for _ in range(designs)]
    informations = {name: own[k % designs] for k, name in enumerate("abcd")}
    measured = {
        name: Measured(rng.normal(size=SIZE), *(definite(rng, SIZE) for _ in range(4))) for name in informations
    }
    weights, _ = weigh_measurements(measured)
    precision = sum(informations[name].matrix.T @ weights[name] @ informations[name].matrix for name in measured)
    score = sum(informations[name].matrix.T @ weights[name] @ measured[name].value for name in measured)
    data = pool_silos(measured, informations)
    assert len(data.rows) == min(designs, 2) * SIZE
    np.testing.assert_allclose(data.rows.T @ data.rows, precision, atol=1e-9)
    np.testing.assert_allclose(data.rows.T @ data.y, score, atol=1e-9)
