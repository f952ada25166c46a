"""Ranges that common measures can plausibly take, from physiology, instruments and definitions; never from your data."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class KnownMeasure:
    """A public range: everything a living person or the instrument can show, with where it comes from.

    Bounds are in the units of the measure, also those for a transform.
    """

    name: str
    words: str
    unit: str
    low: float
    high: float
    why: str


KNOWN = (
    KnownMeasure(
        "age", "age alter years_old", "years", 0, 120, "oldest verified person: 122; use your study's entry rule"
    ),
    KnownMeasure("height", "height hgt stature", "cm", 20, 230, "preterm newborn to very tall adult"),
    KnownMeasure("weight", "weight wgt wt mass kg", "kg", 0.2, 300, "from preterm newborns on; adults 30:250"),
    KnownMeasure("body mass index", "bmi", "kg/m^2", 10, 80, "below 10 and above 80 are hardly compatible with life"),
    KnownMeasure("systolic blood pressure", "sbp systolic bp_sys", "mmHg", 50, 260, "cuffs measure up to 260-300"),
    KnownMeasure("diastolic blood pressure", "dbp diastolic bp_dia", "mmHg", 20, 160, ""),
    KnownMeasure("heart rate", "hr pulse heart_rate bpm", "1/min", 20, 250, ""),
    KnownMeasure("body temperature", "temp temperature", "°C", 30, 43, ""),
    KnownMeasure("oxygen saturation", "spo2 sao2 oxygen", "%", 50, 100, "by definition at most 100"),
    KnownMeasure("HDL cholesterol", "hdl", "mg/dl", 0, 150, "in mmol/l divide by 38.7"),
    KnownMeasure("LDL cholesterol", "ldl", "mg/dl", 0, 400, ""),
    KnownMeasure("total cholesterol", "chol cholesterol tc", "mg/dl", 50, 500, ""),
    KnownMeasure("triglycerides", "trig triglycerides tg", "mg/dl", 0, 1500, 'skewed; with transform="log" 10:5000'),
    KnownMeasure("glucose", "glucose glu fpg", "mg/dl", 20, 600, "meters show HI above 600"),
    KnownMeasure("HbA1c", "hba1c a1c", "%", 3, 20, ""),
    KnownMeasure("creatinine", "creatinine crea scr", "mg/dl", 0.1, 15, 'skewed; with transform="log" 0.1:30'),
    KnownMeasure("eGFR", "egfr gfr", "ml/min/1.73m^2", 0, 150, "formulas are capped there"),
    KnownMeasure("bilirubin", "bili bilirubin", "mg/dl", 0, 50, 'skewed; with transform="log" 0.05:50'),
    KnownMeasure("C-reactive protein", "crp hscrp hs_crp", "mg/l", 0, 500, 'skewed; with transform="log" 0.1:500'),
    KnownMeasure("albumin", "albumin alb", "g/dl", 0.5, 6, ""),
    KnownMeasure("haemoglobin", "hemoglobin haemoglobin hb hgb", "g/dl", 3, 22, ""),
    KnownMeasure("CD4 count", "cd4", "cells/ul", 0, 2500, 'skewed; with transform="sqrt" the same bounds'),
    KnownMeasure(
        "estradiol",
        "estradiol e2 e2ave oestradiol",
        "pg/ml",
        0,
        500,
        "the cycle's peak is about 400",
    ),
    KnownMeasure("FSH", "fsh", "mIU/ml", 0, 200, ""),
    KnownMeasure("PSA", "psa", "ng/ml", 0, 100, 'skewed; with transform="log" 0.01:1000'),
    KnownMeasure("bone mineral density", "bmd", "g/cm^2", 0.3, 2, ""),
    KnownMeasure("SF-36 / SF-12 score", "sf36 sf12 mcs pcs", "points", 0, 100, "component scores: 0:80"),
    KnownMeasure("depression score (CES-D)", "cesd depression", "points", 0, 60, "by definition"),
    KnownMeasure("depression score (PHQ-9)", "phq phq9 phq_9", "points", 0, 27, "by definition"),
    KnownMeasure("anxiety score (GAD-7)", "gad gad7 gad_7 anxiety", "points", 0, 21, "by definition"),
    KnownMeasure("MMSE", "mmse", "points", 0, 30, "by definition"),
    KnownMeasure("pain score", "pain nrs vas", "points", 0, 10, "by definition; on a scale of 100 mm 0:100"),
    KnownMeasure("hourly wage, logarithm", "ln_wage lnw logwage wage", "log currency", 0, 5, "1 to 148 an hour"),
    KnownMeasure("hours a week", "hours exercise", "hours", 0, 168, "a week has 168; exercise 0:40"),
    KnownMeasure("steps a day", "steps", "steps", 0, 60000, ""),
    KnownMeasure("a share", "share percent percentage pct rate", "%", 0, 100, "by definition"),
)


_TIMES = {"day", "days", "week", "weeks", "hour"}  # columns of x, not "steps a day" or "hours a week"


def find_measures(text: str) -> list[KnownMeasure]:
    """The measures that a word or a column's name may mean."""
    parts = set(re.split(r"[^a-z0-9]+", text.lower())) | {text.lower()}
    exact = [known for known in KNOWN if parts & set(known.words.split())]
    if text.lower() in _TIMES:
        return []
    return exact or [known for known in KNOWN if len(text) > 2 and text.lower() in known.name.lower()]
