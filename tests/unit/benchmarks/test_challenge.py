"""The challenge: an honest entrant is not refuted, one that claims too much is, and nobody is handed the truth."""

from __future__ import annotations

import inspect
import re
import shlex
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from benchmarks.challenge.__main__ import PAGE, main
from benchmarks.challenge.entrants import ENTRANTS
from benchmarks.challenge.judge import attack, judge, make_seed, replace_first, shown_epsilon
from benchmarks.challenge.protocol import Entrant, Task
from benchmarks.utility_problems import Data, make_problems


def entrant_named(name: str) -> Entrant:
    return next(each for each in ENTRANTS if each.name == name)


def test_a_claim_that_is_false_is_refuted_and_an_honest_one_is_not() -> None:
    problem = make_problems()["symmetric"]
    shown, refuted = attack(
        entrant_named("least squares, hardly any noise"), problem, 1.0, 1e-5, make_seed("test", "cheat"), 60
    )
    assert refuted
    assert shown > 1
    assert attack(entrant_named("AdaSSP"), problem, 1.0, 1e-5, make_seed("test", "honest"), 60) == (
        pytest.approx(0, abs=1),
        False,
    )


@pytest.mark.parametrize("name", ["dpfda default", "binned means"])
def test_every_kind_of_entrant_is_judged(name: str) -> None:
    score = judge(entrant_named(name), "symmetric", 300, 4.0, 1e-5, "test", repetitions=2, attacks=4)
    assert 0 < score.error < 3
    assert not score.refuted
    assert (score.coverage is None) == (name == "binned means")


def test_an_entrant_gets_public_facts_and_data_alone() -> None:
    assert list(inspect.signature(Entrant.fit).parameters) == ["self", "task", "ids", "x", "y", "rng"]
    assert {field.name for field in fields(Task)} == {"n", "epsilon", "delta", "y_bounds", "points"}


def test_the_salt_decides_the_data() -> None:
    assert make_seed("a", 1).random() == make_seed("a", 1).random()
    assert make_seed("a", 1).random() != make_seed("b", 1).random()


def test_the_neighbour_differs_in_one_subject() -> None:
    data = Data(np.array([0, 0, 1, 2]), np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, 2.0, 3.0, 4.0]))
    changed = replace_first(data, 9.0)
    assert set(changed.ids) == {0, 1, 2}
    assert (changed.y[changed.ids == 0] == 9).all()
    assert changed.y[changed.ids > 0].tolist() == [3.0, 4.0]


def test_the_shown_epsilon_is_that_of_randomised_response() -> None:
    """With 75% and 25%, randomised response has epsilon = log 3; the bound is below it and comes near."""
    assert 0.9 * np.log(3) < shown_epsilon(75_000, 25_000, 100_000, 0.0, 0.05) < np.log(3)
    assert shown_epsilon(50, 50, 100, 0.0, 0.05) == 0.0


def test_whoever_follows_the_readme_enters_and_leaves_the_table_alone(tmp_path: Path, monkeypatch, capsys) -> None:
    readme = (PAGE.parent / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    (command,) = re.findall(r"^```sh\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "benchmarks.challenge"]
    (tmp_path / "flat.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    table = PAGE.read_bytes()
    main([*words[3:], "--n", "200", "--repetitions", "2", "--attacks", "20", "--problems", "symmetric"])
    row = capsys.readouterr().out
    assert row.startswith("| symmetric | 200 | 1 | a level with noise | ")
    assert row.endswith("| no band |  | 0.00 | not refuted |\n")
    assert PAGE.read_bytes() == table


def test_an_entrant_that_only_asks_for_less_noise_is_refuted(tmp_path: Path, monkeypatch) -> None:
    """The README's entrant with a hundredth of its noise: the attack tells that the claim is false."""
    (code,) = re.findall(r"^```python\n(.*?)^```", (PAGE.parent / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert code.count("sensitivity / mu_for") == 1
    (tmp_path / "louder.py").write_text(code.replace("sensitivity / mu_for", "0.01 * sensitivity / mu_for"))
    monkeypatch.syspath_prepend(tmp_path)
    from louder import ENTRANT

    shown, refuted = attack(ENTRANT, make_problems()["symmetric"], 1.0, 1e-5, make_seed("test", "louder"), 60)
    assert refuted
    assert shown > 1
