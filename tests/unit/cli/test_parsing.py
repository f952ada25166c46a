"""Words of the command line and of a TOML file into values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpfda.cli import parsing
from dpfda.cli.commands.ask import parse_profile
from dpfda.cli.settings import merge_settings, read_toml, write_toml
from dpfda.errors import InvalidInput


def test_an_interval_is_typed_with_a_colon_or_listed_in_toml() -> None:
    assert parsing.parse_interval("y-bounds", "0:150") == parsing.parse_interval("y-bounds", [0, 150]) == (0.0, 150.0)
    with pytest.raises(InvalidInput, match="two ends with a colon"):
        parsing.parse_interval("y-bounds", "150")


def test_names_are_separated_by_commas() -> None:
    assert parsing.parse_names(" bmi, smoker ,") == parsing.parse_names(["bmi", "smoker"]) == ["bmi", "smoker"]


def test_a_name_with_a_comma_stands_between_quotes() -> None:
    assert parsing.parse_names('"1, male","2, female"') == ["1, male", "2, female"]
    assert parse_profile("curve", '"sex=2, female", bmi=25') == {"sex": "2, female", "bmi": "25"}


def test_facts_about_a_covariate_that_is_not_in_the_design_are_refused() -> None:
    with pytest.raises(InvalidInput, match="bmi"):
        parsing.parse_covariates(parsing.parse_design("age"), ["age=20:90", "bmi=10:70"], None)


def test_references_lie_within_public_facts() -> None:
    covariates = parsing.parse_covariates(parsing.parse_design("bmi,arm"), ["bmi=10:70"], ["arm=A,B"])
    assert parsing.parse_references(covariates, ["bmi=25", "arm=B"]) == {"bmi": 25.0, "arm": "B"}
    assert parsing.parse_references(covariates, {"bmi": 25}) == {"bmi": 25.0}
    assert parsing.parse_references(covariates, None) == {}
    for wrong, words in (
        ("bmi=90", "--reference bmi= must lie within its public bounds 10 to 70, got '90'."),
        ("bmi=high", "--reference bmi="),
        ("arm=C", "must be one of"),
        ("age=50", "names 'age', which is not in --design"),
        ("bmi", "as in --reference bmi=25, got 'bmi'"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(words)):
            parsing.parse_references(covariates, [wrong])


def test_what_is_typed_wins_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('source = "visits.csv"\nepsilon = 2.0\ndelta = 1e-6\n')
    found = merge_settings({"source": str(file), "epsilon": 0.5, "delta": None})
    assert (found["epsilon"], found["delta"], found["source"]) == (0.5, 1e-6, str(tmp_path / "visits.csv"))


def test_settings_written_as_toml_are_read_back(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    settings = {"source": "/data/visits.csv", "epsilon": 1.0, "title": 'A "good" one', "design": ["bmi"]}
    file.write_text(write_toml(settings))
    assert read_toml(file) == settings


def test_a_misspelt_setting_is_named_with_its_neighbour(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text("epsilom = 1\n")
    with pytest.raises(InvalidInput, match="did you mean 'epsilon'"):
        read_toml(file)
