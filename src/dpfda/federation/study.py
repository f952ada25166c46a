"""A study across sites: its terms in a `study.toml`, and the id that follows from them.

Terms travel, plans do not: coordinator and sites each make the plan with their own code. The id is the study's only run:
a site that accepted the terms answers that run and no other, so the terms are paid for once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpfda import _validate
from dpfda.errors import InvalidInput
from dpfda.federation import toml_tables as tables
from dpfda.federation.names import check_site_name
from dpfda.protocol.plans.registry import default_basis, make_plan
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.terms import OUTCOMES, CovariateTerms, SiloTerms, StudyTerms
from dpfda.protocol.transforms import NO_TRANSFORM

DECLARATIONS = ("assume_symmetric", "outcome", "visit_times", "robust_sites")
_TOP = (
    "consortium", "name", "model", "domain", "y_bounds", "x", "y", "basis", "n_basis", "alpha", "method", "constants",
    "variant", "transform", "weight", "visit_cap", "covariates", "min_sites", "max_rounds", "round_seconds",
    "grace_seconds", "sites", *DECLARATIONS,
)  # fmt: skip
_SITE = ("name", "n", "epsilon", "delta", "points_per_curve")
_COVARIATE = ("bounds", "levels")
MODELS = ("mean", "vcm")


@dataclass(frozen=True)
class StudyFile:
    """What a `study.toml` says: the terms, and the coordinator's folder of the consortium that is asked."""

    terms: StudyTerms
    consortium: Path


def name_study(terms: StudyTerms) -> str:
    """The study's id, which is also its run: its name and sixteen hexadecimal digits of its terms' digest."""
    return f"{terms.name}-{terms.digest()[:16]}"


def make_estimator(terms: StudyTerms) -> Any:
    """The library's estimator with these public parameters, not fitted."""
    from dpfda.estimators import PrivateMean, PrivateVaryingCoefficients

    public: dict[str, Any] = {
        "domain": terms.domain, "y_bounds": terms.y_bounds, "basis": terms.basis, "n_basis": terms.n_basis,
        "alpha": terms.alpha, "method": terms.method, "constants": terms.constants,
        "variant": terms.variant,
        "assume_symmetric": terms.assume_symmetric, "visit_times": terms.visit_times, "robust_sites": terms.robust_sites,
        "transform": None if terms.transform == NO_TRANSFORM else terms.transform,
        "weight": terms.weight, "visit_cap": terms.visit_cap,
        "outcome": None if terms.outcome == OUTCOMES[0] else terms.outcome,
    }  # fmt: skip
    if terms.model == "mean":
        return PrivateMean(**public)
    bounds = [pair for covariate in terms.covariates for pair in covariate.column_bounds]
    return PrivateVaryingCoefficients(design_bounds=bounds, **public)


def read_study(path: Path) -> StudyFile:
    """The terms and the consortium of a `study.toml`; refused unless a plan can be made of the terms."""
    fields = tables.refuse_unknown_names(path.name, tables.read_toml(path), _TOP)
    for name in ("consortium", "name", "model", "domain", "y_bounds", "sites"):
        tables.require(path.name, fields, name)
    if isinstance(fields.get("y"), list):
        raise InvalidInput("y must name one outcome in a study across sites: propose a study for each outcome.")
    consortium = path.parent.absolute() / str(fields.pop("consortium"))
    for name in ("domain", "y_bounds"):
        fields[name] = _validate.interval(name, tables.parse_pair(name, fields[name]))
    model, silos = _validate.choice("model", fields.pop("model"), MODELS), _read_sites(fields.pop("sites"))
    covariates = _read_covariates(fields.pop("covariates", {}))
    if (model == "vcm") != bool(covariates):
        raise InvalidInput('model = "vcm" goes with a [covariates] table, model = "mean" without one.')
    if "constants" in fields:
        fields["constants"] = _read_constants(fields["constants"])
    minimum = fields.pop("min_sites", len(silos))
    if not 1 <= _validate.integer("min_sites", minimum) <= len(silos):
        raise InvalidInput(f"min_sites must be between 1 and the number of sites ({len(silos)}).")
    method = _validate.choice("method", fields.pop("method", "adaptive"), ("adaptive", "published"))
    if method == "published" and not fields.keys().isdisjoint(DECLARATIONS):
        raise InvalidInput(f'{", ".join(DECLARATIONS)} are for method = "adaptive"; leave them out.')
    fields.setdefault("basis", default_basis(method))
    terms = StudyTerms(method, silos=silos, covariates=covariates, min_silos=minimum, **fields)
    make_plan(terms)
    return StudyFile(terms, consortium)


def _read_constants(table: Any) -> PublishedConstants:
    names = tuple(field.name for field in dataclasses.fields(PublishedConstants))
    return PublishedConstants(**tables.refuse_unknown_names("[constants]", table, names))


def _read_sites(entries: Any) -> tuple[SiloTerms, ...]:
    if not isinstance(entries, list):
        raise InvalidInput("sites must be [[sites]] tables with name, n, epsilon and delta.")
    if not entries:
        raise InvalidInput("sites must list at least one [[sites]] table.")
    for entry in entries:
        tables.refuse_unknown_names("[[sites]]", entry, _SITE)
        for name in ("name", "n", "epsilon", "delta"):
            tables.require("[[sites]]", entry, name)
    return tuple(_read_site(entry) for entry in entries)


def _read_site(entry: Mapping[str, Any]) -> SiloTerms:
    name = check_site_name(entry["name"])
    return SiloTerms(name, entry["n"], entry["epsilon"], entry["delta"], entry.get("points_per_curve"))


def _read_covariates(table: Any) -> tuple[CovariateTerms, ...]:
    found = []
    for name, entry in tables.refuse_unknown_names("[covariates]", table, table).items():
        fields = tables.refuse_unknown_names(f"covariates.{name}", entry, _COVARIATE)
        bounds, levels = fields.get("bounds"), tuple(map(str, fields.get("levels") or ()))
        found.append(CovariateTerms(name, None if bounds is None else tables.parse_pair("bounds", bounds), levels))
    return tuple(found)
