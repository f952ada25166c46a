"""Local checks of a study against the site's own table, for the data steward's eyes. NOT PRIVATE, and never sent.

They count rows and subjects, so whoever decides after reading them decides with knowledge of the data: that decision is
outside the guarantee, and every place that shows these checks says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda.curves.curves import Curves
from dpfda.curves.known_ranges import KnownMeasure, find_measures
from dpfda.curves.tables.batches import read_column_names
from dpfda.curves.tables.loading import read_curves
from dpfda.errors import InvalidInput
from dpfda.federation.policy import SitePolicy
from dpfda.protocol.terms import CovariateTerms, StudyTerms

WARNING = (
    "NOT PRIVATE, for the data's owner only. A decision that depends on these numbers is outside the guarantee: it shows "
    "something of the data that no epsilon pays for."
)
_PLAUSIBLE = 0.9  # share of values inside a known range from which on the unit looks right
_RARE = 10  # subjects of a level below which it is worth a sentence


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what, what was found, and whether a person should look again."""

    what: str
    found: str
    good: bool

    def fields(self) -> dict[str, Any]:
        """As JSON."""
        return {"what": self.what, "found": self.found, "good": bool(self.good)}


def check_data(policy: SitePolicy, terms: StudyTerms, site: str) -> list[Check]:
    """Columns, units, missing values, rows outside domain and bounds, subjects and subjects per level."""
    columns = _check_columns(policy, terms)
    if not all(check.good for check in columns):
        return columns
    curves, findings = read_curves(policy.source(), policy.reading(terms))
    tally, stated = findings.tally, terms.silo(site).n
    outside, clamped = tally.points - tally.inside, tally.inside - tally.within_bounds
    return [
        *columns,
        Check("subjects", f"{tally.subjects:,}, the study states {stated:,}", tally.subjects == stated),
        _share("rows without x or y", tally.missing, tally.rows),
        _share(f"points outside the domain {list(terms.domain)}", outside, tally.points),
        _share(f"values outside the bounds {list(terms.y_bounds)}", clamped, tally.inside),
        _share("subjects without a usable point", tally.empty, tally.subjects),
        _share("subjects whose rows cannot be right", tally.spoiled, tally.subjects),
        *(_share(f"subjects with {name} outside its bounds", count, tally.subjects)
          for name, count in tally.covariates.items()),
        *_check_units(str(policy.data["y"]), terms, curves),
        *_count_levels(terms.covariates, curves),
    ]  # fmt: skip


def _check_columns(policy: SitePolicy, terms: StudyTerms) -> list[Check]:
    try:
        names = read_column_names(policy.source(), policy.data.get("separator"))
    except InvalidInput as error:
        return [Check("table", str(error), False)]
    roles = [(role, str(policy.data.get(role))) for role in ("id", "x", "y")]
    roles += [("covariate", each.name) for each in terms.covariates]
    return [
        Check(f"column {name} ({role})", "found" if name in names else "missing", name in names) for role, name in roles
    ]


def _share(what: str, count: int, of: int) -> Check:
    share = count / of if of else 0.0
    return Check(what, f"{count:,} of {of:,} ({100 * share:.1f}%)", share <= 1 - _PLAUSIBLE)


def _check_units(column: str, terms: StudyTerms, curves: Curves) -> list[Check]:
    """Whether the values lie where this measure can lie, by physiology and instruments."""
    known: dict[str, KnownMeasure] = {each.name: each for text in (column, terms.y) for each in find_measures(text)}
    found = []
    for measure in known.values():
        inside = np.count_nonzero((curves.y >= measure.low) & (curves.y <= measure.high))
        share = inside / curves.n_points if curves.n_points else 0.0
        plausible = f"{measure.name} in {measure.unit} lies in {measure.low:g} to {measure.high:g}"
        found.append(
            Check(f"unit of {column}", f"{100 * share:.1f}% of the values fit: {plausible}", share >= _PLAUSIBLE)
        )
    return found


def _count_levels(covariates: tuple[CovariateTerms, ...], curves: Curves) -> list[Check]:
    found, column = [], 1
    valid = curves.design[:, 0] != 0
    for covariate in covariates:
        width = len(covariate.columns)
        if covariate.levels:
            shown = curves.design[:, column : column + width] != 0
            counts = [int((valid & ~shown.any(axis=1)).sum()), *(int(each) for each in shown.sum(axis=0))]
            levels = ", ".join(f"{level}: {count:,}" for level, count in zip(covariate.levels, counts, strict=True))
            found.append(Check(f"subjects per level of {covariate.name}", levels, min(counts) >= _RARE))
        column += width
    return found
