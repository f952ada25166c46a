"""A study across sites: its terms in a `study.toml`, and the id that follows from them.

Terms travel, plans do not: coordinator and sites each make the plan with their own code. The coordinator later names the
terms by their digest and cannot send others.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpfda import _validate
from dpfda.errors import InvalidInput, ProtocolError
from dpfda.federation import toml_tables as tables
from dpfda.federation.files import write_atomically
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.terms import MOST_BYTES, CovariateTerms, SiloTerms, StudyTerms

_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$")
_TOP = (
    "name", "model", "domain", "y_bounds", "x", "y", "basis", "n_basis", "alpha", "method", "constants", "covariates",
    "min_sites", "max_rounds", "server", "sites",
)  # fmt: skip
_SITE = ("name", "n", "epsilon", "delta", "points_per_curve")
_COVARIATE = ("bounds", "levels")
MODELS = ("mean", "vcm")


@dataclass(frozen=True)
class StudyDocument:
    """The terms, under the id that is derived from them, and the plan that this installation makes of them."""

    terms: StudyTerms

    @property
    def id(self) -> str:
        """The study's name and sixteen hexadecimal digits of the terms' digest."""
        return f"{self.terms.name}-{self.terms.digest()[:16]}"

    @property
    def plan(self) -> Plan:
        """Made here, by the code that is installed here; it is never read from a file."""
        return make_plan(self.terms)

    def save(self, path: Path) -> None:
        """Write the canonical bytes of the terms; they hold public values only."""
        write_atomically(path, self.terms.encode(), mode=0o644)

    @staticmethod
    def load(path: Path) -> StudyDocument:
        """Read terms; anything but their canonical encoding is refused."""
        try:
            with path.open("rb") as file:
                return StudyDocument(StudyTerms.decode(file.read(MOST_BYTES + 1)))
        except FileNotFoundError:
            raise InvalidInput(f"There is no study at {path}; run dpfda study init first.") from None
        except ProtocolError as error:
            raise InvalidInput(f"{path} does not hold the terms of a study of this version of dpfda: {error}") from None


@dataclass(frozen=True)
class ServerAddress:
    """Where sites find the coordinator. Not part of the study's id: a server may move."""

    host: str = "127.0.0.1"
    port: int = 8102
    admin_port: int = 8103


def make_document(terms: StudyTerms) -> StudyDocument:
    """The study of these terms; refused unless a plan can be made of them."""
    make_plan(terms)
    return StudyDocument(terms)


def make_estimator(terms: StudyTerms) -> Any:
    """The library's estimator with these public parameters, not fitted."""
    from dpfda.estimators import PrivateMean, PrivateVaryingCoefficients

    public: dict[str, Any] = {
        "domain": terms.domain, "y_bounds": terms.y_bounds, "basis": terms.basis, "n_basis": terms.n_basis,
        "alpha": terms.alpha, "method": terms.method, "constants": terms.constants,
    }  # fmt: skip
    if terms.model == "mean":
        return PrivateMean(**public)
    bounds = [pair for covariate in terms.covariates for pair in covariate.column_bounds]
    return PrivateVaryingCoefficients(design_bounds=bounds, **public)


def read_study(path: Path) -> tuple[StudyTerms, ServerAddress]:
    """The terms and the server's address in a `study.toml`."""
    fields = tables.refuse_unknown_names(path.name, tables.read_toml(path), _TOP)
    server = ServerAddress(
        **tables.refuse_unknown_names("[server]", fields.pop("server", {}), ("host", "port", "admin_port"))
    )
    for name in ("name", "model", "domain", "y_bounds", "sites"):
        tables.require(path.name, fields, name)
    for name in ("domain", "y_bounds"):
        fields[name] = _validate.interval(name, tables.parse_pair(name, fields[name]))
    model, silos = _validate.choice("model", fields.pop("model"), MODELS), _read_sites(fields.pop("sites"))
    given = fields.pop("covariates", {})
    covariates = tuple(
        _covariate({"name": name, **tables.refuse_unknown_names(f"covariates.{name}", each, _COVARIATE)})
        for name, each in tables.refuse_unknown_names("[covariates]", given, given).items()
    )
    if (model == "vcm") != bool(covariates):
        raise InvalidInput('model = "vcm" goes with a [covariates] table, model = "mean" without one.')
    if "constants" in fields:
        fields["constants"] = _read_constants(fields["constants"])
    minimum = fields.pop("min_sites", len(silos))
    if not 1 <= _validate.integer("min_sites", minimum) <= len(silos):
        raise InvalidInput(f"min_sites must be between 1 and the number of sites ({len(silos)}).")
    method = _validate.choice("method", fields.pop("method", "adaptive"), ("adaptive", "published"))
    return StudyTerms(method, silos=silos, covariates=covariates, min_silos=minimum, **fields), server


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
    return tuple(_site_terms(entry) for entry in entries)


def _site_terms(entry: Mapping[str, Any]) -> SiloTerms:
    name = entry["name"]
    if not isinstance(name, str) or not _NAME.match(name):
        raise InvalidInput(f"The site name {name!r} must be letters, digits, - and _ (at most 63).")
    return SiloTerms(name, entry["n"], entry["epsilon"], entry["delta"], entry.get("points_per_curve"))


def _covariate(entry: Mapping[str, Any]) -> CovariateTerms:
    bounds, levels = entry.get("bounds"), tuple(map(str, entry.get("levels") or ()))
    return CovariateTerms(entry["name"], None if bounds is None else tables.parse_pair("bounds", bounds), levels)
