"""Templates and forms of the console: everything that is shown is escaped, every form is read with a limit."""

from __future__ import annotations

import importlib.resources
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from dpfda.errors import DpfdaError, InvalidInput
from dpfda.federation.quiet import neutralise

MOST_FORM = 300_000  # bytes
MOST_FIELDS = 100
_ASSETS = importlib.resources.files("dpfda.cli.console") / "assets"
_KINDS = {"htmx.min.js": "text/javascript", "console.css": "text/css"}


class Pages:
    """Renders the templates of this folder."""

    def __init__(self, title: str) -> None:
        import jinja2

        loader = jinja2.FunctionLoader(lambda name: (_ASSETS / name).read_text(encoding="utf-8"))
        self._environment = jinja2.Environment(autoescape=True, loader=loader, undefined=jinja2.StrictUndefined)
        self._environment.filters["plain"] = lambda value: neutralise(str(value), 2000)
        self._environment.globals |= {"title": title, "room": ""}

    @property
    def room(self) -> str:
        """The beginning of every path, which no other server of this machine knows."""
        return str(self._environment.globals["room"])

    @room.setter
    def room(self, path: str) -> None:
        self._environment.globals["room"] = path

    def show(self, name: str, code: int = 200, /, **values: Any) -> Response:
        """One page or part of a page."""
        return HTMLResponse(self._environment.get_template(name).render(**values), code)

    def say(self, sentence: str, *, good: bool = True) -> Response:
        """A sentence in place of a part."""
        return self.show("said.html", sentence=sentence, good=good)


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form; each at most once."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_FORM:
            raise InvalidInput("The form is too long.")
    text = body.decode("utf-8", "strict")
    try:
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise HTTPException(400, f"A form has at most {MOST_FIELDS} fields.") from None
    return {name: values[-1].strip() for name, values in fields.items()}


def parse_number(name: str, text: str) -> float | None:
    """A number that may be left empty."""
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{name} must be a number, got {text!r}.") from None


def tell_errors(
    pages: Pages, act: Callable[[Request], Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    """What dpfda refuses is a sentence on the page."""

    async def handle(request: Request) -> Response:
        try:
            return await act(request)
        except (DpfdaError, OSError, UnicodeDecodeError) as error:
            return pages.say(neutralise(str(error), 1000), good=False)

    return handle


def serve_assets() -> list[Route]:
    """Our own style sheet and htmx; there are no other files."""

    def give(name: str) -> Callable[[Request], Awaitable[Response]]:
        async def asset(_: Request) -> Response:
            return Response((_ASSETS / name).read_bytes(), media_type=_KINDS[name])

        return asset

    async def no_icon(_: Request) -> Response:
        return Response(status_code=204)

    return [*(Route(f"/assets/{name}", give(name)) for name in _KINDS), Route("/favicon.ico", no_icon)]
