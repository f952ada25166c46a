"""`dpfda plan` and `dpfda reproduce` as their users meet them."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from cli_helpers import dpfda

from dpfda.planning.outcomes import FACTS, LAWS
from dpfda.planning.words import tell_trust
from dpfda.protocol.terms import OUTCOMES

STUDY = ["--n", 500, "--m", 6, "--epsilon", 1, "--delta", "1e-5", "--y-bounds", "0:150"]

SITES = """
m = 6
y_bounds = [0, 150]

[[site]]
name = "north"
n = 800
epsilon = 1.0
delta = 1e-5

[[site]]
name = "south"
n = 300
epsilon = 0.3
delta = 1e-5
"""


def answers(capsys, *arguments):
    ran = dpfda(capsys, "plan", *arguments, "--json", "-")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_text_has_every_answer(capsys):
    ran = dpfda(capsys, "plan", *STUDY, "--error", 3)
    assert ran.code == 0
    for words in ("Forecast of the typical distance", "Of the squared error", "Which model, which budget", "no privacy",
                  "local: every subject alone", "For a typical distance of 3", "epsilon ="):  # fmt: skip
        assert words in ran.out
    assert "Theorem" not in ran.out
    more = dpfda(capsys, "plan", *STUDY, "--verbose").out
    for words in ("Regime in theory", "Theorem 2.2", "Theorem 3", "Price of privacy by the rate"):
        assert words in more


def test_a_width_is_a_typical_distance_in_other_words(capsys):
    target = answers(capsys, *STUDY, "--target-width", 5)["target"]
    assert target["typical_distance"] == pytest.approx(5 / (2 * 1.959964))
    same = answers(capsys, *STUDY, "--error", target["typical_distance"])["target"]
    assert (same["epsilon"], same["n"]) == (target["epsilon"], target["n"])
    by_budget = answers(
        capsys, "--n", 500, "--m", 6, "--epsilon", target["epsilon"], "--delta", "1e-5", "--y-bounds", "0:150"
    )
    assert by_budget["forecast"]["typical_distance"] == pytest.approx(
        target["typical_distance"], rel=0.15
    )  # radii come in steps


def test_facts_about_a_binary_outcome_reach_the_forecast(capsys):
    """Values at the bounds are not clipped below the bounds: more noise than a normal law of the same variance has."""
    study = ["--n", 2000, "--m", 5, "--epsilon", 1, "--delta", "1e-6"]
    facts = ["--outcome", "binary", "--prevalence", 0.2, "--correlation", 0.25]
    told = answers(capsys, *study, *facts)["forecast"]
    normal = answers(capsys, *study, "--spread", 0.2, "--noise", 0.12**0.5, "--signal", 0.07)["forecast"]
    assert told["sampling"] == pytest.approx(normal["sampling"], rel=0.5)
    assert normal["total"] < told["total"] < 4 * normal["total"]


def test_a_dry_run_of_a_binary_outcome_forecasts_what_the_planner_does(capsys, tmp_path):
    rows = "".join(f"{person},{visit / 5},{(person + visit) % 2}\n" for person in range(300) for visit in range(5))
    (tmp_path / "v.csv").write_text(f"id,x,y\n{rows}")
    public = ["--id", "id", "--x", "x", "--y", "y", "--domain", "0:1", "--y-bounds", "0:1", "--outcome", "binary"]
    said = dpfda(capsys, "fit", tmp_path / "v.csv", *public, "--epsilon", 1, "--delta", "1e-5", "--dry-run").out
    told = answers(
        capsys, "--n", 300, "--m", 5, "--epsilon", 1, "--delta", "1e-5", "--outcome", "binary", "--prevalence", 0.5
    )
    assert f"over the domain: {told['forecast']['total'] ** 0.5:.3g} in units of y" in said
    assert "and a share of 0.5; 'dpfda plan --outcome binary --prevalence' forecasts another" in said


def test_it_says_how_far_its_forecasts_were_off(capsys):
    study = ["--n", 2000, "--m", 5, "--epsilon", 1, "--delta", "1e-6"]
    said = " ".join(dpfda(capsys, "plan", *study, "--outcome", "binary", "--prevalence", 0.2).out.split())
    assert tell_trust("binary") in said
    assert tell_trust("local") in said
    skewed = " ".join(
        dpfda(
            capsys, "plan", *study, "--outcome", "positive", "--y-bounds", "0:50", "--level", 5, "--variation", 0.5
        ).out.split()
    )
    assert tell_trust("skewed") in skewed
    assert "skewed" not in dpfda(capsys, "plan", *study).out


def test_a_binary_outcome_has_the_scale_of_its_bounds(capsys):
    study = ["--n", 400, "--m", 5, "--epsilon", 1, "--delta", "1e-5", "--outcome", "binary", "--prevalence", 0.2]
    one, percent = (answers(capsys, *study, "--y-bounds", bounds)["forecast"] for bounds in ("0:1", "0:100"))
    assert percent["typical_distance"] == pytest.approx(100 * one["typical_distance"])


@pytest.mark.parametrize("word", OUTCOMES[1:])
def test_plan_and_fit_take_the_same_words_for_an_outcome(capsys, word):
    for command in ("plan", "fit"):
        assert f"'{word}'" in " ".join(dpfda(capsys, command, "--help").out.split())
    facts = {"prevalence": 0.3, "level": 50, "variation": 0.5}
    needed = [part for fact in FACTS[LAWS[word]] for part in (f"--{fact}", facts[fact])]
    assert answers(capsys, *STUDY, "--outcome", word, *needed)["forecast"]["total"] > 0


def test_the_sweep_over_epsilon_is_a_picture(capsys, tmp_path):
    (tmp_path / "sites.toml").write_text(SITES)
    for number, study in enumerate((STUDY, ["--sites-file", tmp_path / "sites.toml"])):
        target = tmp_path / f"sweep-{number}.png"
        assert dpfda(capsys, "plan", *study, "--sweep", target, "--error", 2).code == 0
        assert target.read_bytes().startswith(b"\x89PNG")


def test_the_wanted_error_is_reached_by_what_is_answered(capsys):
    target = answers(capsys, *STUDY, "--error", 2)["target"]
    by_budget = answers(
        capsys, "--n", 500, "--m", 6, "--epsilon", target["epsilon"], "--delta", "1e-5", "--y-bounds", "0:150"
    )
    assert by_budget["forecast"]["typical_distance"] == pytest.approx(2, rel=0.02)
    by_people = answers(capsys, "--n", target["n"], "--m", 6, "--epsilon", 1, "--delta", "1e-5", "--y-bounds", "0:150")
    assert by_people["forecast"]["typical_distance"] <= 2.02


def test_privacy_has_its_price(capsys):
    price = answers(capsys, *STUDY, "--sites", 5)["price"]
    rates = price["by_rate"]
    assert rates["none"] == 1 < rates["cdp"] < rates["fdp"] < rates["ldp"]
    forecast = price["by_forecast"]
    assert forecast["none"] == 1 < forecast["cdp"] < forecast["fdp"] < forecast["ldp"]


def test_unequal_sites_from_a_file(capsys, tmp_path):
    path = tmp_path / "sites.toml"
    path.write_text(SITES)
    found = answers(capsys, "--sites-file", path)
    weights = {row["site"]: row["weight"] for row in found["unequal"]["weights"]}
    assert weights["north"] > weights["south"] > 0
    assert sum(weights.values()) == pytest.approx(1)
    assert found["study"]["S"] == 2
    assert 0 < found["unequal"]["lower"] <= found["unequal"]["upper"]
    without = {row["site"]: row["error_times"] for row in found["unequal"]["without"]}
    assert without["north"] > without["south"] >= 1
    ran = dpfda(capsys, "plan", "--sites-file", path, "--error", 3, "--verbose")
    assert "epsilon = 0.3" in ran.out
    for words in ("Theorems 4.2 and 5.1", "the budget of every site times", "the subjects of every site times"):
        assert words in " ".join(ran.out.split())


def test_an_error_below_what_sampling_allows_has_no_budget(capsys):
    target = answers(capsys, *STUDY, "--error", 0.01)["target"]
    assert target["epsilon"] is None
    ran = dpfda(capsys, "plan", *STUDY, "--error", 0.01)
    assert "no budget is enough" in ran.out


@pytest.mark.parametrize(
    ("against", "name", "start"),
    [("m", "phase.png", b"\x89PNG"), ("epsilon", "phase.svg", b"<?xml"), ("panels", "phase.pdf", b"%PDF")],
)
def test_pictures(capsys, tmp_path, against, name, start):
    target = tmp_path / against / name
    assert dpfda(capsys, "plan", *STUDY, "--picture", target, "--against", against).code == 0
    assert target.read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--n", 500, "--m", 6, "--epsilon", 1], "--delta must be given"),
        ([*STUDY, "--picture", "phase.gif"], "must end in"),
        ([*STUDY, "--against", "n", "--picture", "phase.png"], "--against must be one of"),
        ([*STUDY, "--error", -1], "--error must be greater than 0"),
        ([*STUDY, "--target-width", -1], "--target-width must be greater than 0"),
        ([*STUDY, "--error", 1, "--target-width", 1], "give one of them"),
        ([*STUDY, "--outcome", "binary"], "--prevalence must be given"),
        ([*STUDY, "--outcome", "ordinal"], "--outcome must be one of 'binary', 'count', 'positive', 'score', got"),
        ([*STUDY, "--outcome", "positive", "--level", 9], "--variation must be given"),
        (
            [*STUDY, "--outcome", "count", "--level", 200, "--variation", 1],
            "--level must lie within the bounds of y, which are 0 to 150; got 200",
        ),
        ([*STUDY, "--prevalence", 0.2], "--prevalence must be left out without --outcome binary"),
        ([*STUDY, "--outcome", "binary", "--prevalence", 2], "--prevalence must lie strictly between 0 and 1"),
        ([*STUDY, "--spread", -1], "--spread must not be negative"),
        ([*STUDY, "--alpha", 1], "--alpha must lie between 1.01 and 10"),
        ([*STUDY, "--sweep", "budget.gif"], "must end in"),
        (["--sites-file", "nowhere.toml"], "There is no file"),
        (["--sites-file", "sites.toml", "--n", 3], "leave those options out"),
        (["--n", 500, "--m", 0, "--epsilon", 1, "--delta", "1e-5"], "--m must lie between"),
    ],
)
def test_mistakes_are_one_sentence(capsys, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sites.toml").write_text(SITES)
    ran = dpfda(capsys, "plan", *arguments)
    assert ran.code == 2
    assert len(ran.complaints) == 1
    assert words in ran.complaints[0]


def test_a_misspelt_setting_of_a_site_is_named(capsys, tmp_path):
    path = tmp_path / "sites.toml"
    path.write_text(SITES.replace("epsilon = 0.3", "epsilom = 0.3"))
    ran = dpfda(capsys, "plan", "--sites-file", path)
    assert ran.code == 2
    assert "did you mean 'epsilon'" in ran.err


def test_reproduce_lists_and_refuses(capsys):
    assert "dense" in dpfda(capsys, "reproduce", "list").out
    ran = dpfda(capsys, "reproduce", "figure-9")
    assert ran.code == 2
    assert len(ran.complaints) == 1


def test_reproduce_writes_and_resumes(capsys, tmp_path):
    arguments = ["reproduce", "covariates", "--quick", "--adaptive-repetitions", 2, "--jobs", 1, "--out", tmp_path]
    first = dpfda(capsys, *arguments)
    assert first.code == 0, first.err
    assert (tmp_path / "RESULTS-covariates.md").exists()
    assert (tmp_path / "figures/covariates.svg").exists()
    before = (tmp_path / "tables/covariates.csv").read_text()
    again = dpfda(capsys, *arguments)
    assert " 0 of them still to be computed" in again.err
    assert (tmp_path / "tables/covariates.csv").read_text() == before


def test_the_delta_of_the_lower_bound_is_shown(capsys, tmp_path):
    assert not answers(capsys, *STUDY)["theory"]["delta_condition"]["holds"]
    assert "is not proved there" in dpfda(capsys, "plan", *STUDY, "--verbose").out
    (tmp_path / "sites.toml").write_text(SITES)
    unequal = answers(capsys, "--sites-file", tmp_path / "sites.toml")["theory"]["delta_condition"]
    assert unequal["source"] == "Theorem 5.1"


def test_the_paper_s_own_data_where_the_user_has_them(capsys, tmp_path):
    """A synthetic table in SWAN's layout: women at visits 0 to 12, -9 for missing, estradiol in pg/ml."""
    rng = np.random.default_rng(1)
    lines = ["SWANID,VISIT,AGE,E2AVE"]
    for woman in range(150):
        start = rng.uniform(42, 47)
        for visit in range(13):
            age, missing = start + visit + rng.normal(0, 0.1), rng.uniform() < 0.05
            value = -9 if missing else np.clip(120 - 4 * (age - 46) + rng.normal(0, 30), 1, 490)
            lines.append(f"{10000 + woman},{visit},{age:.2f},{value:.2f}")
    (tmp_path / "swan.csv").write_text("\n".join(lines) + "\n")
    options = ["--quick", "--jobs", 1, "--adaptive-repetitions", 2, "--out", tmp_path / "out"]
    ran = dpfda(capsys, "reproduce", "real-data", "--swan", tmp_path / "swan.csv", *options)
    assert ran.code == 0, ran.err
    rows = list(csv.DictReader((tmp_path / "out/tables/real-data.csv").open()))
    assert "swan" in {row["sweep"] for row in rows}
    text = (tmp_path / "out/RESULTS-real-data.md").read_text()
    assert "swan" in text.lower()
    assert "NOT PRIVATE: do not pass these files on" in text
    assert "pg/ml at 50" in text
    assert (tmp_path / "out/figures/real-data.png").stat().st_size > 20_000
