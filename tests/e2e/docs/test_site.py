"""The documentation site: built without a warning, no dead link, nothing loaded from elsewhere, opened in a browser."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

bs4 = pytest.importorskip("bs4")
sync_api = pytest.importorskip("playwright.sync_api")

from browsers import launch_chromium  # noqa: E402

ROOT = Path(__file__).parents[3]
OUT = ROOT / "out"
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def site() -> Path:
    """The site as `make docs-check` builds it; a second process finds it built."""
    OUT.mkdir(exist_ok=True)
    words = ["-q", "-W", "--keep-going", "-n", "-D", "plot_gallery=0", "-d", OUT / "doctrees-check"]
    with (OUT / "docs-check.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            [sys.executable, "-m", "sphinx", *words, ROOT / "docs", OUT / "docs-check"],
            check=False,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    return OUT / "docs-check"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, object]:
    """Every page, parsed; pages that an earlier state of the folder left behind are not built any more."""
    built = {path.stem for path in (OUT / "doctrees-check").rglob("*.doctree")} | {"search", "genindex", "py-modindex"}
    found = [path for path in sorted(site.rglob("*.html")) if path.stem in built]
    return {path: bs4.BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser") for path in found}


def test_every_link_leads_somewhere(pages: dict[Path, object]) -> None:
    anchors = {path: {tag["id"] for tag in page.find_all(id=True)} for path, page in pages.items()}
    dead, outside = [], set()
    for path, page in pages.items():
        for tag in page.find_all(["a", "img", "link", "script"]):
            address = tag.get("href") or tag.get("src")
            if not address or address.startswith(("data:", "#")) or tag.name == "link":
                continue
            parts = urlsplit(address)
            if parts.scheme:
                outside.add(address)
                continue
            target = (path.parent / unquote(parts.path)).resolve()
            known = anchors.get(target)
            if not target.is_file() or (known is not None and parts.fragment and parts.fragment not in known):
                dead.append((path.name, address))
    assert dead == []
    assert len(pages) > 80
    assert [
        link for link in sorted(outside) if not (urlsplit(link).scheme == "https" and "." in urlsplit(link).netloc)
    ] == []


def test_no_page_loads_anything_from_elsewhere(pages: dict[Path, object]) -> None:
    loaded = {
        tag.get("src") or tag.get("href")
        for page in pages.values()
        for tag in page.find_all(["script", "link", "img", "iframe"])
        if tag.get("rel") not in (["canonical"],)
    }
    assert [address for address in loaded if address and address.startswith(("http", "//"))] == []


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        ("install.html", "Install"),
        ("tutorials/first-report.html", "first private report"),
        ("guarantee.html", "What is guaranteed"),
        ("contributing.html", "Contributing"),
        ("examples/index.html", "Gallery"),
    ],
)
def test_the_start_page_leads_there_at_once(site: Path, pages: dict[Path, object], page: str, heading: str) -> None:
    links = {tag["href"].split("#")[0] for tag in pages[site / "index.html"].find("article").find_all("a", href=True)}
    assert page in links
    assert heading in pages[site / page].find("h1").get_text()


def test_the_start_page_leads_to_how_to_add_a_basis(site: Path, pages: dict[Path, object]) -> None:
    (link,) = pages[site / "index.html"].find("article").find_all("a", string="How to add a basis")
    page, _, anchor = link["href"].partition("#")
    assert "How to add a basis" in pages[site / page].find(id=anchor).find(["h2", "h3"]).get_text()


def test_the_reference_shows_every_public_name_with_its_example(site: Path, pages: dict[Path, object]) -> None:
    import dpfda

    shown = {path.stem: page for path, page in pages.items() if path.parent.name == "generated"}
    assert [name for name in dpfda.__all__ if f"dpfda.{name}" not in shown] == []
    assert ">>>" in shown["dpfda.PrivateMean"].find("article").get_text()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[object]:
    with sync_api.sync_playwright() as playwright:
        made = launch_chromium(playwright, chromium)
        yield made
        made.close()


def look(browser, site: Path, page: str, scheme: str, size: dict[str, int]) -> tuple[object, list[str]]:
    """A page as a reader opens it from the disk, and what it asked the network for."""
    view = browser.new_context(color_scheme=scheme, viewport=size).new_page()
    asked: list[str] = []
    view.on("request", lambda request: asked.append(request.url))
    view.on("console", lambda message: asked.append(message.text))
    view.goto(f"{(site / page).as_uri()}")
    return view, asked


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_light_and_dark_at_both_widths(browser, site: Path, size: dict[str, int]) -> None:
    brightness = {}
    for scheme in ("light", "dark"):
        for page in ("index.html", "guarantee.html", "utility.html", "reference/generated/dpfda.PrivateMean.html"):
            view, asked = look(browser, site, page, scheme, size)
            assert view.evaluate("document.documentElement.scrollWidth") <= size["width"], page
            assert [each for each in asked if not each.startswith(("file:", "data:"))] == []
            colour = view.evaluate("getComputedStyle(document.body).backgroundColor")
            brightness[scheme] = sum(int(part) for part in colour.strip("rgb()").split(","))
            view.context.close()
    assert brightness["dark"] < 150
    assert brightness["light"] > 600


def test_search_works_from_the_disk(browser, site: Path) -> None:
    view, asked = look(browser, site, "search.html", "light", DESK)
    view.fill("input[name=q] >> nth=0", "band")
    view.press("input[name=q] >> nth=0", "Enter")
    view.wait_for_selector("#search-results li a")
    found = view.eval_on_selector_all("#search-results li a", "links => links.map(link => link.textContent)")
    assert "Bands" in found
    assert [each for each in asked if not each.startswith(("file:", "data:"))] == []
