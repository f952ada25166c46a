"""What `dpfda plan` computes about a study: forecasts, the decision table, targets, theory. From public numbers only."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpfda import _validate
from dpfda.errors import InvalidInput
from dpfda.federation.toml_tables import read_toml, refuse_unknown_names, require
from dpfda.planning.decisions import BAND_WIDTHS, TIMES, Row, decide, leave_out, reach
from dpfda.planning.expected_error import ExpectedError
from dpfda.planning.planned_study import PlannedStudy
from dpfda.planning.theory import (
    Setting,
    SiteBudget,
    compare_problems,
    delta_condition,
    heterogeneous_delta_conditions,
    heterogeneous_lower,
    heterogeneous_optimal_r,
    heterogeneous_upper,
    optimal_r,
    price_of_privacy,
    regime,
    upper_conditions,
    what_helps_most,
)
from dpfda.planning.theory import rate as rate_terms
from dpfda.planning.words import explain, tell_trust
from dpfda.protocol.terms import SiloTerms

_CHANGES = {"n": "twice the subjects at every site", "m": "twice the visits of each subject", "S": "twice the sites",
            "epsilon": "twice the budget"}  # fmt: skip
_RATES = {"none": "none", "central": "cdp", "federated": "fdp", "local": "ldp"}


def read_sites(path: str) -> tuple[tuple[SiloTerms, ...], dict[str, Any]]:
    """The [[site]] tables of a TOML file and the settings beside them."""
    known = ("site", "m", "alpha", "covariates", "y_bounds", "spread", "noise", "signal")
    table = refuse_unknown_names(path, read_toml(Path(path)), known)
    entries = require(path, table, "site")
    if not isinstance(entries, list) or not entries:
        raise InvalidInput(f"{path} must hold at least one [[site]] table.")
    return tuple(_read_site(number, entry) for number, entry in enumerate(entries, start=1)), table


def _read_site(number: int, entry: Mapping[str, Any]) -> SiloTerms:
    where = f"[[site]] number {number}"
    table = refuse_unknown_names(where, entry, ("name", "n", "epsilon", "delta"))
    n = _validate.integer(f"n of {where}", require(where, table, "n"))
    epsilon, delta = _validate.privacy_pair(require(where, table, "epsilon"), require(where, table, "delta"))
    return SiloTerms(str(table.get("name", f"site-{number}")), n, epsilon, delta)


def average_sites(sites: Sequence[SiloTerms]) -> dict[str, Any]:
    """Equal sites that stand for unequal ones in the theory: the same sums of n and of (n eps)^2; delta is the largest."""
    count = len(sites)
    n = sum(site.n for site in sites) / count
    private = sum((site.n * site.epsilon) ** 2 for site in sites) / count
    return {"n": round(n), "S": count, "epsilon": math.sqrt(private) / n, "delta": max(site.delta for site in sites)}


def answer(
    study: PlannedStudy, error: float | None = None, width: float | None = None, law: str = "symmetric"
) -> dict[str, Any]:
    """Everything, JSON-able; `error` is a typical distance, `width` that of a pointwise 95% band, `law` how y scatters."""
    if error is not None and width is not None:
        raise InvalidInput("--error and --target-width say the same in two ways; give one of them.")
    if width is not None:
        error = _validate.positive("--target-width", width) / BAND_WIDTHS
    if error is not None:
        _validate.positive("--error", error)
    setting, table = study.setting, decide(study)
    sizes = _list_sizes(study)
    forecast, doubling = _list_parts(study.expected()), _try_doubling(study)
    theory = {**_apply_theory(setting, sizes), "delta_condition": check_delta(study)}
    theory["compared"] = _compare(setting)
    theory["upper_conditions"] = _check_upper(study, setting, theory["optimal_r"])
    found: dict[str, Any] = {
        "study": {**sizes, "d": study.d, "delta": study.delta, "y_bounds": list(study.y_bounds),
                  "privacy": setting.privacy, "subjects": study.subjects,
                  "sites": [dataclasses.asdict(site) for site in study.sites]},
        "theory": theory,
        "forecast": forecast,
        "doubling": doubling,
        "decision": _list_decisions(study, table, error),
        "price": _price_privacy(table, sizes, setting, study),
        "trust": {"forecast": tell_trust(law), "local": tell_trust("local")},
        "sentences": _sentences(forecast, doubling, None),
        "sentences_with_theory": _sentences(forecast, doubling, theory["dominant"]),
    }  # fmt: skip
    if study.sites:
        found["unequal"] = _bound_unequal_sites(study)
    if error is not None:
        found["target"] = _find_target(study, error, width)
    return found


def _sentences(forecast: Mapping[str, Any], doubling: Sequence[Mapping[str, Any]], dominant: str | None) -> list[str]:
    parts = {name: forecast[name] for name in ("privacy", "sampling", "bias")}
    return explain(parts, [(row["change"], row["error_times"]) for row in doubling], dominant)


def _apply_theory(setting: Setting, sizes: Mapping[str, Any]) -> dict[str, Any]:
    where = regime(setting.problem, setting.privacy, **sizes)
    terms = rate_terms(setting.problem, setting.privacy, **sizes)
    helps = what_helps_most(setting.problem, setting.privacy, **sizes)
    exits = [dataclasses.asdict(way) for way in where.exits]
    return {
        "dominant": where.dominant,
        "terms": terms.as_dict(),
        "source": terms.source,
        "elasticities": dict(helps.overall),
        "helps_most": helps.best,
        "exits": exits,
        "optimal_r": optimal_r(setting.problem, setting.privacy, **sizes).value,
        "note": "rates are up to constants and powers of logarithms",
    }


def _list_sizes(study: PlannedStudy) -> dict[str, Any]:
    """The numbers that the theory speaks of."""
    d = study.setting.d
    return {"n": study.n, "m": study.m, "S": study.S, "epsilon": study.epsilon, "alpha": study.alpha, "d": d}


def check_delta(study: PlannedStudy) -> dict[str, Any]:
    """How small delta must be for the lower bound to be proved (up to a constant): of the strictest site, if they differ."""
    setting = study.setting
    if study.sites:
        sites = [SiteBudget(site.n, site.epsilon) for site in study.sites]
        conditions = heterogeneous_delta_conditions(
            setting.problem, sites, m=study.m, alpha=study.alpha, d=max(study.d, 1)
        )
        pairs = zip(conditions, study.sites, strict=True)
        condition, strictest = min(pairs, key=lambda pair: pair[0].largest / pair[1].delta)
        delta, site, epsilon = strictest.delta, strictest.name, max(site.epsilon for site in study.sites)
    else:
        condition = delta_condition(setting.problem, setting.privacy, **_list_sizes(study))
        delta = study.delta
        site, epsilon = None, study.epsilon
    return {
        "site": site,
        "epsilon_below_one": epsilon < 1,
        "condition": f"{condition.shape} <= {condition.bound:.3g}",
        "largest_delta": condition.largest,
        "delta": delta,
        "holds": condition.allows(delta) and epsilon < 1,
        "source": condition.source,
        "note": condition.note,
    }


def _check_upper(study: PlannedStudy, setting: Setting, r: float) -> list[dict[str, Any]]:
    """What the upper bounds ask of n, m, r and eta, at the theory's r; up to a constant."""
    sites = [SiteBudget(site.n, site.epsilon) for site in study.members]
    found = upper_conditions(setting.problem, sites, m=study.m, r=max(1.0, r), d=setting.d)
    return [{**dataclasses.asdict(condition), "holds": condition.holds} for condition in found]


