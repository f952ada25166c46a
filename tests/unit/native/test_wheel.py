"""The wheel carries compiled kernels: built here, installed in an empty environment, run where nothing can be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
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


IMPORT = """
import importlib
from dpfda.native.sources import kernel_modules
for module in kernel_modules():
    importlib.import_module(module)
print(len(kernel_modules()))
"""


def test_the_build_asks_for_every_package_that_compiling_imports(tmp_path) -> None:
    """In an environment that has these packages, and what numba brings, and no other."""
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    for name in ("llvmlite", *(each.split(">")[0] for each in asked)):
        for path in Path(sysconfig.get_path("purelib")).glob(f"{name}*"):
            (tmp_path / path.name).symlink_to(path)
    command = [sys.executable, "-S", "-c", IMPORT]
    paths = f"{ROOT / 'src'}{os.pathsep}{tmp_path}"
    assert int(run(command, DPFDA_KERNELS="numba", PYTHONPATH=paths)) >= 10
    (tmp_path / "scipy").unlink()
    with pytest.raises(AssertionError, match="No module named 'scipy'"):
        run(command, DPFDA_KERNELS="numba", PYTHONPATH=paths)


@pytest.mark.slow
def test_pip_installs_a_clean_clone_with_build_isolation(tmp_path) -> None:
    """What a user types. Nothing of this environment is there: pip fetches what the build asks for, and kernels are made."""
    clone, venv = tmp_path / "clone", tmp_path / "venv"
    listed = run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, clone / name)
    assert not list(clone.rglob("*.so"))
    run([sys.executable, "-m", "venv", str(venv)])
    python = str(venv / "bin" / "python")
    run([python, "-m", "pip", "install", "-q", str(clone)], PIP_CONSTRAINT=str(ROOT / "constraints.txt"))
    level, compiler, *_ = run([python, "-c", FIT], HOME=str(tmp_path)).splitlines()[-1].split()
    assert (level, compiler) == ([name for name in builds.LEVELS if builds.runs_here(name)][-1], "False")


def _same_machine(name: str) -> bool:
    return builds.LEVELS[name].machine == os.uname().machine
