"""The public terms of a study across sites, the frozen plan that follows from them, and the id of both.

The plan is made once, by `dpfda study init`, and travels in every site's kit. A site accepts that one plan; the coordinator
later names it by its digest and cannot send another.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpfda import _validate
from dpfda._typing import Interval
from dpfda.errors import InvalidInput
from dpfda.federation import toml_tables as tables
from dpfda.federation.files import write_json
from dpfda.protocol.plan import Plan
from dpfda.protocol.terms import SiloTerms

VERSION = 1
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$")
_TOP = (
    "name", "model", "domain", "y_bounds", "x", "y", "basis", "n_basis", "alpha", "method", "constants", "covariates",
    "min_sites", "max_rounds", "server", "sites",
)  # fmt: skip
_SITE = ("name", "n", "epsilon", "delta", "points_per_curve")
_COVARIATE = ("bounds", "levels")
MODELS = ("mean", "vcm")


@dataclass(frozen=True)
class CovariateTerms:
    """A covariate of the varying-coefficient model: a number with bounds, or a category with levels."""

    name: str
    bounds: Interval | None = None
    levels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        from dpfda.curves.tables.covariates import Covariate

        Covariate(self.name, self.bounds, self.levels)  # its checks

    @property
    def column_bounds(self) -> tuple[Interval, ...]:
        """The public bounds of its design columns."""
        return (self.bounds,) if self.bounds is not None else ((0.0, 1.0),) * (len(self.levels) - 1)


@dataclass(frozen=True)
class StudyTerms:
    """What everybody may know of a study, and what its id stands for."""

    name: str
    model: str
    domain: Interval
    y_bounds: Interval
    sites: tuple[SiloTerms, ...]
    min_sites: int
    max_rounds: int
    method: str = "adaptive"
    basis: str = "cosine"
    n_basis: int | None = None
    alpha: float | None = None
    covariates: tuple[CovariateTerms, ...] = ()
    constants: Mapping[str, float] = dataclasses.field(default_factory=dict)
    x: str = "x"
    y: str = "y"

    def __post_init__(self) -> None:
        _validate.choice("model", self.model, MODELS)
        _validate.choice("method", self.method, ("adaptive", "published"))
        _validate.interval("domain", self.domain)
        _validate.interval("y_bounds", self.y_bounds)
        if not self.sites:
            raise InvalidInput("sites must list at least one [[sites]] table.")
        names = [site.name for site in self.sites]
        for name in names:
            if not _NAME.match(name):
                raise InvalidInput(f"The site name {name!r} must be letters, digits, - and _ (at most 63).")
        if len(set(names)) != len(names):
            raise InvalidInput("sites must have different names.")
        if not 1 <= _validate.integer("min_sites", self.min_sites) <= len(names):
            raise InvalidInput(f"min_sites must be between 1 and the number of sites ({len(names)}).")
        if (self.model == "vcm") != bool(self.covariates):
            raise InvalidInput('model = "vcm" goes with a [covariates] table, model = "mean" without one.')

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the functions that the study estimates."""
        if self.model == "mean":
            return ("mean",)
        from dpfda.curves.tables.covariates import Covariate

        columns = [name for each in self.covariates for name in Covariate(each.name, each.bounds, each.levels).columns]
        return ("intercept", *columns)

    def estimator(self) -> Any:
        """The library's estimator with these public parameters, not fitted."""
        from dpfda.estimators import PrivateMean, PrivateVaryingCoefficients
        from dpfda.protocol.plans import PublishedConstants

        public: dict[str, Any] = {
            "domain": self.domain, "y_bounds": self.y_bounds, "basis": self.basis, "n_basis": self.n_basis,
            "alpha": self.alpha, "method": self.method,
        }  # fmt: skip
        if self.constants:
            public["constants"] = PublishedConstants(**self.constants)
        if self.model == "mean":
            return PrivateMean(**public)
        bounds = [pair for covariate in self.covariates for pair in covariate.column_bounds]
        return PrivateVaryingCoefficients(design_bounds=bounds, **public)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return json.loads(json.dumps(dataclasses.asdict(self)))  # type: ignore[no-any-return]

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> StudyTerms:
        """The inverse of `to_dict`."""
        values = dict(fields)
        for name in ("domain", "y_bounds"):
            values[name] = tuple(values[name])
        values["sites"] = tuple(_site_terms(site) for site in values["sites"])
        values["covariates"] = tuple(_covariate(each) for each in values.get("covariates", ()))
        return StudyTerms(**values)


