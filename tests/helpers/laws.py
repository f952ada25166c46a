"""Laws with known means, for tests of what released curves answer."""

from __future__ import annotations

import numpy as np

from dpfda.basis.basis import make_basis
from dpfda.inference.answers import Answers
from dpfda.inference.coding import Coding, make_coding
from dpfda.inference.law import Law


class Known(Answers):
    """Answers from a law that a test made."""

    def __init__(
        self, law: Law, coding: Coding, limits: tuple[float, float] = (-np.inf, np.inf), transform: str = "none"
    ) -> None:
        self.law_, self.coding_, self.limits_, self.transform_ = law, coding, limits, transform


def make_law(basis: str = "free-ends", size: int = 9, columns: int = 1, seed: int = 1, domain=(0.0, 1.0)) -> Law:
    """Coefficients that fall, and errors that are correlated between columns and functions."""
    rng = np.random.default_rng(seed)
    functions = make_basis(basis, size, domain)
    fall = np.maximum(functions.frequencies, 1.0) ** -1.5
    mean = rng.standard_normal((columns, size)) * fall
    root = rng.standard_normal((columns * size, columns * size)) * np.tile(fall, columns)[:, None] * 0.05
    return Law(functions, mean, root @ root.T)


def make_known(basis: str = "free-ends", size: int = 9, seed: int = 1, domain=(0.0, 1.0), **covariates) -> Known:
    coding = make_coding(covariates) if covariates else Coding()
    return Known(make_law(basis, size, len(coding.columns), seed, domain), coding)


def redraw(law: Law, rng: np.random.Generator) -> Law:
    """What a fit could have found if the law's mean were the truth."""
    root = np.linalg.cholesky(law.covariance + 1e-15 * np.eye(len(law.covariance)))
    drawn = law.mean + (root @ rng.standard_normal(len(root))).reshape(law.mean.shape)
    return Law(law.functions, drawn, law.covariance)
