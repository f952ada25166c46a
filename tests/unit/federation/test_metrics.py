"""The text for Prometheus: its format, where it is served, and that it holds public numbers only."""

from __future__ import annotations

import http.client
import math

import pytest

from dpfda.errors import InvalidInput
from dpfda.federation.metrics import Metric, MetricsServer, seconds_since, write_metrics


def fetch(port, path="/metrics", host=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    return answer.status, answer.getheader("Content-Type"), answer.read().decode()


def test_numbers_of_one_name_stand_together_and_labels_are_escaped():
    text = write_metrics(
        [
            Metric("a_total", "How many.", 2, "counter", {"site": "north"}),
            Metric("b", "Another.", math.nan),
            Metric("a_total", "How many.", 3.5, "counter", {"site": 'so"uth\n'}),
        ]
    )
    assert text == (
        "# HELP a_total How many.\n# TYPE a_total counter\n"
        'a_total{site="north"} 2.0\na_total{site="so\\"uth\\n"} 3.5\n'
        "# HELP b Another.\n# TYPE b gauge\nb NaN\n"
    )


def test_it_is_served_on_loopback_to_those_who_ask_for_it_by_name():
    with MetricsServer(0, lambda: [Metric("up", "It is.", 1.0)]) as server:
        assert server._server.server_address[0] == "127.0.0.1"
        status, kind, body = fetch(server.port)
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert body.endswith("up 1.0\n")
        assert fetch(server.port, "/")[0] == 404
        assert fetch(server.port, host="evil.example.org")[0] == 404, (
            "a page elsewhere cannot read it by a name of its own"
        )
        with pytest.raises(InvalidInput, match=f"--metrics: port {server.port}"):
            MetricsServer(server.port, list)
    with pytest.raises(ConnectionRefusedError):
        fetch(server.port)


def test_a_contact_that_never_was_is_not_a_number():
    assert math.isnan(seconds_since(None))
    assert seconds_since(0.0) > 1e9
