"""Claims about the phase transition in the dense regime: gradients of log error over log n, and their breaks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dpfda.reproduce.claims.claim import FAILS, HOLDS, PARTLY, SHOWN, UNDECIDED, Claim, mark_undecided
from dpfda.reproduce.results import Results
from dpfda.reproduce.trends import Line, lines_with_break, sorted_gradients

PAPER_BUDGETS = (1.0, 3.0, 4.0, 8.0)  # those whose gradients the paper averages
_WHY_BREAKS = (
    "the curves bend slowly from one mixture of noise and sampling error to another; what is found as a break is where a "
    "bend happens to be largest, not the end of a regime"
)
_WHY_LINES = (
    "the lines depend on what the paper leaves open: where the noise stands, what it is divided by, the logarithm in the "
    "radii, and eta (experiment `readings`); the test for a break is ours"
)
_WHY_BUDGET = {
    "published": "sampling error, which does not depend on eps, is a part of the error at the larger n",
    "adaptive": "at small n it shrinks instead of following the noise, at large n sampling error is a part of its error",
}
BETWEEN = -1.3  # the default method's gradients are told apart here


def dense_lines(results: Results, method: str, sweep: str = "dense", **where: float) -> dict[float, list[Line]]:
    """Lines through log error over log n for every budget of at least 1 (below it, for the default method, all)."""
    found = {}
    for epsilon in results.epsilons(sweep, method):
        series = results.select(sweep, method, epsilon, **where)
        if len(series) < 2 or (method == "published" and epsilon < 1):
            continue
        n = np.log([one.coordinates["n"] for one in series])
        found[epsilon] = lines_with_break(n, np.log([one.mean for one in series]))
    return found


def _average(lines: Iterable[list[Line]]) -> tuple[list[float], list[float]]:
    steep: list[float] = []
    flat: list[float] = []
    for pair in lines:
        private, plain = sorted_gradients(pair)
        steep += private
        flat += plain
    return steep, flat


def _mean_of(values: Sequence[float]) -> str:
    if not values:
        return "none (0 lines)"
    return f"{np.mean(values):.2f} ({len(values)} lines, {min(values):.2f} to {max(values):.2f})"


def _judge(chosen: Sequence[float], every: Sequence[float], paper: float) -> str:
    """Holds where the average is within 0.15 of the paper's and no line is further than 0.3 away from it."""
    if chosen and abs(np.mean(chosen) - paper) < 0.15:
        return HOLDS if max(abs(value - paper) for value in chosen) < 0.3 else PARTLY
    return PARTLY if every and abs(np.mean(every) - paper) < 0.15 else FAILS


def dense_claims(results: Results) -> Iterable[Claim]:
    """The rows of the phase transition."""
    fitted = dense_lines(results, "published")
    chosen = {epsilon: lines for epsilon, lines in fitted.items() if epsilon in PAPER_BUDGETS}
    (steep, flat), (all_steep, all_flat) = _average(chosen.values()), _average(fitted.values())
    for name, one, every, paper, theory in (
        ("private", steep, all_steep, -1.81, -2),
        ("non-private", flat, all_flat, -1.06, -1),
    ):
        text = f"{_mean_of(one)} over eps = 1, 3, 4, 8; {_mean_of(every)} over all eps from 1 to 8"
        seen = _judge(one, every, paper)
        why = _why_gradient(name) if seen != HOLDS else ""
        sentence = f"Average fitted gradient in the {name} dense regime is {paper} (theory {theory})"
        yield Claim("dense", sentence, "published", text, seen, why)
    yield from _breaks(fitted)
    yield _in_budget(results, "published", 1.0, 3.0)
    yield _independence(results)
    yield from _dense_constants(results)
    if "adaptive" not in results.methods:
        return
    yield _dense_adaptive(results)
    yield _in_budget(results, "adaptive", *sorted(results.epsilons("dense", "adaptive"))[:2])


def _why_gradient(name: str) -> str:
    if name == "private":
        return "noise falls like T^2 R^2/n^2 with T and R growing like log n"
    return (
        "where noise no longer dominates, what is left of the start, (1 - rho)^(2T), falls like n^-0.84 at C_T = 4, and "
        "some noise remains at n = 3600: the gradient is a mixture"
    )


