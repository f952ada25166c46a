"""What the columns of a design by formula mean: profiles by names, products and splines included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpfda._typing import Floats
from dpfda.curves.tables.design import Design
from dpfda.errors import InvalidInput
from dpfda.inference.coding import Coding, make_coding


@dataclass(frozen=True)
class DesignCoding(Coding):
    """A coding whose columns are those of a design with products or splines."""

    design: Design | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the design columns."""
        assert self.design is not None
        return self.design.names

    def row(self, profile: Mapping[str, Any]) -> Floats:
        """The design row of a profile."""
        assert self.design is not None
        return self.design.row(**self.complete(profile))

    def to_dict(self) -> dict[str, Any]:
        """Refused: a file that others read has no products or splines yet."""
        raise InvalidInput(
            "a design with products or splines cannot be written to a result file; use predict and curve_at in Python."
        )


def make_design_coding(design: Design, covariates: Mapping[str, Any]) -> Coding:
    """The coding of a design: an ordinary one if every column is a covariate or a level."""
    named = {name: covariates[name] for name in design.parsed.names}
    plain = make_coding(named, intercept=design.parsed.intercept)
    if design.parsed.is_plain:
        return plain
    return DesignCoding(plain.covariates, plain.intercept, design=design)
