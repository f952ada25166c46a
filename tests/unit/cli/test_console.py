"""The console without a browser: forms, the guard, and what is shipped with it."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.resources

import pytest

pytest.importorskip("starlette")

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from dpfda.cli.console.coordinator import CoordinatorPages
from dpfda.cli.console.guarding import COOKIE, Guard
from dpfda.cli.console.pages import MOST_FIELDS, MOST_FORM, Pages, parse_number, read_form, tell_errors
from dpfda.cli.console.serving import require_console, serve_console
from dpfda.cli.console.steward import StewardPages
from dpfda.errors import InvalidInput

ASSETS = importlib.resources.files("dpfda.cli.console") / "assets"


def request(path="/", method="GET", body=b"", **headers):
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    path, _, query = path.partition("?")

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": raw}
    return Request(scope | {"server": ("127.0.0.1", 9), "scheme": "http"}, receive)


async def page(_):
    return PlainTextResponse("secret")


def test_the_guard_admits_one_browser_of_this_machine():
    guard = Guard(9)
    here = {"host": "127.0.0.1:9"}

    def get(path, **headers):
        return asyncio.run(guard.admit(request(path, **headers), page))

    link = guard.link.partition(":9")[2]
    assert get("/", **here).status_code == 403
    assert get(link, host="evil.example.org:9").status_code == 400
    assert get("/enter?token=wrong", **here).status_code == 403
    assert get("/enter?token=%C3%A9%ED%A0%80", **here).status_code == 403, "any letters may be given"
    entered = get(link, **here)
    assert entered.status_code == 303
    kept = entered.headers["set-cookie"]
    assert "HttpOnly" in kept
    assert "SameSite=strict" in kept
    assert get(link, **here).status_code == 403, "the link works once"
    cookie, room = kept.partition(";")[0], entered.headers["location"]
    assert f"Path={room};" in kept
    assert get(room, **here, cookie=cookie).body == b"secret"
    assert get(room, **here, cookie=f"{COOKIE}=wrong").status_code == 403
    assert get(room, **here, cookie=f"{COOKIE}=é").status_code == 403
    for path in ("/", "/log", "//", room[:-2], f"/x{room}", f"{room[:-1]}x/", "/é/"):
        assert get(path, **here, cookie=cookie).status_code == 403, "not without the room"
    for origin, code in (({}, 403), ({"origin": "http://127.0.0.1:8"}, 403), ({"origin": "http://127.0.0.1:9"}, 200)):
        asked = request(f"{room}log/verify", "POST", **here, cookie=cookie, **origin)
        assert asyncio.run(guard.admit(asked, page)).status_code == code
    shown = get(room, **here, cookie=cookie)
    assert "default-src 'self'" in shown.headers["content-security-policy"]
    assert shown.headers["cache-control"] == "no-store"


def test_forms_are_limited_and_numbers_are_numbers():
    fields = asyncio.run(read_form(request("/", "POST", b"a=1&b=x+y&a=2")))
    assert fields == {"a": "2", "b": "x y"}
    with pytest.raises(InvalidInput, match="too long"):
        asyncio.run(read_form(request("/", "POST", b"a=" + b"x" * MOST_FORM)))
    assert parse_number("epsilon", "") is None
    assert parse_number("epsilon", "0.5") == 0.5
    with pytest.raises(InvalidInput, match="epsilon must be a number"):
        parse_number("epsilon", "a half")


@pytest.mark.parametrize(
    ("count", "expected"),
    [(MOST_FIELDS, (200, str(MOST_FIELDS))), (MOST_FIELDS + 1, (400, "A form has at most 100 fields."))],
)
def test_a_form_of_too_many_fields_is_a_bad_request(count, expected):
    async def act(asked):
        return PlainTextResponse(str(len(await read_form(asked))))

    async def send(message):
        sent.append(message)

    sent = []
    app = Starlette(routes=[Route("/", tell_errors(Pages("Site"), act), methods=["POST"])])
    asked = request("/", "POST", "&".join(f"f{k}=1" for k in range(count)).encode())
    asyncio.run(app(asked.scope, asked.receive, send))
    assert (sent[0]["status"], sent[1]["body"].decode()) == expected


def test_what_others_wrote_is_escaped():
    said = Pages("Site <b>").say("<script>alert(1)</script>\x1b[2J", good=False).body.decode()
    assert "<script>" not in said
    assert "&lt;script&gt;" in said
    assert "\x1b" not in said


def test_htmx_is_the_file_that_its_note_names_and_pages_load_nothing_else():
    digest = hashlib.sha256((ASSETS / "htmx.min.js").read_bytes()).hexdigest()
    assert f"sha256 {digest}" in (ASSETS / "htmx.LICENSE.txt").read_text()
    for path in ASSETS.iterdir():
        if path.name.endswith((".html", ".css")):
            text = path.read_text()
            assert "http://" not in text, path.name
            assert "https://" not in text, path.name
            assert "onclick" not in text, path.name
            assert "style=" not in text, path.name


def test_a_port_in_use_is_a_sentence_and_both_consoles_have_pages():
    require_console()
    with pytest.raises(InvalidInput, match="--port 99999"):
        serve_console(lambda _: [], 99_999, print)
    assert {StewardPages.__name__, CoordinatorPages.__name__} == {"StewardPages", "CoordinatorPages"}


def test_it_ends_by_itself_when_nobody_looks():
    links = []
    serve_console(lambda _: [], 0, links.append, idle=0.5)
    assert links[0].startswith("http://127.0.0.1:")
