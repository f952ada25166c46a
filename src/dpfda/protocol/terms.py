"""Terms: a dozen public values from which every silo derives the study's plan by itself.

A silo accepts terms and nothing else. They are frozen, each value lies in a closed range, and they have one encoding: bytes
that are not exactly what `encode` writes are refused. So there is no way to say what is measured, at which share of the
budget, over which curves, but to name a method that the silo has installed.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import Any

from dpfda.errors import InvalidInput, ProtocolError
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.ranges import (
    COLUMN,
    LEVEL,
    MOST_COEFFICIENTS,
    MOST_ROUNDS,
    MOST_SILOS,
    NARROW,
    WIDE,
    Ends,
    Fixed,
    Flag,
    Maybe,
    Part,
    Real,
    Several,
    Text,
    Whole,
    Word,
    check_fields,
    limit,
    read_fields,
    write_fields,
)
from dpfda.protocol.scaling import INTERCEPT, VISIT_CAP, WEIGHTS, Pair, check_weight
from dpfda.protocol.transforms import NO_TRANSFORM, TRANSFORMS, check_transform

SCHEMA = 6  # of the fields below
BUILDER = 3  # of the plan builders: terms of another one make another plan
MOST_BYTES = 2**18
MOST_CURVES, MOST_COLUMNS, MOST_LEVELS, MOST_BASIS = 2**30, 64, 32, 200
LONGEST_ROUND = 7 * 86_400.0  # seconds
BASES = ("cosine", "fourier", "fourier-extension", "free-ends", "bspline")
OUTCOMES = ("any", "binary", "count", "positive", "score")
NEVER_NEGATIVE = ("count", "positive")
MOST_VISITS = 64
MOST_OUTCOMES = 16
Y_SCALES, PROJECTIONS = ("bounds", "none"), ("ellipsoid", "cone", "none")
VARIANTS = ("sample-splitting", "full-batch")
INDICATOR: Pair = (0.0, 1.0)
SILO_NAME = Text(WIDE, 100)


def plain_name(text: str) -> str:
    """A text as the name of a silo: characters that names may not hold become dashes."""
    return re.sub("^[^A-Za-z0-9]+", "", re.sub("[^A-Za-z0-9 ,._-]+", "-", text))[: SILO_NAME.most] or "silo"


@dataclass(frozen=True)
class SiloTerms:
    """What one silo declares in public: its name, number of curves and budget. Nothing derived."""

    name: str = limit(SILO_NAME)
    n: int = limit(Whole(1, MOST_CURVES))
    epsilon: float = limit(Real(1e-6, 1e4))
    delta: float = limit(Real(1e-100, 1.0 - 2**-53))
    points_per_curve: float | None = limit(Maybe(Real(1e-3, 1e9)), default=None)

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class CovariateTerms:
    """A covariate: a number with bounds, or a category with levels, the first of which is the reference."""

    name: str = limit(Text(COLUMN, 63))
    bounds: Pair | None = limit(Maybe(Ends()), default=None)
    levels: tuple[str, ...] = limit(Several(Text(LEVEL, 63), 0, MOST_COLUMNS), default=())

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.bounds is None) == (not self.levels):
            raise InvalidInput(
                f"covariate {self.name!r} needs bounds if it is a number, or levels if it is a category."
            )
        if self.levels and (len(self.levels) < 2 or len(set(self.levels)) != len(self.levels)):
            raise InvalidInput(f"levels of covariate {self.name!r} must be at least two different ones.")

    @property
    def column_bounds(self) -> tuple[Pair, ...]:
        """The public bounds of its design columns."""
        return (self.bounds,) if self.bounds is not None else (INDICATOR,) * (len(self.levels) - 1)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its design columns: itself, or one indicator for each level but the reference."""
        return (self.name,) if self.bounds is not None else tuple(f"{self.name}: {level}" for level in self.levels[1:])


