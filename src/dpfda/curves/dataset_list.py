"""What is publicly known of the example data; licences are those of the R packages that publish them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpfda._typing import Interval

_YES_NO: Interval = (0.0, 1.0)


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
    licence: str
    covariates: Mapping[str, Interval] = field(default_factory=dict)


DATASETS: tuple[DatasetInfo, ...] = (
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
        licence="LGPL-2.0-or-later",
    ),
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
        licence="GPL-2.0-or-later",
    ),
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
        licence="GPL-2.0-only",
    ),
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
        licence="LGPL-2.0-or-later",
    ),
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
        licence="GPL-2.0-or-later",
    ),
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
        licence="GPL-2.0-or-later",
    ),
)
