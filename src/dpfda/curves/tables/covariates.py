"""Design columns from covariates: numeric by PUBLIC bounds, categorical by a PUBLIC list of levels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpfda import _validate
from dpfda._typing import Interval
from dpfda.curves.tables.cells import Cells, write_texts
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

INDICATOR: Interval = (0.0, 1.0)
_PLAIN = Cells()
UNLISTED = -np.inf  # an entry that is no level: as good as none, but not a blank that could be filled


@dataclass(frozen=True)
class Covariate:
    """One covariate: with `bounds` it is numeric; with `levels` categorical, the first level being the reference."""

    name: str
    bounds: Interval | None = None
    levels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.bounds is None) == (not self.levels):
            raise InvalidInput(
                f"The covariate {self.name!r} needs public facts: --bounds {self.name}=LOW:HIGH if it is a number, "
                f"or --levels {self.name}=first,second,... if it is a category."
            )
        if self.bounds is not None:
            object.__setattr__(self, "bounds", _validate.interval(f"bounds of {self.name}", self.bounds))
        elif len(self.levels) < 2 or len(set(self.levels)) != len(self.levels):
            raise InvalidInput(f"--levels {self.name}= must list at least two different levels, the reference first.")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its design columns: itself, or one indicator for each level but the reference."""
        return (self.name,) if self.bounds is not None else tuple(f"{self.name}: {level}" for level in self.levels[1:])

    @property
    def column_bounds(self) -> tuple[Interval, ...]:
        """The public bounds of its design columns."""
        return (self.bounds,) if self.bounds is not None else (INDICATOR,) * (len(self.levels) - 1)

    @staticmethod
    def places(covariates: Sequence[Covariate]) -> dict[str, slice]:
        """Which design columns belong to each of these covariates, in their order."""
        ends = [0, *itertools.accumulate(len(covariate.columns) for covariate in covariates)]
        names = (covariate.name for covariate in covariates)
        return {name: slice(*pair) for name, pair in zip(names, itertools.pairwise(ends), strict=True)}

    def indicators(self, values: pl.Series, cells: Cells = _PLAIN) -> NDArray[np.float64]:
        """One column for each level but the reference; NaN where there is no value, `UNLISTED` where it is no level."""
        written = write_levels(values)
        text, blank = written.to_numpy(), cells.text(written).is_null().to_numpy()
        design = np.full((len(text), len(self.levels) - 1), UNLISTED)
        design[blank] = np.nan
        for position, level in enumerate(self.levels):
            rows = text == level
            design[rows] = 0.0
            if position:
                design[rows, position - 1] = 1.0
        return design


def write_levels(values: pl.Series) -> pl.Series:
    """Categories as text without spaces around; 1.0 is 1."""
    return write_texts(values).str.strip_chars().str.replace(r"\.0$", "")
