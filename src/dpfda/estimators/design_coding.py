"""What the columns of a design by formula mean: profiles by names, products and splines included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpfda.curves.tables.design import Design
from dpfda.inference.coding import Coding, make_coding
from dpfda.inference.terms import Factor, Spline


def make_design_coding(design: Design, covariates: Mapping[str, Any]) -> Coding:
    """The coding of a design: the same columns, in the closed form that result files hold."""
    named = {name: covariates[name] for name in design.parsed.names}
    plain = make_coding(named, intercept=design.parsed.intercept)
    terms = tuple(
        tuple(Factor(each.name, Spline(each.knots, each.degree) if each.kind == "spline" else None) for each in term)
        for term in design.parsed.terms
    )
    return Coding(plain.covariates, plain.intercept, terms)
