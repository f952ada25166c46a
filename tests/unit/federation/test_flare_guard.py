"""What the guard changes in FLARE is checked: a change that did not take ends the process."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("nvflare", reason="the extra dpfda[federated] is not installed")

from dpfda.errors import InvalidInput
from dpfda.federation.flare import guard, tls, without_grpc


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


def test_a_process_of_flare_loads_neither_grpc_nor_numpy():
    """As it is started: the module is the main one; it ends at its settings, which are none."""
    told = (
        "import runpy, sys\n"
        "sys.argv = ['client', '{}']\n"
        "try:\n"
        "    runpy.run_module('dpfda.federation.flare.client', run_name='__main__')\n"
        "except BaseException as error:\n"
        "    found = sys.modules['grpc']\n"
        "    print(type(error).__name__, hasattr(found, '__file__'), found.Compression.Gzip, 'numpy' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.split()[1:] == ["False", "2", "False"], done.stdout


def test_grpc_that_is_loaded_already_stays(monkeypatch):
    loaded = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "grpc", loaded)
    without_grpc.stand_in_for_grpc()
    assert sys.modules["grpc"] is loaded
