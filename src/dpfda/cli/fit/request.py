"""A checked request for a fit: everything that can be refused without the data is refused here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dpfda import _validate
from dpfda.basis.basis import basis_names
from dpfda.cli import parsing
from dpfda.cli.fit.outcomes import choose_visits, split_settings
from dpfda.cli.ledger_choice import LedgerChoice, choose_ledger
from dpfda.cli.outputs import Outputs, free_name
from dpfda.curves.outcomes import COMPLETE
from dpfda.curves.tables import Reading, Source, find_source
from dpfda.errors import InvalidInput
from dpfda.inference.curve_scale import MEANS
from dpfda.protocol.plans.registry import default_basis
from dpfda.protocol.scaling import VISIT_CAP, WEIGHTS
from dpfda.protocol.terms import OUTCOMES, VARIANTS
from dpfda.protocol.transforms import NO_TRANSFORM, TRANSFORMS, check_transform
from dpfda.report.document import StudyDescription

if TYPE_CHECKING:
    from dpfda.curves.tables import Loaded
    from dpfda.estimators import PrivateMean, PrivateVaryingCoefficients
    from dpfda.protocol.terms import StudyTerms
    from dpfda.silo.silo import Silo

METHODS = ("adaptive", "published")
MOST_BASIS = 500


@dataclass(frozen=True)
class FitRequest:
    """One private fit."""

    source: Source
    reading: Reading
    epsilon: float
    delta: float
    ledger: LedgerChoice
    outputs: Outputs
    options: Mapping[str, Any]
    settings: Mapping[str, Any]
    run: str | None = None
    each: Mapping[str, FitRequest] = field(default_factory=dict)  # of several outcomes, that of every one alone
    references: Mapping[str, float | str] = field(default_factory=dict)  # of covariates; the others have the default

    def name_outcomes(self) -> str:
        """What is estimated, by its column or columns."""
        return " and ".join(self.each) or self.reading.y or "y"

    def make_terms(self, silo: Silo) -> StudyTerms:
        """The terms of the study that a fit of this silo is."""
        from dpfda.estimators.outcomes import make_outcome_terms, separate

        if not self.each:
            return self.estimator().make_terms([silo.terms()], columns=silo.n_coefficients)
        alone = separate(self.estimator(), tuple(self.each))
        return make_outcome_terms(alone, [silo.terms()], columns=silo.n_coefficients, own_visits=silo.own_visits)

    def estimator(self) -> PrivateMean | PrivateVaryingCoefficients:
        """The estimator of the library with these public parameters."""
        from dpfda.estimators import PrivateMean, PrivateVaryingCoefficients

        public = {"domain": self.reading.domain.interval, "y_bounds": self.reading.y_bounds, **self.options}
        if self.each:
            public["y_bounds"] = {name: one.reading.y_bounds for name, one in self.each.items()}
            for key in ("outcome", "transform"):
                public[key] = {name: one.options[key] for name, one in self.each.items() if key in one.options}
        if not self.reading.covariates:
            return PrivateMean(self.epsilon, self.delta, **public)
        public["covariates"] = self._describe_covariates()
        if self.reading.design is not None:
            design = self.reading.design
            public |= {"design": design.formula, "intercept": design.parsed.intercept}
        return PrivateVaryingCoefficients(self.epsilon, self.delta, **public)

    def _describe_covariates(self) -> dict[str, dict[str, Any]]:
        """Public facts of every covariate, by name."""
        return {
            each.name: {"bounds": each.bounds, "levels": each.levels, "reference": self.references.get(each.name)}
            for each in self.reading.covariates
        }

    def study(self, loaded: Loaded) -> StudyDescription:
        """The public description of what is fitted."""
        settings, origin = self.settings, self.reading.domain.origin
        x, y = self.reading.x or "x", self.reading.y or "y"
        over = self.reading.x or settings["x-label"] or "x"
        value = f"share of {y} = {self.reading.y_levels[1]}" if self.reading.y_levels else y
        kind = MEANS[settings["transform"] or NO_TRANSFORM].capitalize()
        mean = "S" + value[1:] if self.reading.y_levels else f"{kind} of {value}"
        what = f"{mean} over {over}" if not self.reading.covariates else f"{value} over {over}: coefficient curves"
        return StudyDescription(
            source=self.source.name,
            x=x,
            y=y,
            functions=loaded.functions,
            title=settings["title"] or what,
            x_label=settings["x-label"] or x,
            y_label=settings["y-label"] or value,
            level=float(settings["level"]),
            x_origin=None if origin is None else origin.isoformat(),
            covariates=tuple({"name": name, **facts} for name, facts in self._describe_covariates().items()),
        )


def make_request(settings: Mapping[str, Any]) -> FitRequest:
    """Check the settings; every mistake is one sentence."""
    from dpfda.estimators.promises import refuse_absurd_delta

    if isinstance(settings["y"], list | tuple):
        return _join_requests(settings)
    settings = declare_two_values(settings)
    missing = [f"--{name}" for name in ("domain", "y-bounds", "epsilon", "delta") if settings[name] is None]
    if settings["source"] is None:
        raise InvalidInput("SOURCE must name the data: a file, a folder of Parquet files, or a database URL.")
    if missing:
        raise InvalidInput(
            f"{', '.join(missing)} must be given: public facts and promises are never taken from the data "
            f"(dpfda describe helps to choose{'; for yes/no values give --y-levels' if '--y-bounds' in missing else ''})."
        )
    if settings["basis"] is None:
        settings = {**settings, "basis": default_basis(settings["method"])}
    epsilon = _validate.positive("--epsilon", _number("epsilon", settings))
    delta = refuse_absurd_delta("--delta", _number("delta", settings))
    source = find_source(str(settings["source"]), settings["query"], settings["sheet"])
    outputs = _outputs(settings)
    outputs.check()
    reading = _reading(settings)
    return FitRequest(
        source=source,
        reading=reading,
        epsilon=epsilon,
        delta=delta,
        ledger=choose_ledger(settings["ledger"], source),
        outputs=outputs,
        options=_options(settings),
        settings=settings,
        run=None if settings["run"] is None else _validate.name("--run", settings["run"]),
        references=parsing.parse_references(reading.covariates, settings["reference"]),
    )


def _join_requests(settings: Mapping[str, Any]) -> FitRequest:
    """One request for several outcomes: what is theirs is that of each alone, the rest that of the first."""
    split, visits = split_settings(settings), choose_visits(settings)
    each = {name: make_request({**alone, "title": None}) for name, alone in split.items()}
    first = next(iter(each.values()))
    if visits == COMPLETE:
        each = {name: _read_complete(one, [other for other in each if other != name]) for name, one in each.items()}
    return replace(
        first, settings={**settings, "basis": first.settings["basis"]}, outputs=_outputs(settings), each=each
    )


def _read_complete(request: FitRequest, others: Sequence[str]) -> FitRequest:
    """One outcome at complete visits; copies are looked for in all outcomes together, so here they are kept."""
    return replace(request, reading=replace(request.reading, measured=tuple(others), duplicates="keep"))


def declare_two_values(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """With --y-levels, y is 0 or 1 by definition: its bounds, and its kind for methods that use it."""
    if settings["y-levels"] is None:
        return settings
    implied = {"y-bounds": "0:1"} if settings["y-bounds"] is None else {}
    if settings["outcome"] not in (None, "binary"):
        raise InvalidInput("--outcome must be binary with --y-levels, or be left out.")
    if settings["method"] == "adaptive":
        implied["outcome"] = "binary"
    return {**settings, **implied}


def _reading(settings: Mapping[str, Any]) -> Reading:
    _validate.choice("--decimal", settings["decimal"], ("point", "comma"))
    _validate.choice("--duplicates", settings["duplicates"], ("refuse", "drop", "keep"))
    _validate.choice("--outside", settings["outside"], ("drop", "refuse"))
    formula = parsing.parse_design(settings["design"])
    written = formula is not None and not (formula.is_plain and formula.intercept)
    return Reading(
        domain=parsing.parse_domain(settings["domain"], settings["date-format"]),
        y_bounds=parsing.parse_interval("y-bounds", settings["y-bounds"]),
        covariates=parsing.parse_covariates(formula, settings["bounds"], settings["levels"]),
        formula=settings["design"] if written else None,
        fill_down=tuple(parsing.parse_names(settings["fill-down"] or [])),
        one_design=settings["method"] == "published",
        missing=tuple(parsing.parse_names(settings["missing"] or [])),
        y_levels=tuple(parsing.parse_names(settings["y-levels"] or [])),
        strip_units=bool(settings["strip-units"]),
        date_format=settings["date-format"],
        **{name: settings[name] for name in ("id", "x", "y", "wide", "separator", "decimal", "duplicates", "outside")},
    )


def _options(settings: Mapping[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {
        "method": _validate.choice("--method", settings["method"], METHODS),
        "basis": _validate.choice("--basis", settings["basis"], basis_names()),
    }
    if settings["variant"] != "sample-splitting":
        options["variant"] = _validate.choice("--variant", settings["variant"], VARIANTS)
        if options["method"] != "published":
            raise InvalidInput("--variant is for --method published; leave it out, or change --method.")
    if settings["alpha"] is not None:
        options["alpha"] = _validate.within("--alpha", _number("alpha", settings), 0.5, 10.0)
    _validate.fraction("--level", _number("level", settings))
    if settings["n-basis"] is not None:
        size = _validate.integer("--n-basis", settings["n-basis"])
        _validate.within("--n-basis", size, 1, MOST_BASIS)
        options["n_basis"] = size
    if settings["points-per-curve"] is not None:
        options["points_per_curve"] = _validate.positive("--points-per-curve", _number("points-per-curve", settings))
    if settings["transform"] is not None:
        bounds = parsing.parse_interval("y-bounds", settings["y-bounds"])
        options["transform"] = _choose_transform(settings["transform"], bounds, settings["outcome"])
    return options | _choose_weight(settings) | _declarations(settings)


def _choose_weight(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What counts equally in the mean, if not every subject."""
    weight, cap = _validate.choice("--weight", settings["weight"], WEIGHTS), settings["visit-cap"]
    if (weight == "visit") != (cap is not None):
        raise InvalidInput(
            "--visit-cap must be given with --weight visit, and only then: the most visits for which a subject counts, a "
            "public number such as 10."
        )
    if weight == WEIGHTS[0]:
        return {}
    if settings["method"] == "published":
        raise InvalidInput(
            "--weight visit must be left out with --method published, which counts every subject equally."
        )
    return {"weight": weight, "visit_cap": VISIT_CAP.check("--visit-cap", cap)}


