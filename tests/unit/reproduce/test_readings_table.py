"""Claims against readings: the table, the facts about each reading and the picture, from made-up errors."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from dpfda.reproduce import catalogue
from dpfda.reproduce.claims.claim import FAILS, HOLDS, PARTLY, SHOWN, Claim
from dpfda.reproduce.claims.judge import judge_claims
from dpfda.reproduce.claims.readings import PATTERN, read_claim, reading_facts
from dpfda.reproduce.figures.readings import draw_readings
from dpfda.reproduce.readings import READINGS
from dpfda.reproduce.readings_table import compare_readings, list_verdicts, tell_readings
from dpfda.reproduce.results import Results


@pytest.fixture(scope="module")
def results() -> Results:
    """Errors with the paper's own pattern of lines under reading C, straight lines under the others."""
    experiment, rng, found = catalogue.load_experiment("readings", quick=True), np.random.default_rng(1), []
    turns = {1.0: 1e9, 3.0: 1400.0, 4.0: 1000.0, 8.0: 1.0}
    for point in experiment.points:
        arrays = {}
        for method in point.cell.methods:
            n, levels = float(point.cell.n), []
            for epsilon in method.epsilons:
                turn = turns.get(epsilon, 1000.0) if method.reading == "C" else 1e9
                levels.append(n**-2.0 if n < turn else n**-1.0 / turn)
            noise = 0.002 * rng.normal(size=(method.repetitions, len(levels)))
            arrays[method.name] = np.array(levels) * np.exp(noise)
        found.append(arrays)
    return Results(experiment, found)


def test_the_pattern_is_found_where_it_is(results: Results) -> None:
    often = {claim.reading: claim for claim in reading_facts(results) if "how often" in claim.claim}
    assert often["C"].verdict == HOLDS
    assert often["A"].verdict == FAILS
    assert set(often) == set(READINGS)
    assert PATTERN == {1.0: 1, 3.0: 2, 4.0: 2, 8.0: 1}


def test_every_claim_has_a_verdict_for_every_reading(results: Results) -> None:
    rows = list_verdicts(judge_claims(results))
    assert len(rows) > 15
    assert all(set(row) == set(READINGS) for row in rows.values())
    words, table, details = compare_readings(judge_claims(results))
    assert all(f"| {name} |" in words for name in READINGS)
    assert table.count("\n") == len(rows) + 1
    assert all(claim.measured in details for claim in judge_claims(results))
    assert draw_readings(results).axes


def test_a_row_says_where_it_comes_from() -> None:
    claim = read_claim(Claim("mean-1", "Error falls", "published", "it does", SHOWN, "because"), "F")
    assert (claim.experiment, claim.claim, claim.reading, claim.why) == ("readings", "mean-1: Error falls", "F", "")


def test_a_verdict_says_what_other_readings_find() -> None:
    claim = Claim("dense", "It falls", "published", "1", FAILS)
    verdicts = {"A": FAILS, "B": PARTLY, "C": HOLDS, "F": HOLDS, "literal": FAILS}
    rows = list_verdicts(
        [
            Claim("readings", "dense: It falls", "published", "1", verdict, reading=name)
            for name, verdict in verdicts.items()
        ]
    )
    assert tell_readings(claim, rows) == "holds under C, F; in part under B; does not hold under literal"
    assert tell_readings(Claim("dense", "It falls", "adaptive", "1", HOLDS), rows) == ""
    assert tell_readings(Claim("dense", "It rises", "published", "1", HOLDS), rows) == ""
    same = list_verdicts(
        [Claim("readings", "dense: It falls", "published", "1", FAILS, reading=name) for name in "ABC"]
    )
    assert tell_readings(claim, same) == "the same under every reading"
