"""What a site allows: where its data are, what it promises its patients, and which studies it will answer.

The policy is the site's own file. Nothing that the coordinator sends can change it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfda import _validate
from dpfda._typing import Interval
from dpfda.errors import InvalidInput
from dpfda.federation import toml_tables as tables
from dpfda.federation.files import write_json
from dpfda.federation.keys import read_public_text
from dpfda.federation.names import check_site_name
from dpfda.federation.study import name_study
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.statistics import EntrywiseGradient
from dpfda.protocol.terms import StudyTerms

if TYPE_CHECKING:
    from dpfda.curves.tables import Loaded, Reading, Source

_TOP = ("data", "promise", "budget", "allow", "approval", "simulation")
_HOW = ("separator", "decimal", "duplicates", "missing", "strip_units", "date_format", "y_levels", "fill_down")
_DATA = ("source", "query", "sheet", "id", "x", "y", *_HOW)
_ALLOW = ("methods", "models", "bases", "domain", "y_bounds", "covariates", "max_rounds", "max_basis", "studies")
_LISTS = ("methods", "models", "bases", "covariates", "studies")
_PLURALS = dict(zip(("method", "model", "basis", "covariate", "study"), _LISTS, strict=True))


@dataclass(frozen=True)
class Allowed:
    """Which study terms the site accepts; None allows anything, but covariates are columns of the site and must be named."""

    methods: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    bases: tuple[str, ...] | None = None
    covariates: tuple[str, ...] | None = None
    studies: tuple[str, ...] | None = None
    domain: Interval | None = None
    y_bounds: Interval | None = None
    max_rounds: int | None = None
    max_basis: int | None = None


@dataclass(frozen=True)
class SitePolicy:
    """One site's policy.

    `epsilon`, `delta` are the most that one study may cost a patient; `total_epsilon`, `total_delta` the most that all
    studies together may, as kept in the ledger. `persons` people of `approvers` ({name: public key}) must sign each study.
    """

    data: Mapping[str, Any]
    epsilon: float
    delta: float
    total_epsilon: float
    total_delta: float
    ledger: str
    allow: Allowed = field(default_factory=Allowed)
    seed: int | None = None
    persons: int = 0
    approvers: Mapping[str, str] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """A copy that only the owner can read: a database URL may hold a password."""
        write_json(path, {**vars(self), "allow": vars(self.allow), "data": dict(self.data),
                          "approvers": dict(self.approvers)})  # fmt: skip

    @staticmethod
    def load(path: Path) -> SitePolicy:
        """The copy that `dpfda site policy` made."""
        try:
            fields = json.loads(path.read_bytes())
            values: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value for name, value in fields["allow"].items()
            }
            return SitePolicy(**{**fields, "allow": Allowed(**values)})
        except FileNotFoundError:
            raise InvalidInput(f"There is no policy at {path}; run dpfda site policy first.") from None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InvalidInput(f"{path} cannot be read; run dpfda site policy again.") from None

    @property
    def ledger_place(self) -> str:
        """A file, or the URL of a server. Simulations never touch the ledger of real releases."""
        if self.seed is None:
            return self.ledger
        if "://" in self.ledger:
            raise InvalidInput(
                "A simulation keeps its ledger in a file; remove [simulation], or name a file as ledger."
            )
        return f"{self.ledger}.simulation"

    @property
    def ledger_shown(self) -> str:
        """Its place without a password."""
        from dpfda.curves.tables.source import redact_password

        return redact_password(self.ledger_place)

    def source(self) -> Source:
        """Where the rows are."""
        from dpfda.curves.tables import find_source

        return find_source(str(self.data["source"]), self.data.get("query"), self.data.get("sheet"))

    def check_columns(self) -> None:
        """Refuse a policy whose table lacks a column that it names; only the names of columns are read."""
        from dpfda.curves.tables.batches import read_column_names
        from dpfda.curves.tables.loading import refuse_unknown_columns

        source = self.source()
        named = [(f"[data] {role}", str(self.data[role])) for role in ("id", "x", "y") if self.data.get(role)]
        refuse_unknown_columns(read_column_names(source, self.data.get("separator")), named, source)

    def load_curves(self, terms: StudyTerms, n: int | None = None) -> Loaded:
        """The site's curves in the shape that the study asks for. Local only.

        Nothing that stands in rows refuses, since whether a site answers is seen outside. `n` is the number of subjects
        that the site has agreed to: so many curves there are, whatever the table holds.
        """
        from dpfda.curves.tables import load_curves

        return load_curves(self.source(), self.reading(terms), n=n)

    def reading(self, terms: StudyTerms) -> Reading:
        """How the site's table is read for these terms."""
        from dpfda.curves.tables import Covariate, Domain, Reading

        options = {name: self.data[name] for name in ("id", "x", "y", *_HOW) if self.data.get(name) is not None}
        covariates = tuple(Covariate(each.name, each.bounds, each.levels) for each in terms.covariates)
        asked = {each.name for each in covariates}
        options["fill_down"] = tuple(name for name in options.get("fill_down", ()) if name in asked)
        options["one_design"] = _has_one_design(make_plan(terms))
        return Reading(Domain(*terms.domain), terms.y_bounds, covariates=covariates, rows="never refuse", **options)

    def objections(self, terms: StudyTerms, site: str) -> list[str]:
        """Why these terms may not run here, in sentences; empty if they may."""
        found = [*_find_objections(self.allow, terms)]
        if terms.further:
            found.append("The study is of several outcomes, and a site reads one: propose a study for each outcome.")
        if site not in {silo.name for silo in terms.silos}:
            return [*found, f"The study has no site {site!r}."]
        stated = terms.silo(site)
        if stated.epsilon > self.epsilon or stated.delta > self.delta:
            found.append(
                f"The study costs ({stated.epsilon:g}, {stated.delta:g}), the policy promises at most "
                f"({self.epsilon:g}, {self.delta:g})."
            )
        return found