def _compare(setting: Setting) -> list[dict[str, Any]]:
    """The rate of a mean beside earlier results for the same subjects."""
    privacy, sizes = setting.privacy, {"n": setting.n, "m": setting.m, "alpha": setting.alpha, "S": setting.S}
    rows = compare_problems(privacy, epsilon=setting.epsilon or 1.0, **sizes)
    return [
        {"problem": row.problem, "protects": row.protects, "rate": row.value, "reference": row.reference}
        for row in rows
    ]


def _list_parts(found: ExpectedError) -> dict[str, Any]:
    names = ("bias", "sampling", "privacy", "total")
    parts: dict[str, Any] = {name: float(getattr(found, name)) for name in names}
    return {**parts, "typical_distance": math.sqrt(parts["total"]), "insufficient": bool(found.insufficient)}


def _try_doubling(study: PlannedStudy) -> list[dict[str, Any]]:
    """What doubling one thing does to the forecast, the most helpful first."""
    now = study.expected().total
    rows = []
    for name, words in _CHANGES.items():
        after = study.expected(**{name: 2 * getattr(study, name)}).total
        rows.append({"change": words, "variable": name, "error_times": after / now})
    return sorted(rows, key=lambda row: row["error_times"])


def _list_decisions(study: PlannedStudy, table: Sequence[Row], error: float | None) -> dict[str, Any]:
    """The table: typical distances by model, sites and budget, all with the same subjects."""
    rows = [
        {
            "model": row.model,
            "sites": row.sites,
            "typical_distance": list(row.distances),
            "meets_target": None if error is None else [distance <= error for distance in row.distances],
        }
        for row in table
    ]
    return {
        "subjects": study.subjects,
        "epsilon_times": list(TIMES),
        "epsilon": None if study.sites else [times * study.epsilon for times in TIMES],
        "rows": rows,
    }


