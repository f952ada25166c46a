"""Phase-transition boundaries of the appendix, as data; all up to constants and logarithms.

The four tables list the same five crossings (A)-(E) for the four problems (the paper letters only
the first table; the letters are carried over). The cost-of-privacy table and the list of regimes
for the VCM add the ENVELOPE ``m = curves^(1/alpha)``: there the private sparse and the non-private dense term
meet only at the epsilon of (D); for more budget the private sparse term has already lost, so the
envelope is a sufficient, not a sharp, end of its region ((E) is the sharp one).

The sixth pair, non-private sparse against private dense, is compared in the proof of Theorem 2 but
in none of the tables, and rightly: where these two are equal, one of the others is at least as large (so
the pair never decides the rate). It is kept here with ``decisive=False``.

Every printed boundary was checked against the crossing of its two rates, and all twenty agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dpfda import _validate
from dpfda.errors import InvalidInput
from dpfda.planning.theory.monomials import Variable
from dpfda.planning.theory.rates import crossing
from dpfda.planning.theory.setting import Privacy, Problem, TermName, check_alpha, check_at_least_one, check_dimension

Label = Literal["A", "B", "C", "D", "E", "envelope", "proof"]

PAIRS: dict[Label, tuple[TermName, TermName, Variable]] = {
    "A": ("private sparse", "private dense", "m"),
    "B": ("non-private sparse", "non-private dense", "m"),
    "C": ("private sparse", "non-private sparse", "epsilon"),
    "D": ("private dense", "non-private dense", "epsilon"),
    "E": ("private sparse", "non-private dense", "epsilon"),
    "envelope": ("private sparse", "non-private dense", "m"),
    "proof": ("private dense", "non-private sparse", "epsilon"),
}
"""The two terms that meet, the one that dominates BELOW the boundary first, and the boundary variable."""


@dataclass(frozen=True)
class Boundary:
    """Where two terms of a rate exchange their order.

    `below` is the larger of the two for smaller values of `variable`, `above` for larger ones.
    `formula` is a Python expression in n, m, S, d, epsilon and alpha. `decisive` tells whether the
    exchange can be one of the two largest terms, so that the dominating term changes.
    """

    table: str
    label: Label
    problem: Problem
    privacy: Privacy
    variable: Variable
    below: TermName
    above: TermName
    formula: str
    decisive: bool = True

    def value(
        self,
        *,
        alpha: float,
        n: float,
        m: float | None = None,
        S: float = 1,
        d: float = 1,
        epsilon: float | None = None,
    ) -> float:
        """Value of the boundary variable; a value given for that variable itself is not used."""
        check_alpha(alpha)
        known: dict[Variable, float] = {"n": n, "S": S, "d": d}
        if m is not None and self.variable != "m":
            known["m"] = m
        for name, size in known.items():
            check_at_least_one(name, size)
        check_dimension(self.problem, d)
        if self.label == "envelope":
            epsilon = self._crossing("D", alpha, known)
        if epsilon is not None and self.variable != "epsilon":
            known["epsilon"] = _validate.positive("epsilon", epsilon)
        return self._crossing(self.label, alpha, known)

    def _crossing(self, label: Label, alpha: float, known: dict[Variable, float]) -> float:
        below, above, variable = PAIRS[label]
        return crossing(self.problem, self.privacy, below, above, variable, alpha=alpha).at(known)


_TABLES: dict[tuple[Problem, Privacy], str] = {
    ("mean", "cdp"): "phase transitions, mean under CDP (table_transition_boundary)",
    ("mean", "fdp"): "phase transitions, mean under FDP (table_transition_boundary_fdp_mean)",
    ("vcm", "cdp"): "phase transitions, VCM under CDP (table_transition_boundary_cdp_vcm)",
    ("vcm", "fdp"): "phase transitions, VCM under FDP (table_transition_boundary_fdp_vcm)",
}
_COST_TABLE = "cost of privacy, mean under CDP (table_transition_boundary_5)"
_VCM_REGIMES = "regimes 1-3, VCM under FDP (appendix, after Algorithm 3)"
_PROOF = "proof of Theorem 2, cases 1 and 4"

_FORMULAS: dict[tuple[Problem, Privacy], dict[Label, str]] = {
    ("mean", "cdp"): {
        "A": "(n**2*epsilon**2)**(1/alpha)",
        "B": "n**(1/(2*alpha))",
        "C": "n**(-alpha/(2*alpha+1)) * m**(1/(4*alpha+2))",
        "D": "n**(-1/2)",
        "E": "n**((1-alpha)/(2*alpha)) * m**(-1/2)",
    },
    ("mean", "fdp"): {
        "A": "(S*n**2*epsilon**2)**(1/alpha)",
        "B": "(S*n)**(1/(2*alpha))",
        "C": "S**(1/(4*alpha+2)) * n**(-alpha/(2*alpha+1)) * m**(1/(4*alpha+2))",
        "D": "n**(-1/2)",
        "E": "S**(1/(2*alpha)) * n**((1-alpha)/(2*alpha)) * m**(-1/2)",
    },
    ("vcm", "cdp"): {
        "A": "d**(-1/alpha) * (n**2*epsilon**2)**(1/alpha)",
        "B": "n**(1/(2*alpha))",
        "C": "d**(1/2) * n**(-alpha/(2*alpha+1)) * m**(1/(4*alpha+2))",
        "D": "d**(1/2) * n**(-1/2)",
        "E": "d**(1/2) * n**((1-alpha)/(2*alpha)) * m**(-1/2)",
    },
    ("vcm", "fdp"): {
        "A": "d**(-1/alpha) * (S*n**2*epsilon**2)**(1/alpha)",
        "B": "(S*n)**(1/(2*alpha))",
        "C": "d**(1/2) * S**(1/(4*alpha+2)) * n**(-alpha/(2*alpha+1)) * m**(1/(4*alpha+2))",
        "D": "d**(1/2) * n**(-1/2)",
        "E": "d**(1/2) * S**(1/(2*alpha)) * n**((1-alpha)/(2*alpha)) * m**(-1/2)",
    },
}


def _boundary(
    table: str, label: Label, problem: Problem, privacy: Privacy, formula: str, decisive: bool = True
) -> Boundary:
    below, above, variable = PAIRS[label]
    return Boundary(table, label, problem, privacy, variable, below, above, formula, decisive)


def _all_boundaries() -> Iterator[Boundary]:
    for (problem, privacy), formulas in _FORMULAS.items():
        for label, formula in formulas.items():
            yield _boundary(_TABLES[problem, privacy], label, problem, privacy, formula)
    for label in ("D", "A", "B"):  # repeated by the cost-of-privacy table
        yield _boundary(_COST_TABLE, label, "mean", "cdp", _FORMULAS["mean", "cdp"][label])
    yield _boundary(_COST_TABLE, "envelope", "mean", "cdp", "n**(1/alpha)")
    yield _boundary(_VCM_REGIMES, "B", "vcm", "fdp", _FORMULAS["vcm", "fdp"]["B"])
    yield _boundary(_VCM_REGIMES, "envelope", "vcm", "fdp", "(S*n)**(1/alpha)")
    formula = "n**((-1-alpha)/(2*alpha+1)) * m**(alpha/(2*alpha+1))"
    yield _boundary(_PROOF, "proof", "mean", "cdp", formula, decisive=False)


BOUNDARIES: tuple[Boundary, ...] = tuple(_all_boundaries())


def boundaries_of(problem: Problem, privacy: Privacy) -> tuple[Boundary, ...]:
    """(A)-(E) of one of the four phase-transition tables."""
    if (problem, privacy) not in _TABLES:
        raise InvalidInput(f"privacy must be 'cdp' or 'fdp', got {privacy!r}; use crossing() instead.")
    return tuple(boundary for boundary in BOUNDARIES if boundary.table == _TABLES[problem, privacy])
