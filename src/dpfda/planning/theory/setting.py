"""What a rate is asked about: the problem, the privacy model and the sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from dpfda import _validate
from dpfda.errors import InvalidInput
from dpfda.planning.theory.monomials import Variable

Problem = Literal["mean", "vcm"]
Privacy = Literal["none", "cdp", "fdp", "ldp"]
TermName = Literal["non-private sparse", "private sparse", "non-private dense", "private dense"]
TERM_NAMES: tuple[TermName, ...] = get_args(TermName)


@dataclass(frozen=True)
class Setting:
    """One homogeneous design: `S` servers, each with `n` curves observed at `m` points.

    The four privacy models split the same ``S * n`` curves differently: ``cdp`` pools all of them
    at one curator, ``fdp`` keeps `n` at each of `S` servers, ``ldp`` leaves every curve alone.
    So ``fdp`` with ``S=1`` is ``cdp``, and ``fdp`` with ``n=1`` is ``ldp``.

    `d` is the number of covariates of the varying-coefficient model (1 for the mean), `alpha`
    the Sobolev smoothness (more than 1, Definition 4 of the paper). Sizes may be real numbers
    so that boundaries can be evaluated between the integers.
    """

    problem: Problem
    privacy: Privacy
    n: float
    m: float
    alpha: float
    S: float = 1
    d: float = 1
    epsilon: float | None = None

    def __post_init__(self) -> None:
        _validate.choice("problem", self.problem, get_args(Problem))
        _validate.choice("privacy", self.privacy, get_args(Privacy))
        for name in ("n", "m", "S"):
            check_at_least_one(name, getattr(self, name))
        check_dimension(self.problem, self.d)
        check_alpha(self.alpha)
        if self.epsilon is not None:
            _validate.positive("epsilon", self.epsilon)
        elif self.privacy != "none":
            raise InvalidInput(f"epsilon is needed when privacy is {self.privacy!r}.")

    @property
    def values(self) -> dict[Variable, float]:
        known: dict[Variable, float] = {"n": self.n, "m": self.m, "S": self.S, "d": self.d}
        if self.epsilon is not None:
            known["epsilon"] = self.epsilon
        return known


def check_at_least_one(name: str, value: float) -> float:
    number = _validate.real(name, value)
    if not number >= 1:
        raise InvalidInput(f"{name} must be at least 1, got {value!r}.")
    return number


def check_alpha(alpha: float) -> float:
    number = _validate.real("alpha", alpha)
    if not number > 1:
        raise InvalidInput(f"alpha must be greater than 1, got {alpha!r}.")
    return number


def check_dimension(problem: Problem, d: float) -> None:
    check_at_least_one("d", d)
    if problem == "mean" and d != 1:
        raise InvalidInput(f"d must be 1 for the mean, got {d!r}; use problem='vcm' for covariates.")
