"""Public facts about an outcome, in the words that fits declare it."""

from __future__ import annotations

import pytest

from dpfda.errors import InvalidInput
from dpfda.planning.outcomes import FACTS, LAWS, find_law, guess_outcome
from dpfda.protocol.terms import OUTCOMES


def test_every_word_that_a_fit_takes_has_a_law():
    assert set(LAWS) == set(OUTCOMES)
    assert set(LAWS.values()) == set(FACTS)
    assert find_law(None) == LAWS[OUTCOMES[0]]
    with pytest.raises(InvalidInput, match="outcome must be one of 'binary', 'count', 'positive', 'score', got 'any'"):
        find_law("any")


def test_public_facts_become_guesses():
    assert guess_outcome() == guess_outcome("score") == {}
    found = guess_outcome("binary", prevalence=0.1, correlation=0.5)
    assert found["spread"] ** 2 + found["noise_sd"] ** 2 == pytest.approx(0.09)
    skewed = guess_outcome("count", (0.0, 100.0), level=10.0, variation=0.8, correlation=0.0)
    assert skewed == guess_outcome("positive", (0.0, 100.0), level=10.0, variation=0.8, correlation=0.0)
    assert skewed["noise_sd"] == pytest.approx(8.0)
    assert skewed["spread"] == 0.0


def test_a_binary_outcome_is_scaled_by_its_bounds():
    one, percent = (guess_outcome("binary", bounds, prevalence=0.2) for bounds in ((0.0, 1.0), (0.0, 100.0)))
    for name in ("spread", "noise_sd", "signal"):
        assert percent[name] == pytest.approx(100 * one[name])
    assert percent["prevalence"] == one["prevalence"] == 0.2


@pytest.mark.parametrize(
    ("outcome", "facts", "words"),
    [
        ("binary", {}, "prevalence must be given with outcome='binary', e.g. 0.2"),
        ("positive", {"level": 10.0}, "variation must be given with outcome='count' or outcome='positive', e.g. 0.8"),
        ("count", {"variation": 0.5}, "level must be given"),
        (None, {"prevalence": 0.2}, "prevalence must be left out without outcome='binary'"),
        ("score", {"level": 3.0}, "level must be left out without outcome='count' or outcome='positive'"),
        ("binary", {"prevalence": 0.2, "variation": 1.0}, "variation must be left out"),
        ("binary", {"prevalence": 1.0}, "prevalence must lie strictly between 0 and 1"),
        (
            "positive",
            {"level": 20.0, "variation": 1.0},
            "level must lie within the bounds of y, which are 0 to 10; got 20",
        ),
        ("positive", {"level": 2.0, "variation": 0.0}, "variation must be greater than 0"),
        (None, {"correlation": 2.0}, "correlation must lie between 0 and 1"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_the_argument(outcome, facts, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        guess_outcome(outcome, (0.0, 10.0), **facts)
    assert str(caught.value).replace("e.g. ", "").count(". ") == 0
