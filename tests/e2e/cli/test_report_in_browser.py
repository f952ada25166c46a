"""The report in a real headless Chromium: drawn, answering the pointer, light and dark, fit for print, silent."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("polars")

from browsers import run_chromium
from cli_helpers import ALL, fund, visits

from dpfda.cli.main import run
from dpfda.report.document import read_document

SHOWN = ("--hide-scrollbars", "--window-size=1100,2400", "--virtual-time-budget=3000", "--enable-logging=stderr")
HOVER = """<script>
const chart = document.querySelector("svg.chart"), box = chart.getBoundingClientRect();
chart.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width / 2, clientY: box.top + 50}));
document.body.dataset.tip = document.querySelector(".tip").textContent;
document.body.dataset.visible = document.querySelector(".pointer").getAttribute("visibility");
document.body.dataset.requests = performance.getEntriesByType("resource").length;
document.getElementById("theme").click();
document.body.dataset.theme = document.documentElement.dataset.theme;
document.body.dataset.wide = document.documentElement.scrollWidth <= innerWidth;
</script></body>"""


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    table = visits(folder / "visits.csv", subjects=300)
    fund(table)
    design = ["--design", "male", "--bounds", "male=0:1"]
    assert run(["fit", str(table), *ALL, *design, "--report", str(folder / "r.html"), "--quiet"]) == 0
    return folder / "r.html"


def browse(chromium: str, page: Path, *options: str) -> tuple[str, str]:
    profile = page.parent / f"profile-{len(list(page.parent.iterdir()))}"
    return run_chromium(chromium, *SHOWN, f"--user-data-dir={profile}", *options, page.as_uri(), patience=60)


def test_hover_theme_and_silence(chromium, report) -> None:
    page = report.with_name("hover.html")
    page.write_text(report.read_text().replace("</body>", HOVER))
    dom, log = browse(chromium, page, "--dump-dom")
    said = dict(
        re.findall(r'data-(tip|visible|requests|theme|wide)="([^"]*)"', dom.split("<body", 1)[1].split(">", 1)[0])
    )
    document = read_document(report)
    function, (x, value, low, high) = document["functions"][0], map(float, re.findall(r"-?\d+(?:\.\d+)?", said["tip"]))
    place = int(np.argmin(np.abs(np.asarray(document["grid"]) - x)))
    shown = [function[key][place] for key in ("values", "low", "high")]
    assert [value, low, high] == pytest.approx(shown, rel=1e-3)
    assert said["visible"] == "visible"
    assert said["requests"] == "0"
    assert said["theme"] in ("dark", "light")
    assert said["wide"] == "true"
    assert "CONSOLE" not in log


def test_light_and_dark_screenshots(chromium, report) -> None:
    image = pytest.importorskip("PIL.Image")
    brightness = {}
    for name, option in (("light", "1"), ("dark", "0")):
        shot = report.with_name(f"{name}.png")
        browse(chromium, report, f"--blink-settings=preferredColorScheme={option}", f"--screenshot={shot}")
        with image.open(shot) as picture:
            brightness[name] = picture.convert("L").resize((1, 1)).getpixel((0, 0))
            colours = len(picture.convert("RGB").resize((275, 600)).getcolors(1_000_000))
        assert colours > 200, "the page is blank"
    assert brightness["light"] > 200
    assert brightness["dark"] < 60


def test_it_prints_on_a_few_pages(chromium, report) -> None:
    target = report.with_name("r.pdf")
    browse(chromium, report, f"--print-to-pdf={target}", "--no-pdf-header-footer")
    pages = len(re.findall(rb"/Type\s*/Page\b", target.read_bytes()))
    assert 1 <= pages <= 5


def test_the_values_are_printed_and_the_page_is_as_before(chromium, report) -> None:
    page = report.with_name("printed.html")
    probe = """<script>
const opened = () => document.querySelector("#curves details").open, seen = [opened()];
for (const name of ["beforeprint", "afterprint"]) { dispatchEvent(new Event(name)); seen.push(opened()); }
document.body.dataset.seen = seen.join(" ");
</script></body>"""
    page.write_text(report.read_text().replace("</body>", probe))
    dom, _ = browse(chromium, page, "--dump-dom")
    assert 'data-seen="false true false"' in dom
