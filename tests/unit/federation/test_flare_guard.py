"""What the guard changes in FLARE is checked: a change that did not take ends the process."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("nvflare", reason="the extra dpfda[federated] is not installed")

from dpfda.errors import InvalidInput
from dpfda.federation.flare import guard, tls


def test_a_process_that_was_not_guarded_does_not_start(tmp_path):
    with pytest.raises(InvalidInput, match="could not be made safe"):
        guard.check_guard(tmp_path)
    assert tls.find_missing_tls() != []


def test_a_change_that_does_not_take_is_noticed():
    class Stubborn:
        name = property(lambda self: 1, lambda self, value: None)

    with pytest.raises(InvalidInput, match="could not be changed"):
        guard.replace(Stubborn(), "name", lambda old: old + 1)
    plain = SimpleNamespace(name=1)
    guard.replace(plain, "name", lambda old: old + 1)
    assert plain.name == 2


@pytest.mark.parametrize("name", ["NVFLARE_X", "NVFL_Y", "FL_LOG_LEVEL"])
def test_variables_that_flare_obeys_are_refused(monkeypatch, name):
    monkeypatch.setenv(name, "x")
    with pytest.raises(InvalidInput, match=name):
        guard.check_environment()