@dataclass(frozen=True)
class OutcomeTerms:
    """A variable that is measured at visits: its name, public bounds, what it is declared to be, and its transform."""

    y: str = limit(Text(COLUMN, 63))
    y_bounds: Pair = limit(Ends())
    outcome: str = limit(Word(OUTCOMES), default="any")
    transform: str = limit(Word(TRANSFORMS), default=NO_TRANSFORM)

    def __post_init__(self) -> None:
        check_fields(self)
        check_transform(self.transform, self.y_bounds)
        if self.outcome in NEVER_NEGATIVE and self.y_bounds[0] < 0:
            raise InvalidInput(f"y_bounds must not be negative with outcome={self.outcome!r}: give 0 as the lower one.")


@dataclass(frozen=True)
class StudyTerms:
    """What everybody may know of a study, and all that decides its plan.

    `name`, `x` and `y` are labels; `levels` are those of private quantiles; `constants`, `projection`, `variant` and
    `y_scale` belong to the published method. `assume_symmetric`, `outcome` and `visit_times` are declarations to the default
    method: what it may take for granted. A wrong one costs accuracy, never privacy.
    With a `transform` the study is about the transformed y: each silo clamps y to `y_bounds`, which are in the units of y,
    and transforms it with its own code.
    `weight` is what weighs the same in the mean, which is part of the estimand: a subject, or a visit. By visits a subject
    weighs as much as its number of visits, from `visit_cap` on no more; the cap is public, never from data.
    `robust_sites` is its rule for a site that is unlike all others by its releases: such a site counts less (True), or is
    named only (False).
    `further` are the outcomes after the first, which `y`, `y_bounds`, `outcome` and `transform` describe: curves of the same
    subjects, in one budget. With `own_visits` each outcome is taken where it was measured, and its design is asked for by
    itself; else a visit counts if all outcomes were measured at it, and the design of these visits is asked for once.
    A round closes `grace_seconds` after `min_silos` have answered, at the latest `round_seconds` after it was opened: with
    86400 sites may answer within a day.
    """

    method: str = limit(Text(NARROW, 63))
    domain: Pair = limit(Ends())
    y_bounds: Pair = limit(Ends())
    silos: tuple[SiloTerms, ...] = limit(Several(Part(SiloTerms), 1, MOST_SILOS))
    covariates: tuple[CovariateTerms, ...] = limit(Several(Part(CovariateTerms), 0, MOST_COLUMNS), default=())
    intercept: bool = limit(Flag(), default=True)
    basis: str = limit(Word(BASES), default="free-ends")
    n_basis: int | None = limit(Maybe(Whole(1, MOST_BASIS)), default=None)
    alpha: float | None = limit(Maybe(Real(0.5, 10.0)), default=None)
    extension: float = limit(Real(1.01, 4.0), default=1.5)
    y_scale: str = limit(Word(Y_SCALES), default="bounds")
    constants: PublishedConstants | None = limit(Maybe(Part(PublishedConstants)), default=None)
    projection: str = limit(Word(PROJECTIONS), default="ellipsoid")
    assume_symmetric: bool = limit(Flag(), default=False)
    outcome: str = limit(Word(OUTCOMES), default="any")
    transform: str = limit(Word(TRANSFORMS), default=NO_TRANSFORM)
    weight: str = limit(Word(WEIGHTS), default=WEIGHTS[0])
    visit_cap: int | None = limit(VISIT_CAP, default=None)
    visit_times: tuple[float, ...] = limit(Several(Real(-1e15, 1e15), 0, MOST_VISITS), default=())
    robust_sites: bool = limit(Flag(), default=True)
    variant: str = limit(Word(VARIANTS), default="sample-splitting")
    levels: tuple[float, ...] = limit(Several(Real(1e-6, 1 - 1e-6), 0, MOST_LEVELS), default=())
    name: str = limit(Text(NARROW, 63), default="study")
    x: str = limit(Text(COLUMN, 63), default="x")
    y: str = limit(Text(COLUMN, 63), default="y")
    min_silos: int = limit(Whole(1, MOST_SILOS), default=1)
    max_rounds: int = limit(Whole(1, MOST_ROUNDS), default=MOST_ROUNDS)
    round_seconds: float = limit(Real(1.0, LONGEST_ROUND), default=120.0)
    grace_seconds: float = limit(Real(0.0, LONGEST_ROUND), default=5.0)
    schema: int = limit(Fixed(SCHEMA), default=SCHEMA)
    builder: int = limit(Fixed(BUILDER), default=BUILDER)
    further: tuple[OutcomeTerms, ...] = limit(
        Several(Part(OutcomeTerms), 0, MOST_OUTCOMES - 1), omitted=True, default=()
    )
    own_visits: bool = limit(Flag(), omitted=True, default=False)

    def __post_init__(self) -> None:
        check_fields(self)
        for what, names in (
            ("names of outcomes", [self.y, *(each.y for each in self.further)]),
            ("names of silos", [silo.name for silo in self.silos]),
            ("names of covariates", [each.name for each in self.covariates]),
            ("levels", list(self.levels)),
            ("visit_times", list(self.visit_times)),
        ):
            if len(set(names)) != len(names):
                raise InvalidInput(f"{what} must differ from each other; none may be given twice.")
        if not all(self.domain[0] <= time <= self.domain[1] for time in self.visit_times):
            raise InvalidInput("visit_times must lie in the domain; widen `domain` or leave out those beyond it.")
        _ = self.outcomes  # which check themselves
        if self.own_visits and not self.further:
            raise InvalidInput(
                "own_visits must be False for one outcome: its visits are those at which it was measured."
            )
        check_weight(self.weight, self.visit_cap)
        if self.min_silos > len(self.silos):
            raise InvalidInput(f"min_silos must be between 1 and the number of silos ({len(self.silos)}).")
        if not 1 <= len(self.design_bounds) <= MOST_COLUMNS:
            raise InvalidInput(f"covariates must make 1 to {MOST_COLUMNS} design columns, with the intercept.")
        if len(self.design_bounds) * (self.n_basis or 1) > MOST_COEFFICIENTS:
            raise InvalidInput(f"n_basis times the design columns must be at most {MOST_COEFFICIENTS}.")

    @property
    def outcomes(self) -> tuple[OutcomeTerms, ...]:
        """All outcomes, the first one first."""
        return OutcomeTerms(self.y, self.y_bounds, self.outcome, self.transform), *self.further

    def of_outcome(self, place: int) -> StudyTerms:
        """The terms as they would be for one of the outcomes alone."""
        chosen = self.outcomes[place]
        alone: dict[str, Any] = {
            "y": chosen.y,
            "y_bounds": chosen.y_bounds,
            "outcome": chosen.outcome,
            "transform": chosen.transform,
        }
        return replace(self, **alone, further=(), own_visits=False)

    @property
    def design_bounds(self) -> tuple[Pair, ...]:
        """The public bounds of the design columns, the intercept first."""
        bounds = tuple(pair for covariate in self.covariates for pair in covariate.column_bounds)
        return (INTERCEPT, *bounds) if self.intercept else bounds

    @property
    def model(self) -> str:
        """A mean, or varying coefficients."""
        return "mean" if not self.covariates else "vcm"

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the functions that the study estimates."""
        columns = tuple(name for covariate in self.covariates for name in covariate.columns)
        return ("mean",) if not columns else ("intercept", *columns) if self.intercept else columns

    def silo(self, name: str) -> SiloTerms:
        """What one silo declared."""
        for silo in self.silos:
            if silo.name == name:
                return silo
        raise ProtocolError("The terms do not name this silo.")

    def encode(self) -> bytes:
        """Canonical JSON: the only bytes that `decode` accepts for these terms."""
        return canonical_json(write_fields(self))

    @staticmethod
    def decode(data: bytes) -> StudyTerms:
        """The terms behind these bytes; whatever is not exactly what `encode` writes is refused."""
        if not isinstance(data, bytes) or len(data) > MOST_BYTES:
            raise ProtocolError("The terms have an impossible length.")
        try:
            terms: StudyTerms = read_fields(StudyTerms, "terms", json.loads(data.decode()))
            same = terms.encode() == data
        except InvalidInput as error:
            raise ProtocolError(f"The terms are refused: {error}") from None
        except (ValueError, RecursionError):
            raise ProtocolError("The terms cannot be read.") from None
        if not same:
            raise ProtocolError("The terms are not in their canonical encoding.")
        return terms

    def digest(self) -> str:
        """Identifies the terms."""
        return hashlib.sha256(self.encode()).hexdigest()


def canonical_json(fields: Any) -> bytes:
    """Sorted keys, no spaces, ASCII; floats in the shortest form that reads back to the same bits."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
