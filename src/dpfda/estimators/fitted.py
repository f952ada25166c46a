"""What every fitted estimator can do with its functions: evaluate, band, export."""

from __future__ import annotations

from html import escape
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpfda import _validate
from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.curves.curves import Curves
from dpfda.errors import InvalidInput
from dpfda.estimators.estimated_error import estimate_error
from dpfda.estimators.parameters import check_is_fitted
from dpfda.estimators.promises import name_design_bounds
from dpfda.estimators.sites import Sites
from dpfda.inference.answers import Answers
from dpfda.inference.coding import Coding, Covariate, default_coding
from dpfda.inference.curve_scale import limit_means
from dpfda.inference.law import Law, pad_mean
from dpfda.inference.summary import write_differing_sites, write_estimand, write_summary_html
from dpfda.methods.run import Outcome
from dpfda.planning.expected_error import ExpectedError, found_insufficient_text
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statement import PrivacyStatement
from dpfda.protocol.terms import StudyTerms
from dpfda.protocol.transforms import NO_TRANSFORM, undo_transform

_NEARLY_ALL, _VAGUE = 0.99, 0.03  # share that counts as all subjects; its sd above which nothing is said


class FittedFunctions(Answers):
    """Coefficients in the units of (transformed) y, their covariance where it is known, and their privacy statement."""

    def check_answers(self) -> None:
        """Raise `NotFittedError` before a fit."""
        check_is_fitted(self, "privacy_")

    def describe_privacy(self) -> list[str]:
        """The lines of the privacy statement."""
        return str(self.privacy_).splitlines()

    def name_estimand(self, y: str, x: str) -> str:
        """What the curve is a mean of, with these names for y and x."""
        terms: StudyTerms | None = getattr(self, "terms_", None)
        binary = terms is not None and terms.outcome == "binary"
        return write_estimand(y, x, self.limits_, self.transform_, binary=binary, visit_cap=self._visit_cap)

    def describe_sites(self) -> list[str]:
        """A sentence about sites that differ, with the mean that is shown; none for one site or sites that are alike."""
        sites = self.sites_
        return [] if sites is None else write_differing_sites(sites.i_squared, sites.probability, sites.name_mean())

    def _repr_html_(self) -> str:
        if not hasattr(self, "privacy_"):
            return f"<pre>{escape(repr(self))}</pre>"
        return write_summary_html(self)

    @property
    def basis_(self) -> Basis:
        """The basis that the coefficients refer to."""
        check_is_fitted(self, "privacy_")
        return self._basis

    def _functions(self, x: ArrayLike) -> Floats:
        """Values of all coefficient functions at x, one column a function."""
        check_is_fitted(self, "privacy_")
        return self._basis.evaluate(self._places(x)) @ self._coefficients.T

    def _take_back(self, values: Floats) -> Floats:
        """Means of transformed y in the units of y, within their limits; means of y as they are."""
        if self.transform_ == NO_TRANSFORM:
            return values
        return undo_transform(self.transform_, np.clip(values, *limit_means(self.transform_, self.limits_)))

    def _places(self, x: ArrayLike) -> Floats:
        if isinstance(x, Curves):
            raise InvalidInput(
                "x must be numbers, got Curves: a fitted curve is evaluated at places x, e.g. fit.predict([30, 40, 50])."
            )
        return _validate.vector("x", np.atleast_1d(_validate.numeric("x", x)))

    @property
    def has_band(self) -> bool:
        """Whether this method has a confidence band."""
        check_is_fitted(self, "privacy_")
        return self._covariance is not None

    def _bands(self, level: float, x: ArrayLike | None, simultaneous: bool) -> tuple[Floats, Floats]:
        """Lower and upper limits of all coefficient functions, one column a function; with a transform, transformed back."""
        check_is_fitted(self, "privacy_")
        sides = [self.effect(name).band(level, x, simultaneous=simultaneous) for name in self.coding_.columns]
        return np.column_stack([low for low, _ in sides]), np.column_stack([high for _, high in sides])

    def to_skfda(self) -> Any:
        """The fitted function(s) as scikit-fda's `FDataBasis`; `basis_.from_fdata` is the inverse. Derivatives are kept.

        With a transform they are the functions of transformed y.
        """
        check_is_fitted(self, "privacy_")
        return self._basis.to_fdata(self._coefficients)

    def remember(
        self,
        basis: Basis,
        scaling: Scaling,
        outcome: Outcome,
        privacy: PrivacyStatement,
        coding: Coding | None = None,
    ) -> Self:
        """Become the fitted estimator of an outcome that was computed elsewhere, such as a study across sites.

        Parameters
        ----------
        basis, scaling : Basis, Scaling
            The public maps of the outcome's plan.
        outcome : Outcome
            Coefficients and, where the method has it, their covariance, in the plan's units.
        privacy : PrivacyStatement
            The promise that the outcome was released under.
        coding : Coding, optional
            The names and meaning of the design columns; when left out, as the study's terms have them, if these are known.
        """
        self._basis = basis
        self._coefficients = scaling.to_user_units(outcome.coefficients)
        self._covariance = None
        if outcome.covariance is not None:
            mixing = np.kron(scaling.mixing(), np.eye(len(outcome.covariance) // len(self._coefficients)))
            self._covariance = mixing @ outcome.covariance @ mixing.T
        self.expected_error_: ExpectedError | None = None
        if outcome.errors is not None:
            self.expected_error_ = estimate_error(basis, scaling, outcome.coefficients, outcome.errors)
        self.coef_ = self._public_shape(self._coefficients)
        self.n_basis_ = basis.size
        self.coding_ = self._name_columns(scaling) if coding is None else coding
        self.privacy_ = name_design_bounds(privacy, self.coding_.columns)
        self.heads_ = dict(outcome.heads)
        self.contributing_ = self._count_contributing(outcome.contributing)
        self.limits_, self.transform_, self._visit_cap = scaling.y_bounds, scaling.transform, scaling.visit_cap
        self.law_ = self._make_law()
        self.sites_ = None if outcome.sites is None else Sites.of(outcome.sites, basis, scaling)
        self.estimand_ = self.name_estimand(self.y_name, self.x_name)
        error = self.expected_error_
        hopeless = (found_insufficient_text(error),) if error is not None and error.insufficient else ()
        self.warnings_ = (*hopeless, *outcome.notices)
        return self

    def _count_contributing(self, found: tuple[float, float] | None) -> int | None:
        """About how many subjects have points in the domain, to two digits; None if releases do not show it."""
        subjects = sum(silo.n for silo in self.privacy_.silos)
        if found is None or subjects == 0 or found[1] > _VAGUE:
            return None
        share, sd = found
        return subjects if share + 2 * sd >= _NEARLY_ALL else int(float(f"{share * subjects:.2g}"))

    def _name_columns(self, scaling: Scaling) -> Coding:
        """From the terms of a study across sites, which has names; else column-1, column-2, ..."""
        terms: StudyTerms | None = getattr(self, "terms_", None)
        if terms is None:
            return default_coding(scaling.design_bounds)
        self.x_name, self.y_name = terms.x, terms.y
        covariates = tuple(Covariate(each.name, each.bounds, each.levels) for each in terms.covariates)
        return Coding(covariates, terms.intercept)

    def _make_law(self) -> Law:
        """The joint law of all coefficients; functions beyond the basis, where the method has any, have mean zero."""
        if self._covariance is None:
            return Law(self._basis, self._coefficients, None)
        size = len(self._covariance) // len(self._coefficients)
        return Law(self._basis.resize(size), pad_mean(self._coefficients, size), self._covariance)

    def _public_shape(self, coefficients: Floats) -> Floats:
        return coefficients