def _price_privacy(
    table: Sequence[Row], sizes: Mapping[str, Any], setting: Setting, study: PlannedStudy
) -> dict[str, Any]:
    """The same subjects pooled, at their sites, or each alone, against no privacy, at the study's own budget."""
    rates, own = price_of_privacy(setting.problem, **sizes).ratios, TIMES.index(1.0)
    errors = {row.model: row.errors[own].total for row in table if row.model != "federated"}
    errors["federated"] = study.expected().total
    return {
        "by_rate": {name: float(value) for name, value in rates.items()},
        "by_forecast": {_RATES[model]: error / errors["none"] for model, error in errors.items()},
        "note": "squared error relative to no privacy; by_rate up to constants, by_forecast from the planner",
    }


def _bound_unequal_sites(study: PlannedStudy) -> dict[str, Any]:
    """The two bounds for sites as they are (harmonic mean of variances; one round), and what each site brings."""
    sites, d = [SiteBudget(site.n, site.epsilon) for site in study.sites], max(study.d, 1)
    r = max(1.0, heterogeneous_optimal_r(sites, m=study.m, alpha=study.alpha, d=d))
    upper = heterogeneous_upper(sites, r, m=study.m, alpha=study.alpha, d=d)
    lower = heterogeneous_lower(sites, m=study.m, alpha=study.alpha, d=d)
    weights = zip(study.sites, upper.weights, strict=True)
    return {
        "upper": upper.value,
        "lower": lower.value,
        "optimal_r": r,
        "source": "Theorems 6.2 and 7.1" if study.d else "Theorems 4.2 and 5.1",
        "weights": [{"site": site.name, "weight": float(weight)} for site, weight in weights],
        "without": [{"site": name, "error_times": times} for name, times in leave_out(study).items()],
    }


def _find_target(study: PlannedStudy, error: float, width: float | None) -> dict[str, Any]:
    """The budget, or the subjects, that bring the typical distance down to `error`; None where nothing does."""
    target = reach(study, error)
    return {
        "typical_distance": error,
        "width": width,
        "epsilon": target.epsilon,
        "n": target.n,
        "epsilon_times": None if target.epsilon is None else target.epsilon / study.epsilon,
        "n_times": None if target.n is None else target.n / study.n,
    }
