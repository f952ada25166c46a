"""What a new process imports: a fit needs neither a compiler nor a plotting library, and no scikit-learn."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("numba", "llvmlite", "matplotlib", "sklearn", "scipy.stats", "polars", "pyarrow", "pandas", "dask", "nvflare")

SETUP = "from dpfda import Curves, PrivateMean\nimport numpy as np, sys\n"
FIT = SETUP + (
    "rng = np.random.default_rng(1)\n"
    "curves = Curves(rng.random(9000), rng.random(9000), np.arange(3001) * 3, np.ones((3000, 1)))\n"
    "PrivateMean(1.0, 1e-6, domain=(0, 1), y_bounds=(0, 1)).fit(curves)\n"
)


def heavy_imports(code: str, *arguments: str) -> set[str]:
    code += f"\nprint('loaded', *[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_importing_an_estimator_imports_nothing_heavy() -> None:
    assert heavy_imports(SETUP) == set()


def test_a_fit_imports_nothing_heavy() -> None:
    from dpfda import _objects

    compiler = set() if _objects.load_library().handle else {"numba", "llvmlite"}  # where kernels are not compiled
    assert heavy_imports(FIT) == compiler