def _has_one_design(plan: Plan) -> bool:
    """Whether a silo takes curves only if no design changes (`silo.refuse_changing_design`), whatever the method's name."""
    return any(isinstance(kind, EntrywiseGradient) for planned in plan.rounds for kind in planned.statistics)


def _find_objections(allow: Allowed, terms: StudyTerms) -> list[str]:
    """The terms that go beyond what the policy allows."""
    plan, found = make_plan(terms), []
    for word, value, listed in (
        ("method", terms.method, allow.methods),
        ("model", terms.model, allow.models),
        ("basis", terms.basis, allow.bases),
        ("study", name_study(terms), allow.studies),
        *(("covariate", each.name, allow.covariates or ()) for each in terms.covariates),
    ):
        if listed is not None and value not in listed:
            found.append(
                f"The policy does not allow the {word} {value!r}; what it allows is listed in [allow] {_PLURALS[word]}."
            )
    for word, inner, outer in (("domain", terms.domain, allow.domain), ("y_bounds", terms.y_bounds, allow.y_bounds)):
        if outer is not None and not (outer[0] <= inner[0] and inner[1] <= outer[1]):
            found.append(f"The study's {word} {list(inner)} is not within the policy's {list(outer)}.")
    for word, count, most in (
        ("rounds", len(plan.rounds), allow.max_rounds),
        ("basis functions", plan.basis.size, allow.max_basis),
    ):
        if most is not None and count > most:
            found.append(f"The study has {count} {word}, the policy allows {most}.")
    return found


def read_policy(path: Path) -> SitePolicy:
    """A `site.toml`; relative paths in it start from its folder."""
    fields = tables.refuse_unknown_names(path.name, tables.read_toml(path), _TOP)
    data = tables.refuse_unknown_names("[data]", tables.require(path.name, fields, "data"), _DATA)
    data["source"] = _resolve(path.parent, str(tables.require("[data]", data, "source")))
    if not isinstance(data.get("fill_down", []), list):
        raise InvalidInput('[data] fill_down must be a list of covariates, as in fill_down = ["weight"].')
    promise = tables.refuse_unknown_names(
        "[promise]", tables.require(path.name, fields, "promise"), ("epsilon", "delta")
    )
    budget = tables.refuse_unknown_names(
        "[budget]", tables.require(path.name, fields, "budget"), ("epsilon", "delta", "ledger")
    )
    for where, table in (("[promise]", promise), ("[budget]", budget)):
        for name in ("epsilon", "delta"):
            tables.require(where, table, name)
    epsilon, delta = _validate.privacy_pair(promise["epsilon"], promise["delta"])
    total_epsilon, total_delta = _validate.privacy_pair(budget["epsilon"], budget["delta"])
    simulation = tables.refuse_unknown_names("[simulation]", fields.get("simulation", {}), ("seed",))
    return SitePolicy(
        data, epsilon, delta, total_epsilon, total_delta,
        ledger=_choose_ledger(path.parent, data, budget),
        allow=_read_allowed(fields.get("allow", {})),
        **_read_approval(fields.get("approval", {})),
        seed=None if "seed" not in simulation else _validate.integer("seed", simulation["seed"], minimum=0),
    )  # fmt: skip


def _choose_ledger(folder: Path, data: Mapping[str, Any], budget: Mapping[str, Any]) -> str:
    """One ledger per data set: by default the one that `dpfda fit` would use, too."""
    if "ledger" in budget:
        return _resolve(folder, str(budget["ledger"]))
    from dpfda.curves.tables import find_source

    ledger = find_source(str(data["source"]), data.get("query"), data.get("sheet")).default_ledger
    return str(ledger if ledger.is_absolute() else folder.absolute() / ledger)


def _read_allowed(table: Any) -> Allowed:
    values = tables.refuse_unknown_names("[allow]", table, _ALLOW)
    for name in _LISTS:
        if name in values:
            if not isinstance(values[name], list):
                raise InvalidInput(f'[allow] {name} must be a list, as in {name} = ["..."].')
            values[name] = tuple(map(str, values[name]))
    for name in ("domain", "y_bounds"):
        if name in values:
            values[name] = _validate.interval(name, tables.parse_pair(name, values[name]))
    for name in ("max_rounds", "max_basis"):
        if name in values:
            values[name] = _validate.integer(name, values[name])
    return Allowed(**values)


def _read_approval(table: Any) -> dict[str, Any]:
    """Who must sign: [approval] persons = 2, people = { name = "public key" }."""
    values = tables.refuse_unknown_names("[approval]", table, ("persons", "people"))
    people = tables.refuse_unknown_names("[approval] people", values.get("people", {}), values.get("people", {}))
    for name, key in people.items():
        check_site_name(name)
        read_public_text(key)
    if len(set(people.values())) != len(people):
        raise InvalidInput("[approval] people: each person needs a key of their own; two of them are the same.")
    persons = _validate.integer("persons", values.get("persons", 1 if people else 0), minimum=0)
    if persons > len(people):
        raise InvalidInput(
            f"[approval] persons = {persons}, but people lists {len(people)}; list as many, with their keys."
        )
    return {"persons": persons, "approvers": people}


def _resolve(folder: Path, location: str) -> str:
    """Absolute, since the silo's process runs in another folder."""
    scheme, mark, rest = location.partition(":///")
    if mark and scheme.split("+")[0] in ("sqlite", "duckdb"):
        return f"{scheme}:///{folder.absolute() / rest}"
    return location if "://" in location else str(folder.absolute() / location)