@dataclass(frozen=True)
class StudyDocument:
    """The terms and the plan, under the id that is derived from their content."""

    terms: StudyTerms
    plan: Plan

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits of the content's hash, after the study's name."""
        text = json.dumps({"terms": self.terms.to_dict(), "plan": self.plan.digest()}, sort_keys=True)
        return f"{self.terms.name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def save(self, path: Path) -> None:
        """Write it; it holds public values only."""
        fields = {"dpfda": VERSION, "id": self.id, "terms": self.terms.to_dict(), "plan": self.plan.to_dict()}
        write_json(path, fields, mode=0o644)

    @staticmethod
    def load(path: Path) -> StudyDocument:
        """Read it; the id must follow from the content."""
        try:
            fields = json.loads(path.read_bytes())
            document = StudyDocument(StudyTerms.from_dict(fields["terms"]), Plan.from_dict(fields["plan"]))
            stated = fields["id"]
        except FileNotFoundError:
            raise InvalidInput(f"There is no study at {path}; run dpfda study init first.") from None
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{path} is not a study of this version of dpfda: {error}.") from None
        if document.id != stated:
            raise InvalidInput(f"{path} was changed: its id does not follow from its content.")
        return document


@dataclass(frozen=True)
class ServerAddress:
    """Where sites find the coordinator. Not part of the study's id: a server may move."""

    host: str = "127.0.0.1"
    port: int = 8102
    admin_port: int = 8103


def make_document(terms: StudyTerms) -> StudyDocument:
    """Freeze the plan of these terms."""
    estimator = terms.estimator()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimator.check_parameters()
        plan = estimator.make_plan(
            list(terms.sites), columns=1 + sum(len(each.column_bounds) for each in terms.covariates)
        )
    if len(plan.rounds) > terms.max_rounds:
        raise InvalidInput(
            f"The plan has {len(plan.rounds)} rounds, more than max_rounds = {terms.max_rounds}; raise it."
        )
    return StudyDocument(terms, plan)


def read_study(path: Path) -> tuple[StudyTerms, ServerAddress]:
    """The terms and the server's address in a `study.toml`."""
    fields = tables.refuse_unknown_names(path.name, tables.read_toml(path), _TOP)
    server = ServerAddress(
        **tables.refuse_unknown_names("[server]", fields.pop("server", {}), ("host", "port", "admin_port"))
    )
    for name in ("name", "model", "domain", "y_bounds", "sites"):
        tables.require(path.name, fields, name)
    if not isinstance(fields["name"], str) or not _NAME.match(fields["name"]):
        raise InvalidInput('name must be letters, digits, - and _ (at most 63), for instance name = "lipid-2026".')
    for name in ("domain", "y_bounds"):
        fields[name] = _validate.interval(name, tables.parse_pair(name, fields[name]))
    fields["sites"] = _read_sites(fields["sites"])
    fields["covariates"] = tuple(
        _covariate({"name": name, **tables.refuse_unknown_names(f"covariates.{name}", each, _COVARIATE)})
        for name, each in tables.refuse_unknown_names(
            "[covariates]", fields.get("covariates", {}), fields.get("covariates", {})
        ).items()
    )
    fields.setdefault("min_sites", len(fields["sites"]))
    fields.setdefault("max_rounds", 1000)
    return StudyTerms(**fields), server


def _read_sites(entries: Any) -> tuple[SiloTerms, ...]:
    if not isinstance(entries, list):
        raise InvalidInput("sites must be [[sites]] tables with name, n, epsilon and delta.")
    for entry in entries:
        tables.refuse_unknown_names("[[sites]]", entry, _SITE)
        for name in ("name", "n", "epsilon", "delta"):
            tables.require("[[sites]]", entry, name)
    return tuple(_site_terms(entry) for entry in entries)


def _site_terms(entry: Mapping[str, Any]) -> SiloTerms:
    epsilon, delta = _validate.privacy_pair(entry["epsilon"], entry["delta"])
    points = entry.get("points_per_curve")
    points = None if points is None else _validate.positive("points_per_curve", points)
    return SiloTerms(str(entry["name"]), _validate.integer("n", entry["n"]), epsilon, delta, points)


def _covariate(entry: Mapping[str, Any]) -> CovariateTerms:
    bounds, levels = entry.get("bounds"), tuple(map(str, entry.get("levels") or ()))
    numbers = None if bounds is None else _validate.interval("bounds", tables.parse_pair("bounds", bounds))
    return CovariateTerms(str(entry["name"]), numbers, levels)
