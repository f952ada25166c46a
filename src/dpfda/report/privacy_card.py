"""The privacy card: what the guarantee says, in words for readers who are not specialists."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpfda.report.chart import x_name
from dpfda.report.formatting import count_subjects, format_number, format_small

_FACTS = {
    "assume_symmetric": "declared: curves lie symmetrically around their mean",
    "robust_sites": "declared: a site that is unlike all others counts like any other",
    "transform": "y is transformed by {} before anything else",
    "weight": "every {} counts equally",
    "visit_cap": "a subject with more than {0:,} visits counts as one with {0:,}",
}
_OUTCOMES = {
    "binary": "one of two values",
    "count": "a count",
    "positive": "a positive quantity",
    "score": "a score",
}


@dataclass(frozen=True)
class Section:
    """A heading and its sentences."""

    heading: str
    sentences: tuple[str, ...]


def write_privacy_card(document: dict[str, Any]) -> list[Section]:
    """Who is protected, against what, what epsilon means here, what was public, what was not private."""
    privacy = document["privacy"]
    if not privacy["private"]:
        return [Section("This result is NOT private", (f"No subject is protected: {privacy['mechanism']}.",))]
    return [
        _write_who(document),
        Section(
            "Against what",
            (
                "Against anybody who reads this report, its data and everything else that the study released, whatever "
                "they know already, even the full records of all other subjects, and however much they compute.",
                "Not against what is true of the whole population: that people of a certain age tend to have a certain "
                "value is the finding, and it would be found without any one person.",
            ),
        ),
        _write_meaning(privacy),
        _write_public_inputs(document),
        _write_not_private(document),
    ]


def _write_who(document: dict[str, Any]) -> Section:
    return Section(
        "Who is protected",
        (
            f"Each of the {count_subjects(document):,} subjects, with all of their measurements together"
            + (" and their covariates" if document["model"]["covariates"] else "")
            + ": the whole record counts as one, however many rows it has.",
            "Two subjects are two units: a pair of relatives together has more than twice the epsilon.",
        ),
    )


def _write_meaning(privacy: dict[str, Any]) -> Section:
    epsilon, delta = privacy["epsilon"], privacy["delta"]
    guesses = 100 * 0.5 * math.erfc(-max(silo["mu"] for silo in privacy["silos"]) / 2 / math.sqrt(2))
    return Section(
        f"What ε = {format_number(epsilon)} means here",
        (
            "Suppose an adversary knows that a subject's record is one of two, and a coin decides which. After seeing "
            f"everything released here, their best guess is right at most {guesses:.1f} times in 100. Blind guessing "
            "is right 50 times.",
            f"Formally, replacing one record changes the odds of any conclusion at most {math.exp(epsilon):.3g}-fold "
            f"(e to the ε), apart from events of probability δ = {format_small(delta)}, one in {1 / delta:,.0f}.",
            f"Mechanism: {privacy['mechanism']}. The noise is exact discrete Gaussian from the operating system's "
            "randomness, and the price covers every message, not only the final curve.",
        ),
    )


def _write_public_inputs(document: dict[str, Any]) -> Section:
    public, origin = dict(document["privacy"]["public_inputs"]), document["study"]["x_origin"]
    if origin is not None and "domain" in public:
        public["domain"] = " to ".join(x_name(end, origin) for end in public["domain"])
    if origin is not None and "visit_times" in public:
        public["visit_times"] = [x_name(time, origin) for time in public["visit_times"]]
    facts = [_write_fact(name, value) for name, value in public.items() if name != "design_bounds"]
    for covariate in document["model"]["covariates"]:
        known = _format_value(covariate["bounds"]) if covariate["bounds"] else ", ".join(covariate["levels"])
        facts.append(f"{covariate['name']}: {known}")
    return Section(
        "What was taken as public",
        (
            "; ".join(facts) + ".",
            "Also the names of columns, the model and all settings below. If any of them was chosen by looking at the "
            "data, that look is not covered by the guarantee.",
        ),
    )


def _write_not_private(document: dict[str, Any]) -> Section:
    return Section(
        "What was not private about the process",
        (
            "The number of subjects is stated exactly; how many of them contribute is estimated from what was released.",
            "Notes to the owner while fitting (for instance how many values were clamped): shown on their screen only.",
            "That the fit succeeded at all: a table that cannot be used is refused, and its owner sees the reason.",
            "How long it took and how much memory it used; and the raw data themselves, which stay where they were.",
        ),
    )


def _write_fact(name: str, value: Any) -> str:
    """A public input in words; declarations are marked as what they are."""
    if name == "visit_times":
        times = [each if isinstance(each, str) else format_number(each) for each in value]
        return f"declared: visits are scheduled at {', '.join(times)}"
    if name == "outcome":
        return f"declared: y is {_OUTCOMES.get(value, value)}"
    if name in _FACTS:
        return _FACTS[name].format(value)
    return f"{name.replace('_', ' ')}: {_format_value(value)}"


def _format_value(value: Any) -> str:
    if isinstance(value, list | tuple) and len(value) == 2 and not isinstance(value[0], list | tuple):
        return f"{format_number(value[0])} to {format_number(value[1])}"
    return f"{value:,}" if isinstance(value, int) else str(value)