def _breaks(fitted: dict[float, list[Line]]) -> Iterable[Claim]:
    words = ", ".join(f"eps = {eps:g}: {len(lines)}" for eps, lines in fitted.items() if eps in PAPER_BUDGETS)
    wanted = {1.0: 1, 3.0: 2, 4.0: 2, 8.0: 1}
    good = sum(len(fitted[eps]) == count for eps, count in wanted.items() if eps in fitted)
    yield Claim(
        "dense", "One line at eps = 1 and 8, two at eps = 3 and 4", "published", f"lines (break at level 0.01): {words}",
        HOLDS if good == 4 else PARTLY if good == 3 else FAILS,
        "" if good == 4 else _WHY_LINES,
    )  # fmt: skip
    turns = [(eps, float(np.exp(lines[1].start))) for eps, lines in fitted.items() if len(lines) == 2]
    if len(turns) >= 5:
        correlation = float(np.corrcoef(*np.array(turns).T)[0, 1])
        text = f"{len(turns)} budgets with a break; correlation of its n with eps {correlation:.2f}"
        seen = HOLDS if correlation < -0.3 else FAILS
    else:
        text, seen = f"only {len(turns)} budgets with a break: too few to tell", UNDECIDED
    why = "" if seen != FAILS else _WHY_BREAKS
    yield Claim("dense", "The break comes at smaller n for larger eps", "published", text, seen, why)


def _in_budget(results: Results, method: str, low: float, high: float) -> Claim:
    """The other exponent of the private dense rate: of eps, at every n, between two budgets where noise dominates."""
    epsilons = [epsilon for epsilon in results.epsilons("dense", method) if low <= epsilon <= high]
    gradients = []
    for n in results.axis("dense", "n"):
        errors = [results.select("dense", method, epsilon, n=n)[0].mean for epsilon in epsilons]
        gradients.append(float(np.polyfit(np.log(epsilons), np.log(errors), 1)[0]))
    text = f"gradient in log eps from {low:g} to {high:g}: {_mean_of(gradients)}"
    seen = HOLDS if abs(float(np.mean(gradients)) + 2) < 0.3 else PARTLY if np.mean(gradients) < BETWEEN else FAILS
    text, seen = mark_undecided(text, seen, min(one.errors.size for one in results.select("dense", method)))
    why = "" if seen in (HOLDS, UNDECIDED) else _WHY_BUDGET[method]
    return Claim("dense", "In the private dense regime the error falls like eps^-2", method, text, seen, why)


def _independence(results: Results) -> Claim:
    """What a non-private regime means: there the budget makes no difference any more."""
    n = results.axis("dense", "n")[-1]
    errors = {eps: results.select("dense", "published", eps, n=n)[0].mean for eps in PAPER_BUDGETS}
    reference = results.select("dense", "nonprivate", n=n)[0].mean
    ratios = [errors[eps] / errors[8.0] for eps in (3.0, 4.0)]
    text = (
        f"at n = {n} the error at eps = 3 and 4 is {ratios[0]:.2g} and {ratios[1]:.2g} times that at eps = 8, which is "
    )
    text += f"{errors[8.0] / reference:.2g} times that of least squares"
    seen = HOLDS if max(ratios) < 1.2 else FAILS
    why = (
        ""
        if seen == HOLDS
        else "privacy noise still rules up to n = 3600: a flatter gradient alone is no non-private regime"
    )
    return Claim("dense", "Past the break the error no longer depends on eps", "published", text, seen, why)


def _dense_constants(results: Results) -> Iterable[Claim]:
    for eta in results.axis("eta", "eta"):
        steep, flat = _average(dense_lines(results, "published", "eta", eta=eta).values())
        text = f"private {_mean_of(steep)}, non-private {_mean_of(flat)}, all eps from 1 to 8"
        yield Claim("dense", f"(constant not printed) the gradients with eta = {eta:g}", "published", text, SHOWN)


def _dense_adaptive(results: Results) -> Claim:
    lines = dense_lines(results, "adaptive")
    overall = {epsilon: np.mean([line.gradient for line in pair]) for epsilon, pair in lines.items()}
    text = ", ".join(f"eps = {epsilon:g}: {value:.2f}" for epsilon, value in overall.items())
    seen = HOLDS if overall[max(overall)] > BETWEEN > overall[min(overall)] else FAILS
    text, seen = mark_undecided(text, seen, min(one.errors.size for one in results.select("dense", "adaptive")))
    sentence = "The same for the default method: gradient near -2 at small eps, near -1 at large eps"
    return Claim("dense", sentence, "adaptive", text, seen)
