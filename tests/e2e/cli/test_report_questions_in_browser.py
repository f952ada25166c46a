"""The page's questions in a real Chromium: Python's numbers on all golden results, and a form that asks them."""

from __future__ import annotations

import html
import importlib.resources
import json
import re
import warnings
from pathlib import Path

import golden
import numpy as np
import pandas as pd
import pytest
from browsers import run_chromium
from golden_differences import list_differences

from dpfda import PrivateMean, PrivateVaryingCoefficients
from dpfda.curves.simulated import simulate_vcm
from dpfda.report.html import embedded_json, render_report
from dpfda.report.results import load, save

HELPERS = Path(golden.__file__).parent


def dump(chromium: str, page: Path, width: int = 1100, patience: float = 600) -> tuple[str, str]:
    profile = page.with_suffix(".profile")
    shown = ("--enable-logging=stderr", f"--window-size={width},4000", "--virtual-time-budget=5000")
    return run_chromium(chromium, *shown, f"--user-data-dir={profile}", "--dump-dom", page.as_uri(), patience=patience)


def test_chromium_answers_as_python_does(chromium, tmp_path) -> None:
    code = (importlib.resources.files("dpfda.report") / "assets" / "questions.js").read_text(encoding="utf-8")
    files = sorted(golden.FOLDER.glob("*.json"))
    cases = json.dumps([json.loads(path.read_text()) for path in files])
    page = tmp_path / "golden.html"
    page.write_text(
        f"<pre id=out></pre><script>{code}\n{(HELPERS / 'golden.js').read_text()}\n"
        f"document.getElementById('out').textContent = JSON.stringify({cases}.map(answerGolden));</script>"
    )
    dom, log = dump(chromium, page)
    assert "CONSOLE" not in log
    found = json.loads(html.unescape(re.search(r'<pre id="out">(.*?)</pre>', dom, re.DOTALL).group(1)))
    assert len(found) == 32
    for path, answers in zip(files, found, strict=True):
        expected = json.loads(path.read_text())
        scale = min(1.0, max(1e-300, float(np.abs(expected["answers"][0]["estimate"]).max())))
        wanted = {key: expected[key] for key in ("answers", "joint") if key in expected}
        assert list_differences(answers, wanted, scale) == [], path.name


ASK = """<script>
const form = document.querySelector("#ask form"), set = (name, value) => {
  const input = form.elements.namedItem(name);
  if (input.type === "checkbox") input.checked = value; else input.value = value;
};
const ask = () => form.dispatchEvent(new Event("input", {bubbles: true}));
const texts = (row) => [...row.children].map((cell) => cell.textContent);
const rows = () => [...document.querySelectorAll("#ask tbody tr")].map(texts);
const said = {};
set("what", "contrast"); set("one:dose", "0.75"); set("other:dose", "-0.5"); set("level", "0.9"); ask();
said.contrast = rows(); said.caption = document.querySelector("#ask figcaption").textContent;
said.says = document.querySelector("#ask .says").textContent;
set("what", "effect:dose"); set("slope", true); ask(); said.slope = rows();
said.drawn = document.querySelectorAll("#ask svg path").length;
set("what", "profile"); set("one:dose", "7"); ask(); said.refusal = document.querySelector("#ask .message").textContent;
said.fits = document.documentElement.scrollWidth <= innerWidth;
said.requests = performance.getEntriesByType("resource").length;
const out = document.createElement("pre");
out.id = "said"; out.textContent = JSON.stringify(said); document.body.append(out);
</script></body>"""


