"""What `dpfda plan` computes about a study: regime, what helps, prices, forecast errors. From public numbers only."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpfda import _validate
from dpfda.errors import InvalidInput
from dpfda.federation.toml_tables import read_toml, refuse_unknown_names, require
from dpfda.planning.expected_error import ExpectedError, expected_error
from dpfda.planning.theory import (
    Setting,
    SiteBudget,
    delta_condition,
    heterogeneous_delta_conditions,
    heterogeneous_lower,
    heterogeneous_optimal_r,
    heterogeneous_upper,
    optimal_r,
    price_of_privacy,
    regime,
    what_helps_most,
)
from dpfda.planning.theory import rate as rate_terms
from dpfda.protocol.terms import SiloTerms

_CHANGES = {"n": "twice the subjects at every site", "m": "twice the visits of each subject", "S": "twice the sites",
            "epsilon": "twice the budget"}  # fmt: skip
_EPSILONS, _SUBJECTS = (1e-3, 100.0), (10.0, 1e8)


@dataclass(frozen=True)
class PlannedStudy:
    """A study as its planner describes it; `sites` is empty when all sites are alike."""

    n: int
    m: float
    S: int
    epsilon: float
    delta: float
    alpha: float
    d: int
    y_bounds: tuple[float, float]
    guesses: tuple[tuple[str, float], ...] = ()
    sites: tuple[SiloTerms, ...] = ()
    declared: tuple[tuple[str, Any], ...] = ()

    @property
    def setting(self) -> Setting:
        """The study for the theory; unequal sites are replaced by equal ones, see `average_sites`."""
        problem, privacy = ("vcm" if self.d else "mean"), ("fdp" if self.S > 1 else "cdp")
        return Setting(problem, privacy, self.n, self.m, self.alpha, self.S, max(self.d, 1), self.epsilon)  # type: ignore[arg-type]

    def expected(self, **changes: Any) -> ExpectedError:
        """The planner's forecast for this study, or for one that differs in n, m, S or epsilon."""
        changed = dataclasses.replace(self, **changes)
        guesses: Any = dict(self.guesses)
        terms: Any = changed.n
        if self.sites:
            terms = _scale_sites(self.sites, changed.n / self.n, changed.S / self.S, changed.epsilon / self.epsilon)
        return expected_error(
            terms, changed.m, y_bounds=self.y_bounds, epsilon=changed.epsilon, delta=self.delta, S=changed.S, d=self.d,
            **dict(self.declared), **guesses,
        )  # fmt: skip


def _scale_sites(sites: Sequence[SiloTerms], n: float, S: float, epsilon: float) -> list[SiloTerms]:
    """Unequal sites with all sizes and budgets multiplied; a fractional number of copies is rounded."""
    return [
        dataclasses.replace(
            site, name=f"{site.name}-{copy}", n=max(1, round(site.n * n)), epsilon=site.epsilon * epsilon
        )
        for copy in range(max(1, round(S)))
        for site in sites
    ]


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
    """Equal sites that stand for unequal ones: the same sums of n and of (n eps)^2; delta is the largest."""
    count = len(sites)
    n = sum(site.n for site in sites) / count
    private = sum((site.n * site.epsilon) ** 2 for site in sites) / count
    return {"n": round(n), "S": count, "epsilon": math.sqrt(private) / n, "delta": max(site.delta for site in sites)}


def answer(study: PlannedStudy, error: float | None = None) -> dict[str, Any]:
    """Everything, JSON-able."""
    setting = study.setting
    sizes = {"n": study.n, "m": study.m, "S": study.S, "epsilon": study.epsilon, "alpha": study.alpha, "d": setting.d}
    found: dict[str, Any] = {
        "study": {**sizes, "d": study.d, "delta": study.delta, "y_bounds": list(study.y_bounds),
                  "declared": dict(study.declared), "privacy": setting.privacy,
                  "sites": [dataclasses.asdict(site) for site in study.sites]},
        "theory": {**_apply_theory(setting, sizes), "delta_condition": _check_delta(study, sizes, setting)},
        "forecast": _forecast(study),
        "doubling": _try_doubling(study),
        "price": _price_privacy(study, sizes, setting),
    }  # fmt: skip
    if study.sites:
        found["unequal"] = _bound_unequal_sites(study)
    if error is not None:
        found["target"] = _find_target(study, error)
    return found


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


def _check_delta(study: PlannedStudy, sizes: Mapping[str, Any], setting: Setting) -> dict[str, Any]:
    """How small delta must be for the lower bound to be proved (up to a constant): of the strictest site, if they differ."""
    if study.sites:
        sites = [SiteBudget(site.n, site.epsilon) for site in study.sites]
        conditions = heterogeneous_delta_conditions(
            setting.problem, sites, m=study.m, alpha=study.alpha, d=max(study.d, 1)
        )
        pairs = zip(conditions, study.sites, strict=True)
        condition, strictest = min(pairs, key=lambda pair: pair[0].largest / pair[1].delta)
        delta, site, epsilon = strictest.delta, strictest.name, max(site.epsilon for site in study.sites)
    else:
        condition, delta = delta_condition(setting.problem, setting.privacy, **sizes), study.delta
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


def _forecast(study: PlannedStudy) -> dict[str, Any]:
    return _list_parts(study.expected())


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


def _price_privacy(study: PlannedStudy, sizes: Mapping[str, Any], setting: Setting) -> dict[str, Any]:
    """The same subjects pooled, at their sites, or each alone, against no privacy."""
    rates = price_of_privacy(setting.problem, **sizes).ratios
    here = study.expected()
    pooled = dataclasses.replace(study, n=study.n * study.S, S=1, sites=()).expected()
    free = pooled.bias + pooled.sampling
    return {
        "by_rate": {name: float(value) for name, value in rates.items()},
        "by_forecast": {"none": 1.0, "cdp": pooled.total / free, "fdp": here.total / free},
        "note": "error relative to no privacy; by_rate up to constants, by_forecast from the planner (no forecast for LDP)",
    }


def _bound_unequal_sites(study: PlannedStudy) -> dict[str, Any]:
    """The two bounds for sites as they are (harmonic mean of variances; one round), and the weights of the upper one."""
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
    }


def _find_target(study: PlannedStudy, error: float) -> dict[str, Any]:
    """The budget, or the subjects, that bring the typical distance down to `error`; None where nothing does."""
    wanted = _validate.positive("--error", error) ** 2
    epsilon = _find_least(lambda value: study.expected(epsilon=value).total <= wanted, *_EPSILONS)
    subjects = _find_least(lambda value: study.expected(n=math.ceil(value)).total <= wanted, *_SUBJECTS)
    n = None if subjects is None else math.ceil(subjects)
    return {
        "typical_distance": error,
        "epsilon": epsilon,
        "n": n,
        "epsilon_times": None if epsilon is None else epsilon / study.epsilon,
        "n_times": None if n is None else n / study.n,
    }


def _find_least(enough: Callable[[float], bool], low: float, high: float) -> float | None:
    """The smallest value between the limits that is enough, to three digits; None if the largest is not."""
    if not enough(high):
        return None
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
