"""Claims about tuning constants, and what the theory says of silos and covariates."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import numpy as np

from dpfda.protocol.statistics import EntrywiseGradient
from dpfda.reproduce.cells import Cell, Method, plan_of
from dpfda.reproduce.claims.real_data import real_claims
from dpfda.reproduce.claims.verdicts import FAILS, HOLDS, METHODS, PARTLY, SHOWN, Claim, compare, unless_few, verdict
from dpfda.reproduce.running import Results
from dpfda.reproduce.trends import falls

_STABLE = 1.5  # "matters little": largest over smallest error within a factor of this
_SUBSTANTIAL = 0.8  # "substantially smaller": by a fifth at least
_ORDERS = (
    "its weights compare orders of variances; T^2, radii and log(1/delta) are left out, so that a noisy silo keeps a full "
    "weight wherever the order of the sampling variance is the larger one"
)
_NOT_PRINTED = {
    "eta": "0.05 here; smaller eta gives larger radii and more noise",
    "C_alpha": "1000 here; below 409 the set does not hold mu_1, and the error cannot vanish; "
    "above, it matters at eps of 1 and below only, where noise leaves the set",
}


def _sensitivity(results: Results) -> Iterable[Claim]:
    yield from _truncation(results)
    yield _stability(results, "C_T", "noise variance is T^2 times that of one round, and T is C_T log n")
    yield _stability(results, "rho", "accumulated noise is about rho/2 times that of one round")
    yield _anisotropic(results)
    for name, words in _NOT_PRINTED.items():
        text = _spread(results, name, "published")
        yield Claim("sensitivity", f"(constant not printed) {name}", "published", f"{text}; {words}", SHOWN)
    for name, words in (("width", "bounds of y 0.5 to 8 times as wide"), ("n_basis", "3 to 11 basis functions")):
        yield Claim(
            "sensitivity", f"(the user's choices) {words}", "adaptive", _spread(results, name, "adaptive"), SHOWN
        )


def _anisotropic(results: Results) -> Claim:
    """A calculation, no simulation: noise variances (sum R)^2 and r sum R^2 for the radii R of the published plan."""
    cell = next(point.cell for point in results.experiment.points if isinstance(point.cell, Cell))
    shares = {}
    for size in (3, 15):
        measure = plan_of(cell, Method("published", (1.0,), 1, n_basis=size), 1.0).rounds[0].statistics[0]
        assert isinstance(measure, EntrywiseGradient)
        radii = np.array(measure.radii)
        shares[size] = float(radii.sum() ** 2 / (size * (radii**2).sum()))
    words = " and ".join(f"{share:.3f} (r = {size})" for size, share in shares.items())
    text = f"calculated from the radii: variance of anisotropic over isotropic noise {words}"
    seen = HOLDS if max(shares.values()) < _SUBSTANTIAL else FAILS
    why = (
        "R_l = C_R (log(n/eta)/sqrt(m) + l^-alpha): the first part, the same for every entry, is by far the larger one"
    )
    claim = "Anisotropic noise is substantially smaller than isotropic noise (Section 1.1)"
    return Claim("sensitivity", claim, "published", text, seen, "" if seen == HOLDS else why)


def _errors(results: Results, sweep: str, method: str, epsilon: float) -> list[float]:
    return [one.mean for one in results.select(sweep, method, epsilon)]


def _spread(results: Results, sweep: str, method: str) -> str:
    values = results.axis(sweep, sweep)
    parts = []
    for epsilon in results.epsilons(sweep, method):
        errors = _errors(results, sweep, method, epsilon)
        parts.append(f"{max(errors) / min(errors):.2g} (eps = {epsilon:g})")
    return f"largest over smallest error for {values[0]:g} to {values[-1]:g}: " + ", ".join(parts)


def _truncation(results: Results) -> Iterable[Claim]:
    epsilons = results.epsilons("C_R", "published")
    pairs = []
    for epsilon in epsilons:
        line = results.select("C_R", "published", epsilon)
        pairs.append((line[-1], line[0]))  # errors should fall from large C_R to small
    text, seen = compare(results, pairs, paired=True)
    yield Claim("sensitivity", "A larger C_R raises the error", "published", f"from C_R = 2 to 0.25 it {text}", seen)
    added = [worse.mean - better.mean for worse, better in pairs]
    ratios = ", ".join(f"{worse.mean / better.mean:.3g} (eps = {worse.epsilon:g})" for worse, better in pairs)
    text = f"added error {added[0]:.3g} at eps = {epsilons[0]:g}, {added[-1]:.2g} at {epsilons[-1]:g}; as a ratio: {ratios}"
    shrinks = all(later < earlier for earlier, later in itertools.pairwise(added))
    why = "in absolute terms; relative to the error it is nearly the same at every eps, as noise dominates throughout"
    yield Claim(
        "sensitivity",
        "The effect of C_R is smaller for larger eps",
        "published",
        text,
        HOLDS if shrinks else FAILS,
        why,
    )


def _stability(results: Results, name: str, why: str) -> Claim:
    ratios = []
    for epsilon in results.epsilons(name, "published"):
        errors = _errors(results, name, "published", epsilon)
        ratios.append(max(errors) / min(errors))
    good = sum(ratio < _STABLE for ratio in ratios)
    seen = HOLDS if good == len(ratios) else PARTLY if good else FAILS
    claim = f"{name} matters little"
    return Claim(
        "sensitivity", claim, "published", _spread(results, name, "published"), seen, "" if seen == HOLDS else why
    )


def _gradient(x: list[float], y: list[float]) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _federated(results: Results) -> Iterable[Claim]:
    for method in METHODS:
        yield _more_silos(results, method)
        yield _splitting(results, method)
        yield _poor_silo(results, method)


def _more_silos(results: Results, method: str) -> Claim:
    pairs, gradients = [], []
    silos = results.axis("silos", "S")
    for epsilon in results.epsilons("silos", method):
        line = results.select("silos", method, epsilon)
        pairs.append((line[0], line[-1]))
        gradients.append(_gradient(silos, [one.mean for one in line]))
    text, seen = compare(results, pairs)
    text += f"; gradient in log S {np.mean(gradients):.2f} (theory -1)"
    slow = method == "published" and np.mean(gradients) > -0.8
    why = "slower than in theory: T and the radii grow with the logarithm of ALL subjects" if slow else ""
    claim = f"Error falls with S = {silos[0]} to {silos[-1]} silos"
    return Claim(results.experiment.name, claim, method, text, seen, why)


def _splitting(results: Results, method: str) -> Claim:
    silos, parts, good = results.axis("split", "S"), [], 0
    epsilons = results.epsilons("split", method)
    for epsilon in epsilons:
        line = results.select("split", method, epsilon)
        ratio = line[-1].mean / line[0].mean
        good += ratio > 1
        parts.append(f"{ratio:.3g} (eps = {epsilon:g})")
    text = (
        f"error at S = {silos[-1]} over error at S = 1: {', '.join(parts)}; theory: up to {silos[-1]} where noise rules"
    )
    few = min(one.errors.size for one in results.select("split", method))
    text, seen = unless_few(text, verdict(good, len(epsilons)), few)
    return Claim("federated", "Splitting 2000 subjects over silos costs (FDP against CDP)", method, text, seen)


def _poor_silo(results: Results, method: str) -> Claim:
    """Three good silos, against the same three and one with a tenth of the budget."""
    parts, good = [], 0
    epsilons = results.epsilons("budgets", method)
    for epsilon in epsilons:
        without = results.select("budgets", method, epsilon, profile=(1, 1, 1))[0]
        with_it = results.select("budgets", method, epsilon, profile=(0.1, 1, 1, 1))[0]
        harmed = falls(with_it.errors, without.errors).p_value < 0.01
        good += not harmed
        parts.append(f"{with_it.mean / without.mean:.2f} (eps = {epsilon:g})")
    text = "error with the poor silo over error without it: " + ", ".join(parts)
    text += f"; not worse at level 0.01 for {good} of {len(epsilons)} budgets"
    seen = verdict(good, len(epsilons))
    why = "" if seen == HOLDS or method == "adaptive" else _ORDERS
    return Claim("federated", "A silo with a tenth of the budget does no harm", method, text, seen, why)


def _covariates(results: Results) -> Iterable[Claim]:
    for method in METHODS:
        yield _dimension(results, method)
        pairs = [
            (line[0], line[-1])
            for epsilon in results.epsilons("subjects", method)
            for line in [results.select("subjects", method, epsilon)]
        ]
        text, seen = compare(results, pairs)
        ns = results.axis("subjects", "n")
        yield Claim("covariates", f"Error falls with n = {ns[0]} to {ns[-1]} (d = 2)", method, text, seen)
        yield _more_silos(results, method)


def _dimension(results: Results, method: str) -> Claim:
    sizes = results.axis("dimension", "d")
    pairs, gradients = [], []
    for epsilon in results.epsilons("dimension", method):
        line = results.select("dimension", method, epsilon)
        pairs.append((line[-1], line[0]))
        gradients.append(_gradient([d + 1 for d in sizes], [one.mean for one in line]))
    text, seen = compare(results, pairs)
    text = (
        f"from d = {sizes[-1]} to {sizes[0]} it {text}; gradient in log(d + 1) {np.mean(gradients):.2f} (theory 1 to 2)"
    )
    return Claim("covariates", "Error grows with the number d of covariates", method, text, seen)


MORE: dict[str, Callable[[Results], Iterable[Claim]]] = {
    "sensitivity": _sensitivity,
    "federated": _federated,
    "covariates": _covariates,
    "real-data": real_claims,
}
