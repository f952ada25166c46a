"""Claims about the error against subjects n, visits m and budget eps."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dpfda.curves.simulated import mean_2
from dpfda.reproduce.claims.claim import FAILS, HOLDS, MANY, PARTLY, UNDECIDED, Claim, compare, mark_undecided
from dpfda.reproduce.results import Results, Series
from dpfda.reproduce.trends import levelling, monotone_share

MINOR = 0.2  # a "minor" improvement: less than a fifth

Grid = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def mean_claims(results: Results) -> Iterable[Claim]:
    name = results.experiment.name
    for method in results.methods:
        yield _in_epsilon(results, method)
        for sweep, axis, word in (("visits", "m", "visits m"), ("subjects", "n", "subjects n")):
            ends = _ends(results, sweep, method, axis)
            text, seen = compare(ends)
            values = results.axis(sweep, axis)
            yield Claim(name, f"Error falls with {word} ({values[0]} to {values[-1]})", method, text, seen)
        yield _levelling(results, method, claimed=12, limits=(9.0, 15.0))
    if name == "mean-2":
        yield from _not_fourier(results)


def _in_epsilon(results: Results, method: str) -> Claim:
    pairs: list[tuple[Series, Series]] = []
    for sweep in ("visits", "subjects"):
        epsilons = results.epsilons(sweep, method)
        low, high = (results.select(sweep, method, epsilon) for epsilon in (epsilons[0], epsilons[-1]))
        pairs.extend(zip(low, high, strict=True))
    text, seen = compare(pairs, paired=True)
    why = (
        ""
        if seen in (HOLDS, UNDECIDED)
        else "where it does not, sampling already dominates the error at the smallest budget"
    )
    return Claim(results.experiment.name, "Error falls as eps grows, in every plot", method, text, seen, why)


def _ends(results: Results, sweep: str, method: str, axis: str) -> list[tuple[Series, Series]]:
    """First and last value of an axis, at every budget."""
    pairs = []
    for epsilon in results.epsilons(sweep, method):
        line = results.select(sweep, method, epsilon)
        pairs.append((line[0], line[-1]))
    return pairs


def _levelling(results: Results, method: str, *, claimed: int, limits: tuple[float, float], **where: int) -> Claim:
    m = results.axis("visits", "m")
    curves = [
        [one.mean for one in results.select("visits", method, epsilon, **where)]
        for epsilon in results.epsilons("visits", method)
    ]
    found = [levelling(m, errors, claimed) for errors in curves]
    turns, left = [one.turn for one in found], float(np.median([one.still_falls for one in found]))
    middle = float(np.median(turns))
    text = (
        f"90% of the gain from m = {m[0]} to {m[-1]} is reached at m = {middle:.1f} (median over eps; {min(turns):.1f} to "
        f"{max(turns):.1f}); from m = {claimed} to {m[-1]} the error still falls by {left:.0%} of what it is there (median)"
    )
    near = middle <= limits[1]
    seen = HOLDS if near and left < MINOR else PARTLY if near or left < MINOR else FAILS
    text, seen = mark_undecided(text, seen, min(one.errors.size for one in results.select("visits", method, **where)))
    place = "".join(f" at {key} = {value}" for key, value in where.items())
    why = "" if seen in (HOLDS, UNDECIDED) else _why_levelling(method)
    return Claim(
        results.experiment.name, f"More visits help little beyond m = {claimed}{place}", method, text, seen, why
    )


def _why_levelling(method: str) -> str:
    if method == "adaptive":
        return "sampling error and clipping radii keep falling slowly with m"
    return (
        "the absolute gain is mostly made by then, but the truncation radii keep falling like 1/sqrt(m), and the noise with "
        "them: there is no sharp turn, and relative to what is left the gain is not minor"
    )


def _not_fourier(results: Results) -> Iterable[Claim]:
    size = float(np.var(mean_2((np.arange(1000) + 0.5) / 1000)))  # of mu_2 around its own level
    for method in results.methods:
        epsilons = results.epsilons("subjects", method)
        at_best = results.select("subjects", method, epsilons[-1])[-1].mean
        at_one = results.select("subjects", method, 1.0)[-1].mean
        text = f"error {at_best:.2g} at eps = {epsilons[-1]:g} and {at_one:.2g} at eps = 1 (n = 500)"
        text += f"; the variance of mu_2 over x is {size:.2g}"
        seen = HOLDS if at_one < size else PARTLY if at_best < size else FAILS
        why = "" if seen == HOLDS else "at eps = 1 the error is larger than that of a constant"
        yield Claim(
            "mean-2", "A mean that is no Fourier polynomial is estimated satisfactorily", method, text, seen, why
        )


def heat_claims(results: Results) -> Iterable[Claim]:
    for method in results.methods:
        epsilons, ns, ms = results.epsilons("heat", method), results.axis("heat", "n"), results.axis("heat", "m")
        grid = {m: _grid(results, method, m) for m in ms}
        in_n = np.mean([monotone_share(row) for one in grid.values() for row in one.T])
        in_eps = np.mean([monotone_share(row) for one in grid.values() for row in one])
        corners = [(results.select("heat", method, epsilons[0], m=m, n=ns[0])[0],
                    results.select("heat", method, epsilons[-1], m=m, n=ns[-1])[0]) for m in ms]  # fmt: skip
        text, seen = compare(corners)
        text += f"; neighbouring cells fall in {in_n:.0%} (n) and {in_eps:.0%} (eps) of cases"
        yield Claim("heat", "For fixed m the error falls as n or eps grows", method, text, seen)
        early, late = np.median(grid[2] / grid[6]), np.median(grid[10] / grid[15])
        text = f"error ratio {early:.2f} from m = 2 to 6, {late:.2f} from 10 to 15 (median)"
        few = min(one.errors.size for one in results.select("heat", method))
        text, seen = mark_undecided(text, HOLDS if early > 1.2 and late < 1 + (early - 1) / 2 else FAILS, few)
        why = "" if seen != FAILS else "at these n and eps its error is privacy noise, which hardly depends on m"
        yield Claim("heat", "m = 2 to 6 helps clearly, m = 10 to 15 modestly", method, text, seen, why)
        yield _helps_where(method, grid[2], grid[6], few)


def _helps_where(method: str, two: Grid, six: Grid, repetitions: int) -> Claim:
    """Whether visits help most at small n and eps: the quarter of cells with the least of both against the one with most."""
    rows, columns = (-(-size // 2) for size in two.shape)
    hard, easy = (slice(0, rows), slice(0, columns)), (slice(-rows, None), slice(-columns, None))
    gains = [float(np.median((two - six)[part])) for part in (hard, easy)]
    ratios = [float(np.median((two / six)[part])) for part in (hard, easy)]
    text = (
        f"from m = 2 to 6 the error falls by {gains[0]:.2g} in the quarter of small n and eps, by {gains[1]:.2g} in "
        f"that of large ones (medians); as a ratio {ratios[0]:.2f} and {ratios[1]:.2f}"
    )
    text, seen = mark_undecided(text, HOLDS if gains[0] > gains[1] else FAILS, repetitions)
    same = ratios[0] < 1.2 * ratios[1]
    why = "in absolute terms; relative to the error it is no more than elsewhere" if seen == HOLDS and same else ""
    return Claim("heat", "Visits help most where n and eps are small", method, text, seen, why)


def _grid(results: Results, method: str, m: int) -> Grid:
    """Mean errors, one row for each n, one column for each eps."""
    ns, epsilons = results.axis("heat", "n"), results.epsilons("heat", method)
    return np.array([[results.select("heat", method, eps, m=m, n=n)[0].mean for eps in epsilons] for n in ns])


def visits_claims(results: Results) -> Iterable[Claim]:
    for method in results.methods:
        for n in results.axis("visits", "n"):
            yield _levelling(results, method, claimed=10, limits=(7.0, 13.0), n=n)
        yield _by_budget(results, method, claimed=10)


_WHY_BUDGET = {
    "published": "the error is mostly noise at every one of these budgets, and noise falls with m in the same way",
    "adaptive": "what is left at large budgets is sampling error, which falls with m too",
}


def _by_budget(results: Results, method: str, *, claimed: int) -> Claim:
    """Whether the rest that more visits bring is smaller at large budgets."""
    epsilons, m, sizes = results.epsilons("visits", method), results.axis("visits", "m"), results.axis("visits", "n")
    left = {
        epsilon: [
            levelling(m, [one.mean for one in results.select("visits", method, epsilon, n=n)], claimed).still_falls
            for n in sizes
        ]
        for epsilon in epsilons
    }
    words = ", ".join(
        " and ".join(f"{share:.0%}" for share in left[epsilon]) + f" (eps = {epsilon:g})"
        for epsilon in dict.fromkeys((epsilons[0], 1.0, epsilons[-1]))
        if epsilon in left
    )
    few = min(one.errors.size for one in results.select("visits", method))
    text = f"from m = {claimed} to {m[-1]} the error still falls by {words} at n = {' and '.join(map(str, sizes))}"
    if len(epsilons) < 2 or few < MANY // 2:
        text, seen = f"{text}; {few} repetitions of {len(epsilons)} budgets are too few to tell", UNDECIDED
    else:
        less = [rest < before for before, rest in zip(left[epsilons[0]], left[epsilons[-1]], strict=True)]
        seen = HOLDS if all(less) else PARTLY if any(less) else FAILS
    why = "" if seen in (HOLDS, UNDECIDED) else _WHY_BUDGET[method]
    return Claim("visits", f"Beyond m = {claimed} the error depends on m less for larger eps", method, text, seen, why)
