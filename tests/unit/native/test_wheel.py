"""The wheel carries compiled kernels: built here, installed in an empty environment, run where nothing can be written."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dpfda._objects import FOLDER
from dpfda.native import build as builds
from dpfda.native.__main__ import main

ROOT = Path(__file__).parents[3]

FIT = """
import sys
import numpy as np
from dpfda import Curves, PrivateMean, _objects
rng = np.random.default_rng(1)
x = rng.random(20_000)
curves = Curves(x, np.sin(6 * x), np.arange(2001) * 10, np.ones((2000, 1)))
mean = PrivateMean(1.0, 1e-6, domain=(0, 1), y_bounds=(-2, 2), random_state=3).fit(curves)
print(_objects.load_library().level, "numba" in sys.modules, *mean.coef_.ravel().tolist())
"""


def run(command: list[str], **changed: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DPFDA_", "NUMBA_"))}
    done = subprocess.run(command, env={**kept, **changed}, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_current_objects_are_not_built_again(monkeypatch, capsys) -> None:
    monkeypatch.setattr("dpfda.native.__main__.is_current", lambda checked, everywhere: True)
    assert main([]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_the_wheel_fits_in_an_empty_environment_where_nothing_can_be_written(tmp_path) -> None:
    if not builds.is_current():
        builds.build()
    run([sys.executable, "-m", "build", "--no-isolation", "--wheel", "-o", str(tmp_path), str(ROOT)])
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stem.endswith(f"manylinux_2_17_{os.uname().machine}")
    carried = {Path(name).name for name in zipfile.ZipFile(wheel).namelist() if "/objects/" in name}
    assert carried == {"manifest.json", *(f"{name}.so" for name in builds.LEVELS if _same_machine(name))}
    venv = tmp_path / "venv"
    run([sys.executable, "-m", "venv", str(venv)])
    python = str(venv / "bin" / "python")
    run([python, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel)])
    run(["chmod", "-R", "a-w", str(venv)])
    home = "/proc/nobody"  # not even the administrator can write there
    line = run([python, "-c", FIT], HOME=home, TMPDIR=str(tmp_path)).splitlines()[-1]
    level, compiler, *coefficients = line.split()
    assert (level, compiler) == ([name for name in builds.LEVELS if builds.runs_here(name)][-1], "False")
    here = run([sys.executable, "-c", FIT], PYTHONPATH=str(FOLDER.parents[2])).splitlines()[-1]
    assert coefficients == here.split()[2:]
    assert "numba" not in run([python, "-m", "pip", "list"])


def _same_machine(name: str) -> bool:
    return builds.LEVELS[name].machine == os.uname().machine
