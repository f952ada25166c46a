"""Error, coverage and audited privacy of an entrant. The truth is here, and nowhere an entrant can look."""

from __future__ import annotations

import hashlib
import math
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.challenge.protocol import Entrant, Floats, Task
from benchmarks.utility_problems import GRID, Data, Problem, make_problems
from dpfda.audit.hypothesis_tests import clopper_pearson_low

LEVEL = 0.95
PROBLEMS = ("symmetric", "lognormal", "binary 20-80%", "scores 0-27")
ALARM = 1e-4  # probability that an honest entrant is refuted on one task
_AUDITED = 60  # subjects in the audit: few, since one person then counts most
_VISITS = 7


@dataclass(frozen=True)
class Score:
    """What the table has of one entrant and problem."""

    entrant: str
    problem: str
    task: Task
    error: float
    coverage: float | None
    half_width: float | None
    epsilon_shown: float
    refuted: bool


def make_seed(salt: str, *words: Any) -> np.random.Generator:
    """Data nobody has seen: the salt of an official table is drawn after entries are closed."""
    digest = hashlib.sha256("|".join(map(str, (salt, *words))).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def judge(
    entrant: Entrant, name: str, n: int, epsilon: float, delta: float, salt: str, *, repetitions: int, attacks: int
) -> Score:
    """One row of the table."""
    problem = make_problems()[name]
    task = Task(n, epsilon, delta, problem.y_bounds)
    errors, held, widths = [], [], []
    for repetition in range(repetitions):
        data = problem.draw(n, make_seed(salt, name, n, repetition))
        release = _release(entrant, task, data, make_seed(salt, entrant.name, name, n, epsilon, repetition))
        seen = problem.seen
        errors.append(float(np.mean((entrant.predict(release, GRID) - problem.truth)[seen] ** 2)))
        band = entrant.band(release, LEVEL, GRID)
        if band is not None:
            low, high = band
            held.append(bool(((low <= problem.truth) & (problem.truth <= high))[seen].all()))
            widths.append(float(np.mean((high - low)[seen]) / 2))
    shown, refuted = attack(
        entrant, problem, epsilon, delta, make_seed(salt, "attack", entrant.name, name, epsilon), attacks
    )
    means = (float(np.mean(held)), float(np.mean(widths))) if held else (None, None)
    return Score(entrant.name, name, task, math.sqrt(np.mean(errors)), *means, shown, refuted)


def attack(
    entrant: Entrant, problem: Problem, epsilon: float, delta: float, rng: np.random.Generator, runs: int
) -> tuple[float, bool]:
    """Epsilon that membership inference shows (95% confidence), and whether it refutes the claim.

    The attacker knows all subjects but one, who has either the lowest or the highest values that are possible. It learns
    from half of the runs and attacks with the other half, on the released curve alone.
    """
    task = Task(_AUDITED, epsilon, delta, problem.y_bounds)
    others = problem.draw(_AUDITED, rng)
    sides = []
    for value in problem.y_bounds:
        data = replace_first(others, value)
        values = [entrant.predict(_release(entrant, task, data, rng), GRID[::10]) for _ in range(2 * runs)]
        sides.append(np.array(values))
    first, second = sides
    direction = second[:runs].mean(axis=0) - first[:runs].mean(axis=0)
    spread = np.vstack([side[:runs] - side[:runs].mean(axis=0) for side in sides])
    direction = np.linalg.pinv(np.cov(spread.T) + 1e-9 * np.eye(len(direction))) @ direction
    middle = (np.median(first[:runs] @ direction) + np.median(second[:runs] @ direction)) / 2
    hits, alarms = int((second[runs:] @ direction > middle).sum()), int((first[runs:] @ direction > middle).sum())
    return shown_epsilon(hits, alarms, runs, delta, 0.05), shown_epsilon(hits, alarms, runs, delta, ALARM) > epsilon


def shown_epsilon(hits: int, alarms: int, runs: int, delta: float, level: float) -> float:
    """The least epsilon that allows these rates; wrong with probability at most `level`."""
    low = clopper_pearson_low(hits, runs, level / 2)
    high = 1 - clopper_pearson_low(runs - alarms, runs, level / 2)
    ratios = ((low - delta) / max(high, 1e-12), (1 - high - delta) / max(1 - low, 1e-12))
    return max([0.0, *(math.log(ratio) for ratio in ratios if ratio > 0)])


def replace_first(data: Data, value: float) -> Data:
    """The same subjects, but the first has this value at every visit."""
    kept = data.ids != data.ids[0]
    x = np.linspace(0, 1, _VISITS)
    ids: NDArray[np.int64] = np.concatenate([np.full(_VISITS, data.ids[0]), data.ids[kept]])
    return Data(ids, np.concatenate([x, data.x[kept]]), np.concatenate([np.full(_VISITS, value), data.y[kept]]))


def _release(entrant: Entrant, task: Task, data: Data, rng: np.random.Generator) -> Any:
    """What leaves: bytes. A release that holds a function or an open file is none."""
    y: Floats = np.clip(data.y, *task.y_bounds)
    return pickle.loads(pickle.dumps(entrant.fit(task, data.ids, data.x, y, rng)))
