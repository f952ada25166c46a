"""Numbers for a monitoring system, as Prometheus reads them: at 127.0.0.1, if asked for, and public facts only.

Public means: what the coordinator sees anyway (who is connected, rounds, answers), and the state of processes and
certificates. Nothing about rows, nothing about the ledger: what a site has spent is its owner's business.
"""

from __future__ import annotations

import http.server
import math
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dpfda.errors import InvalidInput

TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PATH = "/metrics"


@dataclass(frozen=True)
class Metric:
    """One number with its meaning; `labels` are public names such as a site's."""

    name: str
    help: str
    value: float
    kind: str = "gauge"
    labels: dict[str, str] = field(default_factory=dict)


def write_metrics(metrics: Iterable[Metric]) -> str:
    """The text format, version 0.0.4; numbers of one name stand together under one line of help."""
    groups: dict[str, list[Metric]] = {}
    for metric in metrics:
        groups.setdefault(metric.name, []).append(metric)
    lines = []
    for name, members in groups.items():
        lines += [f"# HELP {name} {members[0].help}", f"# TYPE {name} {members[0].kind}"]
        lines += [f"{name}{_write_labels(each.labels)} {_write_number(each.value)}" for each in members]
    return "\n".join(lines) + "\n"


def _write_number(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(float(value))


def _write_labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    escaped = {
        name: value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for name, value in labels.items()
    }
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped.items()) + "}"


class MetricsServer:
    """Serves `/metrics` at 127.0.0.1 while it is entered; another path, host or method gets nothing."""

    def __init__(self, port: int, collect: Callable[[], Iterable[Metric]]) -> None:
        try:
            self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), _make_handler(collect))
        except (OSError, OverflowError) as error:
            raise InvalidInput(
                f"--metrics: port {port} of 127.0.0.1 cannot be used ({error}); choose another."
            ) from None
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])

    def __enter__(self) -> MetricsServer:
        threading.Thread(target=self._server.serve_forever, args=(0.5,), name="metrics", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _make_handler(collect: Callable[[], Iterable[Metric]]) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 5.0
        server_version, sys_version = "dpfda", ""

        def do_GET(self) -> None:
            host = self.headers.get("Host", "").partition(":")[0]
            if self.path != _PATH or host not in ("127.0.0.1", "localhost"):
                self.send_error(404)
                return
            body = write_metrics(collect()).encode()
            self.send_response(200)
            self.send_header("Content-Type", TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing: a scrape every few seconds would fill the log."""

    return Handler


def seconds_since(moment: float | None) -> float:
    """Seconds since a moment of the clock; not a number if there was none."""
    return float("nan") if moment is None else max(0.0, time.time() - moment)
