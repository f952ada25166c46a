"""Public example data with PUBLIC domains and bounds; `nafld-lipid` and `pbcseq` are shipped, others need the extra `bench`.

Domains and bounds were chosen from what is known of the quantity (ages of adults, range of a score), not from
the extremes of the data. The paper's own data (SWAN) need a registration; `load_swan` reads the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from dpfda import _validate
from dpfda._typing import Interval
from dpfda.curves import r_datasets, shipped
from dpfda.curves.curves import Curves, with_intercept
from dpfda.curves.dataset_list import DATASETS, DatasetInfo
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd

SWAN_DOMAIN: Interval = (46.0, 63.0)
SWAN_Y_BOUNDS: Interval = (0.0, 500.0)
_SWAN_VISITS = (5, 10)


def list_datasets() -> list[DatasetInfo]:
    """The data sets that `load_dataset` and `load_frame` know."""
    return list(DATASETS)


def get_dataset_info(name: str) -> DatasetInfo:
    """What is publicly known of one data set."""
    known = {info.name: info for info in DATASETS}
    return known[_validate.choice("name", name, list(known))]


def load_frame(name: str) -> pd.DataFrame:
    """The data in long format: columns id, x, y and the covariates, one row for each point, values as recorded."""
    pandas = _import_pandas()
    table = load_table(name)
    frame: pd.DataFrame = table if isinstance(table, pandas.DataFrame) else table.to_pandas()
    return frame


def load_table(name: str) -> Any:
    """The same as `load_frame`, without pandas where the set is shipped: then a pyarrow table, else a pandas frame."""
    info = get_dataset_info(name)
    if name in shipped.read_sources():
        return shipped.read_shipped(name)
    return r_datasets.BUILDERS[name]()[["id", "x", "y", *info.covariates]].reset_index(drop=True)


def load_dataset(name: str, covariates: Sequence[str] = ()) -> Curves:
    """The data as `Curves`, without the points outside the public domain.

    Parameters
    ----------
    name : str
        One of `list_datasets()`.
    covariates : sequence of str
        With any, the design is an intercept and these covariates, clamped to their public bounds and scaled to [0, 1]; a
        subject with a missing covariate becomes an empty curve.

    Returns
    -------
    Curves

    Examples
    --------
    >>> from dpfda.curves.datasets import get_dataset_info, load_dataset
    >>> load_dataset("pbcseq", ["age", "female"])
    Curves(n=312, p=3)
    >>> get_dataset_info("pbcseq").domain, get_dataset_info("pbcseq").y_bounds
    ((0.0, 15.0), (-3.0, 4.0))
    """
    info, frame = get_dataset_info(name), nw.from_native(load_table(name), eager_only=True)
    for covariate in covariates:
        _validate.choice("covariates", covariate, list(info.covariates))
    columns = [_scale(frame[covariate].to_numpy(), info.covariates[covariate]) for covariate in covariates]
    design = with_intercept(np.column_stack(columns)) if columns else None
    ids, x, y = (frame[column].to_numpy() for column in ("id", "x", "y"))
    return Curves.from_long(ids, x, y, design).restrict(info.domain)


def load_swan(path: str | Path) -> Curves:
    """Estradiol over age from a SWAN file (ICPSR series 253) in long format, as in the paper's example.

    The file is a CSV or TSV with the columns SWANID, AGE, E2AVE and VISIT, one row for each visit. Visits 5 to
    10 and ages in `SWAN_DOMAIN` are used; negative values are SWAN's codes for missing. Every woman in the file
    stays, as an empty curve if need be: dropping women by their data, as the paper does, would leak. Use
    `SWAN_Y_BOUNDS` as public bounds.
    """
    frame = _read_table(Path(path))
    missing = [column for column in ("SWANID", "AGE", "E2AVE", "VISIT") if column not in frame.columns]
    if missing:
        raise InvalidInput(f"path must be a SWAN file in long format; it has no column {', '.join(missing)}.")
    age, estradiol, visit = (_coerce(frame[column]) for column in ("AGE", "E2AVE", "VISIT"))
    used = (visit >= _SWAN_VISITS[0]) & (visit <= _SWAN_VISITS[1]) & (age >= 0) & (estradiol >= 0)
    return Curves.from_long(frame["SWANID"], age, np.where(used, estradiol, np.nan)).restrict(SWAN_DOMAIN)


def _read_table(path: Path) -> pd.DataFrame:
    pandas = _import_pandas()
    try:
        with path.open(encoding="utf-8-sig") as file:
            separator = "\t" if "\t" in file.readline() else ","
        frame: pd.DataFrame = pandas.read_csv(path, sep=separator, encoding="utf-8-sig", dtype={"SWANID": str})
    except (OSError, UnicodeDecodeError, pandas.errors.ParserError, pandas.errors.EmptyDataError) as error:
        raise InvalidInput(f"path must be a readable CSV or TSV file: {error}.") from None
    return frame.rename(columns=lambda column: str(column).strip().upper())


def _coerce(column: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    pandas = _import_pandas()
    return np.asarray(pandas.to_numeric(column, errors="coerce"), dtype=np.float64)


def _scale(values: Any, bounds: Interval) -> np.ndarray[Any, np.dtype[np.float64]]:
    low, high = bounds
    return np.asarray((np.clip(np.asarray(values, dtype=np.float64), low, high) - low) / (high - low))


def _import_pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise InvalidInput(
            "Example data as frames need the package 'pandas'; install it with `pip install dpfda[data]`."
        ) from None
    return pandas
