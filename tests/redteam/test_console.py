"""Eighth review, R8-5: cookies know no ports, so that another user's server on this machine was sent the console's."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

sync_api = pytest.importorskip("playwright.sync_api")

from browsers import launch_chromium  # noqa: E402

CONSOLE = """
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from dpfda.cli.console.guarding import COOKIE
from dpfda.cli.console.serving import serve_console

async def home(request):
    return PlainTextResponse(f"the steward's page, {request.cookies[COOKIE]}")

async def approve(request):
    return PlainTextResponse("Accepted")

routes = [Route("/", home), Route("/approve", approve, methods=["POST"])]
serve_console(lambda room: routes, 0, lambda link: print(link, flush=True))
"""


@pytest.fixture
def link() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-c", CONSOLE], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.terminate()
    process.wait(20)


@pytest.fixture
def thief() -> Iterator[tuple[int, list[dict[str, str]]]]:
    """A server at another port of 127.0.0.1, and what browsers tell it."""
    told: list[dict[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.append(dict(self.headers))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<img src=/again>hello")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port, told
    server.shutdown()
    server.server_close()


def test_a_browser_tells_the_console_s_secrets_to_no_other_port(link, thief, chromium) -> None:
    port, told = thief
    with sync_api.sync_playwright() as playwright:
        browser = launch_chromium(playwright, chromium)
        context = browser.new_context()
        page = context.new_page()
        page.goto(link)
        assert "the steward's page" in page.inner_text("body")
        session, room = page.inner_text("body").split(", ")[1], page.url.split("/")[3]
        other = context.new_page()
        other.goto(f"data:text/html,<a id=a href='http://127.0.0.1:{port}/'>look</a>")
        with other.expect_response(lambda response: response.url.endswith("/again")):
            other.click("#a")
        page.evaluate(f"location.href = 'http://127.0.0.1:{port}/from-the-console'")
        page.wait_for_url("**/from-the-console")
        browser.close()
    assert len(told) >= 3
    assert session not in str(told)
    assert room not in str(told)
    cookie = {"Cookie": f"dpfda_console={session}"}
    origin = link.partition("/enter")[0]
    with pytest.raises(urllib.error.HTTPError, match="403"):  # the cookie alone opens nothing
        urllib.request.urlopen(urllib.request.Request(f"{origin}/approve", b"", cookie | {"Origin": origin}))
