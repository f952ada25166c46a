"""What closes the gap between the published method and least squares, step by step: `python -m benchmarks.ablation`.

Writes docs/ablation.md and its picture. Data and constants are those of the paper's simulations (mu_1, three Fourier
functions, delta = 1e-3). Each step keeps the guarantee and adds to the one before. The first and the last steps run the
code of `dpfda reproduce`; those between are written here in plain numpy, and differ from it in the named point only.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.stamp import stamp
from dpfda._typing import Floats
from dpfda.privacy.accounting import mu_for
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import EntrywiseGradient
from dpfda.reproduce.cells import Cell, Method, make_plan, run_methods, squared_errors
from dpfda.reproduce.published_runs import Moments, curve_moments
from dpfda.silo.prepared import prepare

DOCS = Path(__file__).parents[1] / "docs"
SIZES, EPSILONS, M = (250, 1000), (0.5, 1.0, 4.0, 8.0), 10
SEED = 8  # the steps were designed on seed 7, see HISTORY
STEPS = {
    "published": "Algorithm 1 as its proofs have it: disjoint batches, Lemma 1's noise",
    "exact accounting": "the same batches, noise from the exact budget of (eps, delta) instead of Lemma 1",
    "all curves in every round": "`variant='full-batch'`: no curve is used once only; T rounds share the budget",
    "ellipsoid": "a curve's gradient is shortened to an ellipsoid instead of cut to a box, whose corners no curve reaches",
    "growing shares": "eight steps of 1/2 instead of T of 1/10, with shares of the budget that double: iterating is free",
    "private radius": "the ellipsoid has 1.6 median lengths, searched for twice with noisy counts (5% of the budget)",
    "default method": "start at the level, radius in every round, design moments, shrinkage: `method='adaptive'`",
    "no privacy": "least squares with the same basis",
}
TRIED = {
    "histogram radius, steps of 1/10": "the first design: after the ellipsoid, a radius from two noisy histograms",
    "counted radius, steps of 1/10": "the radius of the table above, but at the paper's steps and equal shares",
}
HISTORY = (
    "**How these steps were chosen.** This is the second design. The first had no growing shares and learnt the radius from "
    "noisy histograms right after the ellipsoid; on seed 7 that step made the error 11, 6.7, 1.2 and 1.2 times LARGER at "
    "n = 250 (eps = 0.5, 1, 4, 8) and 1.1 to 1.3 times at n = 1000. Growing shares were then put before it and the "
    "histograms replaced by counts, both after that result was seen. The tables are from another seed. The order matters, "
    "the factor of a step is its factor in this order, and a private radius by itself need not be a gain: below are the "
    "steps that were tried and left."
)
_BINS = 40
_SEARCHES, _COUNTS, _SHARE, _MEDIANS, _SMALLEST = 2, 5, 0.05, 1.6, 1 / 64
_FAST_STEP, _FAST_ROUNDS = 0.5, 8


@dataclass(frozen=True)
class Descent:
    """Projected descent without the projection, which does not bind here; `reuse`, `shape` and `fast` are the steps."""

    plan: Plan
    mu: float
    reuse: bool
    shape: str  # box, ellipsoid, private or histogram
    fast: bool = False

    def run(self, data: Moments, rng: np.random.Generator) -> Floats:
        """Coefficients (repetitions, q)."""
        (statistic,) = self.plan.rounds[0].statistics
        assert isinstance(statistic, EntrywiseGradient)
        radii, rounds = np.array(statistic.radii), _FAST_ROUNDS if self.fast else len(self.plan.rounds)
        step = _FAST_STEP if self.fast else self.plan.step
        repetitions, n, q = data.vectors.shape
        batch, iterate = (n if self.reuse else n // rounds), np.zeros((repetitions, q))
        limit = np.full(repetitions, np.sqrt(radii.max() * radii.sum()))
        for index, mu in enumerate(self._budgets(rounds)):
            chosen = slice(0, n) if self.reuse else slice(index * batch, (index + 1) * batch)
            gradients = np.einsum("rikl,rl->rik", data.matrices[:, chosen], iterate) - data.vectors[:, chosen]
            if self.learns and index in range(0, rounds, -(-rounds // _SEARCHES)):
                limit = (self._search if self.shape == "private" else self._bin)(gradients, radii, rng)
            mean, sd = self._bound(gradients, radii, limit)
            noise = sd * rng.standard_normal((repetitions, q)) * 2 / (batch * mu)
            iterate = iterate - step * (mean + noise)
        return iterate

    @property
    def learns(self) -> bool:
        """Whether a part of the budget goes to the radius."""
        return self.shape in ("private", "histogram")

    def _budgets(self, rounds: int) -> Floats:
        """The mu of every round."""
        if not self.reuse:
            return np.full(rounds, self.mu)
        shares = 1 / (1 - _FAST_STEP) ** np.arange(rounds) if self.fast else np.ones(rounds)
        left = 1 - (_SHARE if self.learns else 0.0)
        return np.asarray(self.mu * np.sqrt(left * shares / shares.sum()))

    def _bound(self, gradients: Floats, radii: Floats, limit: Floats) -> tuple[Floats, Floats]:
        """The mean of bounded gradients, and the scale of the noise: that of half the change which one curve can make."""
        weights = radii / radii.sum()
        if self.shape == "box":
            return np.clip(gradients, -radii, radii).mean(axis=1), np.sqrt(radii * radii.sum())
        lengths = np.sqrt((gradients**2 / weights).sum(axis=-1, keepdims=True))
        shortened = gradients * np.minimum(1.0, limit[:, None, None] / np.maximum(lengths, 1e-300))
        return shortened.mean(axis=1), limit[:, None] * np.sqrt(weights)

    def _search(self, gradients: Floats, radii: Floats, rng: np.random.Generator) -> Floats:
        """1.6 median lengths by bisection on noisy counts of shorter curves, each of which one curve changes by one."""
        weights, most = radii / radii.sum(), float(radii.sum())
        lengths = np.sqrt((gradients**2 / weights).sum(axis=-1))
        sd = 1 / (self.mu * np.sqrt(_SHARE / (_SEARCHES * _COUNTS)))
        low, high = np.full(len(lengths), np.log(_SMALLEST * most)), np.full(len(lengths), np.log(most))
        for _ in range(_COUNTS):
            middle = (low + high) / 2
            count = (lengths < np.exp(middle)[:, None]).sum(axis=1) + sd * rng.standard_normal(len(lengths))
            longer = count < lengths.shape[1] / 2
            low, high = np.where(longer, middle, low), np.where(longer, high, middle)
        return np.asarray(np.minimum(_MEDIANS * np.exp((low + high) / 2), np.sqrt(radii.max() * most)))

    def _bin(self, gradients: Floats, radii: Floats, rng: np.random.Generator) -> Floats:
        """The same by a noisy histogram of log lengths; replacing a curve changes two cells by one."""
        weights, most = radii / radii.sum(), float(radii.sum())
        lengths = np.sqrt((gradients**2 / weights).sum(axis=-1))
        edges = np.geomspace(1e-3 * most, most, _BINS)
        counts = np.stack([np.bincount(row, minlength=_BINS + 1) for row in np.searchsorted(edges, lengths)])
        sd = np.sqrt(2) / (self.mu * np.sqrt(_SHARE / _SEARCHES))
        below = np.cumsum(counts + sd * rng.standard_normal(counts.shape), axis=1)
        median = np.argmax(below >= gradients.shape[1] / 2, axis=1)
        return np.asarray(_MEDIANS * edges[np.minimum(median, _BINS - 1)])


def measure(n: int, repetitions: int, adaptive_repetitions: int) -> dict[str, Floats]:
    """Mean squared errors of every step, one for each budget."""
    published = Method("published", EPSILONS, repetitions, n_basis=3)
    batch = Method("full-batch", EPSILONS, repetitions, n_basis=3, reading="full-batch")
    others = (
        Method("adaptive", EPSILONS, adaptive_repetitions, n_basis=3),
        Method("nonprivate", EPSILONS, repetitions, n_basis=3),
    )
    cell = Cell(n, M, seed=SEED, methods=(published, batch, *others))
    first, reused, default, free = (errors.mean(axis=0) for errors in run_methods(cell))
    found = {"published": first, "all curves in every round": reused, "default method": default, "no privacy": free}
    plans = [make_plan(cell, published, epsilon) for epsilon in EPSILONS]
    basis, scaling = plans[0].basis, plans[0].scaling
    data = Moments.stack([curve_moments(prepare(cell.curves(k)[0], basis, scaling), basis) for k in range(repetitions)])
    between = {
        "exact accounting": (False, "box", False),
        "ellipsoid": (True, "ellipsoid", False),
        "growing shares": (True, "ellipsoid", True),
        "private radius": (True, "private", True),
        "histogram radius, steps of 1/10": (True, "histogram", False),
        "counted radius, steps of 1/10": (True, "private", False),
    }
    for step, (reuse, shape, fast) in between.items():
        errors = []
        for index, (plan, epsilon) in enumerate(zip(plans, EPSILONS, strict=True)):
            rng = np.random.default_rng([SEED, n, index, len(step)])
            fitted = Descent(plan, mu_for(epsilon, cell.delta), reuse, shape, fast).run(data, rng)
            errors.append(float(squared_errors(fitted[:, None, :], basis, cell.truth).mean()))
        found[step] = np.array(errors)
    return {step: found[step] for step in (*STEPS, *TRIED)}


def draw(results: dict[int, dict[str, Floats]]) -> None:
    """docs/images/ablation.png."""
    from matplotlib.figure import Figure

    from dpfda.reproduce.figures.panels import colours

    figure = Figure(figsize=(11, 4.6), dpi=130, layout="constrained")
    for axes, (n, found) in zip(figure.subplots(1, len(results), sharey=True), results.items(), strict=True):
        for index, (epsilon, colour) in enumerate(zip(EPSILONS, colours(len(EPSILONS)), strict=True)):
            axes.plot([found[step][index] for step in STEPS], "o-", color=colour, ms=4, label=f"ε = {epsilon:g}")
        axes.set_xticks(range(len(STEPS)), list(STEPS), rotation=25, ha="right", fontsize=8)
        axes.set(yscale="log", title=f"n = {n}, m = {M}", ylabel="mean squared $L^2$ error")
        axes.grid(alpha=0.25, which="both")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(DOCS / "images" / "ablation.png")


def write_page(results: dict[int, dict[str, Floats]], repetitions: int, adaptive: int, seconds: float) -> str:
    """docs/ablation.md."""
    parts = [
        "# From the published method to the default one, step by step",
        f"Written by `python -m benchmarks.ablation` ({seconds:.0f} s, {repetitions} repetitions, {adaptive} of the "
        "default method); do not edit. The paper's own simulation (mu_1, r = 3, m = 10, delta = 1e-3), the same data for "
        "every step. "
        "Each step keeps (eps, delta) and adds to the one before.",
        "![Error after each step](images/ablation.png)",
        "| step | what changes |\n|---|---|\n" + "\n".join(f"| {step} | {words} |" for step, words in STEPS.items()),
    ]
    parts += [_write_table(n, {step: found[step] for step in STEPS}) for n, found in results.items()]
    parts += [
        HISTORY,
        "| tried | what |\n|---|---|\n" + "\n".join(f"| {step} | {words} |" for step, words in TRIED.items()),
    ]
    for n, found in results.items():
        first = {"ellipsoid": found["ellipsoid"]}
        parts += [_write_table(n, {**first, step: found[step]}) for step in TRIED]
    return "\n\n".join(parts) + "\n"


def _write_table(n: int, found: dict[str, Floats]) -> str:
    head = " | ".join(f"eps = {epsilon:g}" for epsilon in EPSILONS)
    lines = [f"| n = {n}: squared error (times the step before) | {head} |", "|---" * (len(EPSILONS) + 1) + "|"]
    before: Floats | None = None
    for step, errors in found.items():
        cells = [f"{error:.3g}" for error in errors]
        if before is not None:
            cells = [f"{cell} ({ratio:.2g})" for cell, ratio in zip(cells, errors / before, strict=True)]
        lines.append(f"| {step} | " + " | ".join(cells) + " |")
        before = errors
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--adaptive-repetitions", type=int, default=100)
    options, begun = parser.parse_args(), time.monotonic()
    results = {n: measure(n, options.repetitions, options.adaptive_repetitions) for n in SIZES}
    draw(results)
    page = write_page(results, options.repetitions, options.adaptive_repetitions, time.monotonic() - begun)
    (DOCS / "ablation.md").write_text(page)
    stamp(DOCS / "ablation.md")
    print(page)


if __name__ == "__main__":
    main()
