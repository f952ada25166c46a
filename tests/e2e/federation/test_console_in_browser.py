"""The console in a real browser, end to end: propose, approve at three sites, run, look at the result."""

from __future__ import annotations

import subprocess

import pytest

pytest.importorskip("nvflare")
sync_api = pytest.importorskip("playwright.sync_api")

from browsers import launch_chromium  # noqa: E402
from consortium_by_commands import COMMAND, SUBJECTS, Consortium  # noqa: E402

NAMES = ("north", "middle", "south")
PATIENCE = 120_000  # milliseconds, for a busy machine
NO_HIDDEN_COLUMN = "[...document.querySelectorAll('.wide')].every(each => each.scrollWidth <= each.clientWidth)"
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser(chromium):
    with sync_api.sync_playwright() as playwright:
        sync_api.expect.set_options(timeout=PATIENCE)
        made = launch_chromium(playwright, chromium)
        yield made
        made.close()


@pytest.fixture(scope="module")
def lipids(tmp_path_factory):
    made = Consortium(tmp_path_factory.mktemp("console"))
    try:
        for seed, name in enumerate(NAMES):
            made.enrol(name, seed)
        made.start("server", "consortium", "serve", "lipids")
        for name in NAMES:
            made.start(name, "site", "run", name)
        made.wait_for(*NAMES)
        yield made
    finally:
        made.close()


class Console:
    """A console's process and a page in it; what the page loads is written down."""

    def __init__(self, lipids, browser, *words):
        self.process = subprocess.Popen(
            [*COMMAND, *words], cwd=lipids.root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
        lipids.running[" ".join(words[:3])] = self.process
        self.link = self.process.stdout.readline().strip()
        self.context = browser.new_context()
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.requests, self.errors = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(self.link)

        self.home, self.origin = self.page.url.rstrip("/"), self.link.partition("/enter")[0]

    def check(self):
        assert self.errors == []
        assert {request[: len(self.origin) + 1] for request in self.requests} == {f"{self.origin}/"}
        self.context.close()
        self.process.terminate()
        self.process.wait(20)


def looks_right(page, path, name):
    """Nothing is wider than the window, on a desk or a phone; pictures for people to look at."""
    for size, words in (({"width": 1200, "height": 900}, "desk"), (PHONE, "phone")):
        page.set_viewport_size(size)
        page.screenshot(path=path / f"{name}-{words}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (name, words)
        assert page.evaluate(NO_HIDDEN_COLUMN), (name, words)


@pytest.mark.slow
def test_propose_approve_at_three_sites_run_and_look_at_the_result(lipids, browser, tmp_path):
    shots = tmp_path
    coordinator = Console(lipids, browser, "consortium", "console", "lipids")
    page = coordinator.page
    sync_api.expect(page.locator("#sites")).to_contain_text("connected")
    looks_right(page, shots, "coordinator")
    page.get_by_text("New study").click()
    terms = page.locator("textarea").input_value().replace("n = 1000", f"n = {SUBJECTS}")
    page.locator("textarea").fill(terms)
    page.locator("#forecast").click()
    sync_api.expect(page.locator("#told")).to_contain_text("Expected error of the curve")
    looks_right(page, shots, "proposal")
    page.locator("textarea").fill(terms.replace("domain = [20, 90]", "domain = [90, 20]"))
    page.locator("#forecast").click()
    sync_api.expect(page.locator("#told .bad")).to_contain_text("domain")
    page.locator("textarea").fill(terms)
    page.locator("#propose").click()
    sync_api.expect(page.locator("#told")).to_contain_text("Signed and proposed: study-1-")
    sync_api.expect(page.locator("#told")).to_contain_text("Sent to middle, north, south")

    for name in NAMES:
        steward = Console(lipids, browser, "site", "console", name)
        steward.page.get_by_role("link", name="study-1-").click()
        sync_api.expect(steward.page.locator("main")).to_contain_text("You (" + name + ") are about to promise")
        if name == "north":
            assert steward.page.get_by_text("outside the guarantee").count() == 1, "before anything is looked at"
            steward.page.get_by_text("Look at my data").click()
            sync_api.expect(steward.page.locator("#checks")).to_contain_text("subjects")
            looks_right(steward.page, shots, "offer")
        steward.page.locator("input[name=ends]").first.fill("2099-12-31")
        steward.page.locator("#approve").click()
        sync_api.expect(steward.page.locator("#decided")).to_contain_text("Accepted: study-1-")
        steward.page.goto(f"{steward.home}/")
        sync_api.expect(steward.page.locator("#status")).to_contain_text("accepted through 2099-12-31")
        steward.page.get_by_text("Verify log and ledger").click()
        sync_api.expect(steward.page.locator("#verified")).to_contain_text("unbroken")
        looks_right(steward.page, shots, f"steward-{name}")
        steward.check()

    page.goto(f"{coordinator.home}/study/study-1")
    page.locator("#rehearse").click()
    sync_api.expect(page.locator("#told")).to_contain_text("on made-up data; rounds answered: middle")
    page.locator("#run").click()
    sync_api.expect(page.locator("#study")).to_contain_text("finished")
    looks_right(page, shots, "study")
    with coordinator.context.expect_page() as opened:
        page.get_by_text("Result and report").click()
    report = opened.value
    report.wait_for_load_state()
    assert "hdl" in report.content()
    assert report.locator("svg").count() >= 1
    coordinator.check()
    assert lipids.json("study", "status", "study-1.toml")["phase"] == "finished"


def test_the_link_works_once_and_only_here(lipids, browser):
    console = Console(lipids, browser, "site", "console", "north")
    sync_api.expect(console.page.locator("#status")).to_contain_text("connected to its server")
    stranger = browser.new_context().request
    assert stranger.get(console.link).status == 403, "used already"
    assert stranger.get(f"{console.home}/").status == 403, "no cookie"
    assert stranger.get(console.home, headers={"Host": "evil.example.org"}).status == 400
    inside = console.context.request
    assert inside.get(f"{console.home}/").status == 200
    assert inside.get(f"{console.origin}/").status == 403, "not without the room"
    assert inside.post(f"{console.home}/log/verify", headers={"Origin": "http://evil.example.org"}).status == 403
    assert inside.post(f"{console.home}/log/verify").status == 403, "no origin"
    assert inside.post(f"{console.home}/log/verify", headers={"Origin": console.origin}).status == 200
    assert inside.get(f"{console.home}/offer/{'0' * 64}").status == 404
    policy = inside.get(f"{console.home}/").headers["content-security-policy"]
    assert policy.startswith("default-src 'self'")
    console.check()
