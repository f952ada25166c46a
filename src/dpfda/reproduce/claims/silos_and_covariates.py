"""Claims that follow from the theory of several silos and of varying coefficients; the paper has no experiments on them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dpfda.reproduce.cells import Cell
from dpfda.reproduce.claims.claim import HOLDS, SHOWN, Claim, compare, mark_undecided, verdict
from dpfda.reproduce.results import Results
from dpfda.reproduce.trends import falls

_ORDERS = (
    "its weights compare orders of variances; T^2, radii and log(1/delta) are left out, so that a noisy silo keeps a full "
    "weight wherever the order of the sampling variance is the larger one"
)


def _gradient(x: list[float], y: list[float]) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def silo_claims(results: Results) -> Iterable[Claim]:
    for method in results.methods:
        yield _more_silos(results, method)
        yield _splitting(results, method)
        yield _poor_silo(results, method)
        if results.epsilons("local", method):
            yield _local(results, method)
        if results.epsilons("between", method):
            yield _between(results, method)


def _more_silos(results: Results, method: str) -> Claim:
    pairs, gradients = [], []
    silos = results.axis("silos", "S")
    for epsilon in results.epsilons("silos", method):
        line = results.select("silos", method, epsilon)
        pairs.append((line[0], line[-1]))
        gradients.append(_gradient(silos, [one.mean for one in line]))
    text, seen = compare(pairs)
    text += f"; gradient in log S {np.mean(gradients):.2f} (theory -1)"
    slow = method == "published" and np.mean(gradients) > -0.8
    why = "slower than in theory: T and the radii grow with the logarithm of ALL subjects" if slow else ""
    claim = f"Error falls with S = {silos[0]} to {silos[-1]} silos"
    return Claim(results.experiment.name, claim, method, text, seen, why)


def _local(results: Results, method: str) -> Claim:
    """One curve for each silo."""
    silos = results.axis("local", "S")
    lines = {epsilon: results.select("local", method, epsilon) for epsilon in results.epsilons("local", method)}
    text, seen = compare([(line[0], line[-1]) for line in lines.values()])
    errors = ", ".join(f"{line[-1].mean:.2g} (eps = {epsilon:g})" for epsilon, line in lines.items())
    text += f"; squared error at S = {silos[-1]}: {errors}"
    claim = f"Under local privacy, one curve for each silo, error falls with S = {silos[0]} to {silos[-1]}"
    return Claim("federated", claim, method, text, seen)


def _between(results: Results, method: str) -> Claim:
    """What sites with means of their own add to the error, over tau^2/S."""
    sizes, epsilon = results.axis("between", "between"), results.epsilons("between", method)[-1]
    alike, *others = results.select("between", method, epsilon)
    cells = (point.cell for point in results.experiment.points if point.sweep == "between")
    silos = next(len(cell.profile) for cell in cells if isinstance(cell, Cell))
    parts = [
        f"{(one.mean - alike.mean) / (one.coordinates['between'] ** 2 / silos):.2f} (tau = {one.coordinates['between']:g})"
        for one in others
    ]
    text = f"added error over tau^2/S at eps = {epsilon:g}: {', '.join(parts)}; without differences {alike.mean:.2g}"
    text += f"; at tau = {sizes[-1]:g} {others[-1].mean:.2g}"
    claim = f"(open in the paper) {silos} sites whose means differ by tau around the common one"
    return Claim("federated", claim, method, text, SHOWN)


def _splitting(results: Results, method: str) -> Claim:
    silos, parts, good = results.axis("split", "S"), [], 0
    epsilons = results.epsilons("split", method)
    for epsilon in epsilons:
        line = results.select("split", method, epsilon)
        ratio = line[-1].mean / line[0].mean
        good += ratio > 1
        parts.append(f"{ratio:.3g} (eps = {epsilon:g})")
    text = f"error at S = {silos[-1]} over error at S = 1: {', '.join(parts)}"
    text += f"; theory: up to {silos[-1]} where noise dominates"
    few = min(one.errors.size for one in results.select("split", method))
    text, seen = mark_undecided(text, verdict(good, len(epsilons)), few)
    return Claim("federated", "Splitting 2000 subjects over silos costs (FDP against CDP)", method, text, seen)


def _poor_silo(results: Results, method: str) -> Claim:
    """Three good silos, against the same three with the same noise and one with a tenth of the budget."""
    parts, good = [], 0
    epsilons = results.epsilons("budgets", method)
    for epsilon in epsilons:
        without = results.select("budgets", method, epsilon, profile=(1, 1, 1))[0]
        with_it = results.select("budgets", method, epsilon, profile=(1, 1, 1, 0.1))[0]
        harmed = falls(with_it.errors, without.errors, paired=True).p_value < 0.01
        good += not harmed
        parts.append(f"{with_it.mean / without.mean:.2f} (eps = {epsilon:g})")
    text = "error with the poor silo over error without it: " + ", ".join(parts)
    text += f"; not worse at level 0.01 for {good} of {len(epsilons)} budgets"
    seen = verdict(good, len(epsilons))
    why = _ORDERS if seen != HOLDS and method == "published" else ""
    return Claim("federated", "A silo with a tenth of the budget does no harm", method, text, seen, why)


def covariate_claims(results: Results) -> Iterable[Claim]:
    for method in results.methods:
        yield _dimension(results, method, "dimension", "")
        yield _dimension(results, method, "process", ", simulated with a random process, which the model does not have")
        pairs = [
            (line[0], line[-1])
            for epsilon in results.epsilons("subjects", method)
            for line in [results.select("subjects", method, epsilon)]
        ]
        text, seen = compare(pairs)
        ns = results.axis("subjects", "n")
        yield Claim("covariates", f"Error falls with n = {ns[0]} to {ns[-1]} (d = 2)", method, text, seen)
        yield _more_silos(results, method)


def _dimension(results: Results, method: str, sweep: str, words: str) -> Claim:
    sizes = results.axis(sweep, "d")
    pairs, gradients = [], []
    for epsilon in results.epsilons(sweep, method):
        line = results.select(sweep, method, epsilon)
        pairs.append((line[-1], line[0]))
        gradients.append(_gradient([d + 1 for d in sizes], [one.mean for one in line]))
    text, seen = compare(pairs)
    text = (
        f"from d = {sizes[-1]} to {sizes[0]} it {text}; gradient in log(d + 1) {np.mean(gradients):.2f} (theory 1 to 2)"
    )
    return Claim("covariates", f"Error grows with the number d of covariates{words}", method, text, seen)
