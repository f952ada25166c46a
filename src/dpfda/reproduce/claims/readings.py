"""What each reading is worth beyond the paper's claims: what it really costs, and how often the paper's picture appears."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from dpfda.reproduce.cells import Cell, Method, make_plan
from dpfda.reproduce.claims.claim import FAILS, HOLDS, PARTLY, SHOWN, Claim
from dpfda.reproduce.readings import READINGS
from dpfda.reproduce.results import Results
from dpfda.reproduce.trends import lines_with_break

PATTERN = {1.0: 1, 3.0: 2, 4.0: 2, 8.0: 1}  # lines at each budget in the paper's figure
_NAME, _NOMINAL = "readings", 8.0


def reading_facts(results: Results) -> Iterable[Claim]:
    """Cost, pattern and size of the error under every reading."""
    for name in results.axis("pattern", "reading"):
        yield _cost(results, name)
        yield _pattern(results, name)
        first = results.axis("pattern", "n")[0]
        seed = results.axis("pattern", "seed")[0]
        error = results.select("pattern", "published", 1.0, reading=name, n=first, seed=seed)[0].mean
        text = f"{error:.3g}"
        yield Claim(_NAME, f"(size) squared error at n = {first}, eps = 1", "published", text, SHOWN, reading=name)
        yield from _long_descents(results, name)


def _cost(results: Results, name: str) -> Claim:
    """The exact epsilon of what a reading does, where it says 8."""
    sizes = results.axis("pattern", "n")
    found = []
    for n in (sizes[0], sizes[-1]):
        cell = Cell(n, max(1, round(n ** (1 / 3))))
        plan = make_plan(cell, Method("published", (_NOMINAL,), 1, n_basis=3, reading=name), _NOMINAL)
        found.append(READINGS[name].exact_epsilon(plan, plan.silos[0].name))
    text = (
        f"exact epsilon {found[0]:.3g} (n = {sizes[0]}) to {found[1]:.3g} (n = {sizes[-1]}) for a nominal {_NOMINAL:g}"
    )
    kept = max(found) <= _NOMINAL * (1 + 1e-9)
    why = "" if kept else "no silo runs it: it exists for this comparison only"
    claim = "The algorithm is (eps, delta)-DP as claimed (Theorem 2.1)"
    return Claim(_NAME, claim, "published", text, HOLDS if kept else FAILS, why, reading=name)


def _pattern(results: Results, name: str) -> Claim:
    seeds, seen = results.axis("pattern", "seed"), 0
    for seed in seeds:
        counts = {}
        for epsilon in PATTERN:
            line = results.select("pattern", "published", epsilon, reading=name, seed=seed)
            n = np.log([one.coordinates["n"] for one in line])
            counts[epsilon] = len(lines_with_break(n, np.log([one.mean for one in line])))
        seen += counts == PATTERN
    text = f"in {seen} of {len(seeds)} runs of the whole experiment (other seeds)"
    verdict = HOLDS if seen > len(seeds) / 2 else PARTLY if seen else FAILS
    claim = "One line at eps = 1 and 8, two at eps = 3 and 4: how often"
    return Claim(_NAME, claim, "published", text, verdict, reading=name)


def _long_descents(results: Results, name: str) -> Iterable[Claim]:
    """The paper does not print its range of C_T: stability from its own default, 4, on."""
    for part in results.parts:
        if (part.experiment.name, part.experiment.reading) != ("sensitivity", name):
            continue
        ratios = []
        for epsilon in part.epsilons("C_T", "published"):
            errors = [one.mean for one in part.select("C_T", "published", epsilon) if one.coordinates["C_T"] >= 4]
            ratios.append(f"{max(errors) / min(errors):.2g}")
        budgets = ", ".join(f"{epsilon:g}" for epsilon in part.epsilons("C_T", "published"))
        claim = f"(its range of C_T is not printed) largest over smallest error from C_T = 4 to 8 at eps = {budgets}"
        yield Claim(_NAME, claim, "published", ", ".join(ratios), SHOWN, reading=name)


def read_claim(claim: Claim, reading: str) -> Claim:
    """A claim of one of the paper's experiments, as a row under a reading; reasons were written for ours."""
    sentence = f"{claim.experiment}: {claim.claim}"
    return dataclasses.replace(claim, claim=sentence, experiment=_NAME, reading=reading, why="")