def _choose_transform(name: Any, y_bounds: tuple[float, float], outcome: Any) -> str:
    _validate.choice("--transform", name, TRANSFORMS[1:])
    if outcome == "binary":
        raise InvalidInput("--transform must be left out for a binary y: a share is the mean of y without one.")
    return check_transform(name, y_bounds)


def _declarations(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the default method may take for granted, if anything is declared."""
    declared: dict[str, Any] = {}
    if settings["assume-symmetric"]:
        declared["assume_symmetric"] = True
    if settings["outcome"] is not None:
        declared["outcome"] = _validate.choice("--outcome", settings["outcome"], OUTCOMES[1:])
    if settings["visit-times"] is not None:
        domain = parsing.parse_domain(settings["domain"], settings["date-format"])
        declared["visit_times"] = parsing.parse_visit_times(settings["visit-times"], domain, settings["date-format"])
    if declared and settings["method"] == "published":
        options = ", ".join(f"--{name.replace('_', '-')}" for name in declared)
        raise InvalidInput(f"{options} must be left out with --method published: only the default method uses it.")
    return declared


def _outputs(settings: Mapping[str, Any]) -> Outputs:
    figures = settings["figure"] or []
    figures = (figures,) if isinstance(figures, str) else tuple(map(str, figures))
    json, report = settings["json"], settings["report"]
    if json is None and report is None:
        json = free_name("result", ".json")  # a paid-for result is always kept
    return Outputs(report, json, figures, bool(settings["overwrite"]))


def _number(name: str, settings: Mapping[str, Any]) -> float:
    value = settings[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"--{name} must be a number, got {value!r}.")
    return float(value)
