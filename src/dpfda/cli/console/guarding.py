"""Who may see a page: whoever opens the one-time link, in that one browser, on this machine.

A page on the internet that makes the browser talk to 127.0.0.1 fails at the Host check (another name), at the cookie
(SameSite=Strict) and, for anything that changes something, at the Origin check. Another user's server at another port of
127.0.0.1 is of the same site, and cookies know no ports: so every path begins with a room, a second secret, and the cookie
is for that room only. A browser sends it to no path that such a server can name, and tells the room to no other page
(no-referrer).
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

COOKIE = "dpfda_console"
POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
Next = Callable[[Request], Awaitable[Response]]


class Guard:
    """One link, one browser."""

    def __init__(self, port: int) -> None:
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._token: str | None = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self.room = f"/{secrets.token_urlsafe(32)}"
        self.link = f"http://127.0.0.1:{port}/enter?token={self._token}"
        self.last_seen = time.monotonic()

    async def admit(self, request: Request, call_next: Next) -> Response:
        """Every request passes here first."""
        response = self._refuse(request)
        if response is None:
            response = self._enter(request) if request.url.path == "/enter" else await self._serve(request, call_next)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    def _refuse(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        if host not in self._hosts:
            return PlainTextResponse("This page is served to 127.0.0.1 only.", 400)
        if request.method not in ("GET", "HEAD") and request.headers.get("origin") != f"http://{host}":
            return PlainTextResponse("The request came from another page.", 403)
        return None

    def _enter(self, request: Request) -> Response:
        given = request.query_params.get("token", "")
        if request.method != "GET" or self._token is None or not _are_equal(given, self._token):
            return PlainTextResponse("This link was used already or is wrong; start the console again.", 403)
        self._token = None  # once
        response = RedirectResponse(f"{self.room}/", 303)
        response.set_cookie(COOKIE, self._session, httponly=True, samesite="strict", path=f"{self.room}/")
        return response

    async def _serve(self, request: Request, call_next: Next) -> Response:
        room = "/" + request.url.path.split("/")[1]
        if not (_are_equal(room, self.room) and _are_equal(request.cookies.get(COOKIE, ""), self._session)):
            return PlainTextResponse("Open the link that the console printed.", 403)
        self.last_seen = time.monotonic()
        return await call_next(request)


def _are_equal(given: str, secret: str) -> bool:
    """In a time that does not depend on where they differ; any letters may be given."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())
