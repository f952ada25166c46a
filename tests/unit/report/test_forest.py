"""Sites in a report: a line for each, the means, heterogeneity and flags."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest

pytest.importorskip("jinja2")

from dpfda.curves.curves import Curves
from dpfda.estimators import PrivateMean
from dpfda.report.document import StudyDescription, make_result_document, read_document, to_json
from dpfda.report.forest import describe_sites, draw_forest
from dpfda.report.html import render_report
from dpfda.silo.silo import Silo


@pytest.fixture(scope="module")
def fitted():
    """Five sites, the last in another unit."""
    rng, silos = np.random.default_rng(0), []
    for number in range(5):
        ids, x = np.repeat(np.arange(300), 5), rng.random(1500)
        y = 1 + x + 0.4 * rng.normal(size=300)[ids] + 0.4 * rng.normal(size=1500)
        y = 10 * y if number == 4 else y
        silos.append(Silo(Curves.from_long(ids, x, y), epsilon=2.0, delta=1e-5, name=f"site {number}"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PrivateMean(domain=(0, 1), y_bounds=(-4, 6), random_state=1).fit(silos)


@pytest.fixture(scope="module")
def document(fitted):
    study = StudyDescription("5 sites", "age", "hdl", ("mean",), title="t", x_label="age", y_label="hdl & more")
    return make_result_document(fitted, study)


def test_the_document_has_every_site_and_reads_back(fitted, document, tmp_path) -> None:
    sites, frame = document["sites"], fitted.sites_.to_frame()
    assert [row["name"] for row in sites["each"]] == [f"site {number}" for number in range(5)]
    assert [row["name"] for row in sites["summaries"]] == ["mean over subjects", "mean over sites", "a new site"]
    assert [row["estimate"] for row in sites["each"]] == list(frame["estimate"])[:5]
    assert [row["flagged"] for row in sites["each"]] == [False] * 4 + [True]
    assert sites["each"][4]["weight"] < 0.01
    (tmp_path / "r.html").write_text(render_report(document))
    assert read_document(tmp_path / "r.html") == json.loads(to_json(document))


def test_the_plot_has_a_line_for_each_site_and_intervals_in_order(document) -> None:
    svg = draw_forest(document)
    assert svg.count('class="whisker"') == 5
    assert svg.count('class="diamond"') == 3
    assert svg.count('<g class="flagged">') == 1
    assert "hdl &amp; more, average over age" in svg
    for left, right, place in re.findall(r'x1="([\d.]+)" x2="([\d.]+)"[^>]*/><circle class="dot" cx="([\d.]+)"', svg):
        assert 210 <= float(left) <= float(place) <= float(right) <= 690


def test_names_are_escaped_and_cut(document) -> None:
    other = json.loads(to_json(document))
    other["sites"]["each"][0]["name"] = "<b>a site with a name that is rather long</b>"
    svg = draw_forest(other)
    assert "<b>" not in svg
    assert "…" in svg


def test_the_report_says_what_is_real_and_who_is_odd(document) -> None:
    html = render_report(document)
    assert "I² = " in html
    assert "site 4 is unlike all other sites and counts for 0% of its weight" in html
    assert "Warning." in html


def test_a_fit_to_one_silo_has_no_forest() -> None:
    class OneSilo:
        sites_ = None

    assert describe_sites(OneSilo(), 0.95) is None
