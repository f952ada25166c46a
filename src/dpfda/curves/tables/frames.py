"""Tables in memory (pandas, polars, pyarrow) with covariates by name: text columns become indicators of public levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.curves.tables.covariates import Covariate
from dpfda.curves.tables.design import Design, read_facts, write_texts
from dpfda.curves.tables.owner_view import LevelTally, judge_levels
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    from dpfda._typing import Floats


def make_design(design: str | Sequence[str] | None, covariates: Mapping[str, Any]) -> Design:
    """The design of a formula or of a list of covariates; of all of them if none is named."""
    if isinstance(design, str):
        return Design(design, covariates)
    names = list(read_facts(covariates)) if design is None else [str(name) for name in design]
    if not names:
        raise InvalidInput("design must name at least one covariate; leave it out for a mean.")
    return Design(" + ".join(f"`{name}`" for name in names), covariates)


def take_design(frame: Any, design: Design) -> Floats:
    """The design rows of a table; a list of levels that cannot be right is refused."""
    columns: dict[str, Any] = {}
    for name in design.parsed.names:
        if name not in frame.columns:
            raise InvalidInput(f"design names the column {name!r}, which is not among {list(frame.columns)}.")
        column = frame.get_column(name)
        levels = design.facts[name].levels
        if levels:
            columns[name] = write_texts(column.to_list())
            _refuse_wrong_levels(name, levels, columns[name])
        else:
            columns[name] = _numbers(name, column, f"its public levels in covariates, such as {{{name!r}: ['a', 'b']}}")
    return design.matrix(columns)


def refuse_dates(table: Any, x: str) -> None:
    """Say how dates become the numbers that estimators take; other columns are left to who reads them."""
    import narwhals as nw

    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame) and x in frame.columns and frame.schema[x].is_temporal():
        raise InvalidInput(
            f"x must be numeric, but {x!r} holds dates: count days from a public date, in pandas "
            f"(df[{x!r}] - pd.Timestamp('2019-01-01')).dt.days; dpfda.save(fit, path, x_origin='2019-01-01') shows dates."
        )


def take_values(frame: Any, name: str, levels: Sequence[str] | None) -> Floats:
    """The y of every row: numbers or, with two public levels, a yes/no column as 0 and 1."""
    if levels is None:
        return _numbers(
            name, frame.get_column(name), "both values of a yes/no column as y_levels, such as ('no', 'yes')"
        )
    known = [str(level) for level in levels]
    if len(known) != 2 or known[0] == known[1]:
        raise InvalidInput("y_levels must be two different values, that of 0 first, such as ('no', 'yes').")
    texts = write_texts(frame.get_column(name).to_list())
    strange = next((text for text in texts if text is not None and text not in known), None)
    if strange is not None:
        raise InvalidInput(f"y has the value {strange!r} in column {name!r}, which is not one of y_levels {known}.")
    return np.array([np.nan if text is None else float(known.index(text)) for text in texts])


def _numbers(name: str, column: Any, instead: str) -> Floats:
    import narwhals as nw

    from dpfda import _validate

    if column.dtype in (nw.String, nw.Categorical, nw.Enum):
        raise InvalidInput(f"{name} must be numeric, got text; give {instead}, or convert it to numbers.")
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        column = column.cast(nw.Float64)
    return _validate.numeric(name, column.to_numpy())


def _refuse_wrong_levels(name: str, levels: tuple[str, ...], texts: list[str | None]) -> None:
    tally = LevelTally(seen={text for text in texts if text in levels})
    for row, text in enumerate(texts, start=1):
        tally.missing += text is None
        if text is not None and text not in levels:
            tally.first_unlisted = tally.first_unlisted or f"row {row} is {text!r}"
            tally.unlisted += 1
    wrong = judge_levels(Covariate(name, levels=levels), tally, len(texts))
    if wrong is not None:
        said = wrong.replace(f"--levels {name}=", "covariates")
        raise InvalidInput(said.replace("with --missing", "by making it missing in the table"))
