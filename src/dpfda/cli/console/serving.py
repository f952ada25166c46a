"""The console's process: it listens at 127.0.0.1, prints a link that works once, and ends when nobody looks any more."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import socket
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    from dpfda.cli.console.guarding import Guard

IDLE = 1800.0  # seconds without a request until it ends


def require_console() -> None:
    """Refuse in one sentence where the extra is not installed."""
    for module in ("starlette", "uvicorn", "jinja2"):
        if importlib.util.find_spec(module) is None:
            raise InvalidInput("The console needs Starlette: pip install 'dpfda[console]'.")


def serve_console(
    make_routes: Callable[[str], Sequence[object]], port: int, tell: Callable[[str], None], idle: float = IDLE
) -> None:
    """Serve until Ctrl-C, or until nobody has looked for a while."""
    require_console()
    import uvicorn
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.routing import Mount

    from dpfda.cli.console.guarding import Guard

    with _listen(port) as listener:
        guard = Guard(int(listener.getsockname()[1]))
        routes: Any = list(make_routes(guard.room))
        below = [Mount(guard.room, routes=routes)]
        app = Starlette(routes=below, middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard.admit)])
        quiet: dict[str, Any] = {"log_level": "critical", "access_log": False, "server_header": False}
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", ws="none", **quiet))
        tell(guard.link)
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_serve(server, listener, guard, idle))


async def _serve(server: Any, listener: socket.socket, guard: Guard, idle: float) -> None:
    async def end_when_idle() -> None:
        while time.monotonic() - guard.last_seen < idle:
            await asyncio.sleep(min(1.0, idle))
        server.should_exit = True

    watch = asyncio.create_task(end_when_idle())
    try:
        await server.serve(sockets=[listener])
    finally:
        watch.cancel()


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    try:
        listener.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise InvalidInput(f"--port {port} of 127.0.0.1 cannot be used ({error}); choose another.") from None
    return listener