@pytest.fixture
def result(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = PrivateVaryingCoefficients(
            4, 1e-5, domain=(0, 1), y_bounds=(-4, 4), covariates={"dose": (-1, 1)}, basis="free-ends", random_state=1
        ).fit(simulate_vcm(600, 6, 1, rng=1))
    fit.warnings_ = ("The band is wide because few subjects have events.",)
    return load(save(fit, tmp_path / "r.json"))


@pytest.mark.parametrize("width", [1100, 500])
def test_the_form_asks_and_shows_pythons_numbers(chromium, tmp_path, result, width) -> None:
    page = tmp_path / f"asked-{width}.html"
    text = render_report(result.document)
    assert text.index("The band is wide because") < text.index('id="curves"')
    assert text.index("Every subject counts equally") < text.index('id="curves"')
    page.write_text(text.replace("</body>", ASK))
    dom, log = dump(chromium, page, width)
    assert "CONSOLE" not in log
    said = json.loads(html.unescape(re.search(r'<pre id="said">(.*?)</pre>', dom, re.DOTALL).group(1)))
    x = np.linspace(0, 1, 21)
    contrast = result.curve_at(dose=0.75) - result.curve_at(dose=-0.5)
    slope = result.effect("dose").derivative()
    for rows, curve in ((said["contrast"], contrast), (said["slope"], slope)):
        numbers = np.array([[float(cell.replace(",", "")) for cell in row] for row in rows])
        lower, upper = curve.band(0.9, x)
        expected = np.column_stack([x, curve(x), lower, upper])
        np.testing.assert_allclose(numbers, expected, rtol=6e-4, atol=1e-6)
    assert said["caption"] == "(mean at dose=0.75) - (mean at dose=-0.5)"
    assert "Zero everywhere? p" in said["says"]
    assert said["drawn"] == 2
    assert said["refusal"] == "dose must lie within its public bounds -1 to 1."
    assert said["fits"]
    assert said["requests"] == 0


SHOW = """<script>
document.querySelector("#ask form").dispatchEvent(new Event("input", {bubbles: true}));
const out = document.createElement("pre");
out.id = "said"; document.body.append(out);
out.textContent = JSON.stringify({
  ticks: [...document.querySelectorAll("#ask svg .tick")].map((each) => each.textContent),
  message: document.querySelector("#ask .message").textContent,
});
</script></body>"""


def forge(document, origin, level):
    """A page whose own JSON was changed after it was made; with a level, its curve is constant."""
    forged = json.loads(json.dumps(document))
    forged["study"]["x_origin"] = origin
    if level is not None:
        model = forged["model"]
        model["coefficients"] = [[level, *[0.0] * (len(row) - 1)] for row in model["coefficients"]]
        model["limits"] = [-2 * level, 2 * level]
    page = render_report(document).replace(embedded_json(document), embedded_json(forged))
    assert embedded_json(forged) in page
    return page.replace("</body>", SHOW)


@pytest.mark.parametrize(
    ("origin", "level", "ticks"),
    [
        ("20200101", None, range(1, 8)),  # no date in a browser: y has ticks, x has none
        ("2020-W01-1", None, range(1, 8)),
        ("2020-01-01", None, range(4, 20)),
        (None, 1e20, range(8, 20)),
        (None, 1e300, range(8, 20)),
    ],
)
def test_a_forged_page_comes_to_rest(chromium, tmp_path, result, origin, level, ticks) -> None:
    """Loops over ticks once had no end: of dates that are none, and of a range that is 0 in doubles."""
    page = tmp_path / "forged.html"
    page.write_text(forge(result.document, origin, level))
    dom, _ = dump(chromium, page, patience=60)
    said = json.loads(html.unescape(re.search(r'<pre id="said">(.*?)</pre>', dom, re.DOTALL).group(1)))
    assert len(said["ticks"]) in ticks


ASK_TWO = """<script>
const asked = [...document.querySelectorAll(".ask")];
const said = { summaries: asked.map((each) => each.firstElementChild.textContent) };
const chart = document.querySelectorAll("svg.chart[data-function]")[1], box = chart.getBoundingClientRect();
chart.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width / 2, clientY: box.top + 50}));
said.tip = chart.parentElement.querySelector(".tip").textContent;
said.answers = asked.map((each) => {
  each.open = true;
  each.querySelector("select[name=level]").value = "0.9";
  each.querySelector("form").dispatchEvent(new Event("input", {bubbles: true}));
  return [...each.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent));
});
document.getElementById("theme").click();
said.theme = document.documentElement.dataset.theme;
said.fits = document.documentElement.scrollWidth <= innerWidth;
said.requests = performance.getEntriesByType("resource").length;
const out = document.createElement("pre");
out.id = "said"; out.textContent = JSON.stringify(said); document.body.append(out);
</script></body>"""


@pytest.mark.parametrize("width", [1100, 500])
def test_every_outcome_of_a_page_has_its_form(chromium, tmp_path, width) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"pid": np.repeat(np.arange(300), 4), "age": rng.uniform(20, 80, 1200)})
    frame["sbp"], frame["dbp"] = 100 + 0.5 * frame["age"], 60 + rng.normal(0, 6, 1200)
    bounds = {"sbp": (60, 250), "dbp": (30, 150)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean = PrivateMean(4, 1e-5, domain=(20, 80), y_bounds=bounds, transform={"dbp": "log"}, random_state=1)
        fit = mean.fit(frame, id="pid", x="age", y=["sbp", "dbp"])
    result = load(save(fit, tmp_path / "both.json"))
    page = tmp_path / f"both-{width}.html"
    page.write_text(render_report(result.document).replace("</body>", ASK_TWO))
    dom, log = dump(chromium, page, width)
    assert "CONSOLE" not in log
    said = json.loads(html.unescape(re.search(r'<pre id="said">(.*?)</pre>', dom, re.DOTALL).group(1)))
    x = np.linspace(20, 80, 21)
    for rows, curve in zip(said["answers"], (result["sbp"].curve_, result["dbp"].curve_), strict=True):
        numbers = np.array([[float(cell.replace(",", "")) for cell in row] for row in rows])
        np.testing.assert_allclose(numbers, np.column_stack([x, curve(x), *curve.band(0.9, x)]), rtol=6e-4)
    place, value = map(float, re.findall(r"\d+(?:\.\d+)?", said["tip"])[:2])
    assert value == pytest.approx(float(result["dbp"].curve_([place])[0]), rel=1e-3)
    assert said["summaries"] == ["Ask the curve", "Ask the curve"]
    assert said["theme"] in ("dark", "light")
    assert said["fits"]
    assert said["requests"] == 0
