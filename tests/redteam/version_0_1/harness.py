"""What the scripts of this folder share: the source under attack, a verdict, a small kit, small studies.

Nothing here attacks anything. Everything stays on this machine: files in a temporary folder, sockets on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

PACE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "NUMBA_CACHE_DIR": str(Path(tempfile.gettempdir()) / "dpfda-redteam-numba"),
}


def source() -> Path:
    """Read --source, put it first on Python's path, here and in every process that is started from here."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True, type=Path, help="the src folder of the version under attack")
    chosen = parser.parse_args().source.resolve()
    os.environ.update(PACE)
    os.environ["PYTHONPATH"] = str(chosen)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(chosen))
    import dpfda

    if Path(dpfda.__file__).resolve().parent != chosen / "dpfda":
        sys.exit(f"dpfda was imported from {dpfda.__file__}, not from {chosen}.")
    return chosen


def broken(fact: str) -> NoReturn:
    """The break was shown."""
    print(f"BROKEN: {fact}", flush=True)
    sys.exit(0)


def holds(fact: str) -> NoReturn:
    """It was not."""
    print(f"HOLDS: {fact}", flush=True)
    sys.exit(1)


def verdict(shown: bool, fact: str, otherwise: str) -> NoReturn:
    """One of the two."""
    broken(fact) if shown else holds(otherwise)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder that only we can read and that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="dpfda-redteam-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def plan_of(n: int, rounds: list[Any], **changes: Any) -> Any:
    """A plan for one silo called "north" with n curves, with whatever the coordinator chooses to change."""
    from dpfda.engine.plan import Plan, Scaling, SiloTerms

    from dpfda.basis import Cosine

    basis = changes.pop("basis", Cosine(3, (0.0, 1.0)))
    terms = changes.pop("terms", SiloTerms("north", n, 1.0, 1e-9, shares=changes.pop("shares", ())))
    return Plan(
        method="published",
        algorithm="attack",
        basis=basis,
        n_coefficients=changes.pop("n_coefficients", 1),
        scaling=changes.pop("scaling", Scaling((-1.0, 1.0), ((1.0, 1.0),))),
        rounds=tuple(rounds),
        silos=(terms,),
        **changes,
    )


def study_toml(
    folder: Path, name: str = "lipid", *, n: int = 40, sites: tuple[str, ...] = ("north",), more: str = ""
) -> Path:
    """A coordinator's study file; the server listens on loopback."""
    from dpfda.cli.federate_demo import free_ports

    port, admin = free_ports(2)
    path = folder / f"{name}.toml"
    tables = "".join(f'[[sites]]\nname = "{site}"\nn = {n}\nepsilon = 1.0\ndelta = 1e-6\n' for site in sites)
    path.write_text(
        f'name = "{name}"\nmodel = "mean"\ndomain = [0.0, 1.0]\ny_bounds = [-1.0, 1.0]\nmin_sites = 1\n{more}'
        f'[server]\nhost = "127.0.0.1"\nport = {port}\nadmin_port = {admin}\n{tables}'
    )
    return path


def site_data(folder: Path, n: int = 40, *, seed: int = 0, points: int = 4) -> Path:
    """A site's table."""
    import numpy as np

    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["id,x,y"]
    for subject in range(n):
        visits = rng.uniform(0, 1, points)
        lines.extend(f"s{subject:04d},{x:.6f},{0.5 * x + rng.normal(0, 0.1):.6f}" for x in visits)
    path = folder / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def site_policy(folder: Path, *, epsilon: float = 10.0, delta: float = 1e-5) -> Path:
    """A site's policy: the study's promise, a total budget and where the ledger is."""
    path = folder / "site.toml"
    path.write_text(
        '[data]\nsource = "table.csv"\nid = "id"\nx = "x"\ny = "y"\n[promise]\nepsilon = 1.0\ndelta = 1e-6\n'
        f'[budget]\nepsilon = {epsilon}\ndelta = {delta}\nledger = "ledger.sqlite"\n'
    )
    return path


def command(*words: str, ask: str = "", cwd: Path | None = None) -> tuple[int, str]:
    """Run `dpfda ...` as a person would, with `ask` typed in; exit code and everything that was printed."""
    import subprocess

    done = subprocess.run(
        [sys.executable, "-P", "-m", "dpfda", *words], input=ask, capture_output=True, text=True, cwd=cwd, check=False
    )
    return done.returncode, done.stdout + done.stderr


def coordinator_kit(study: Path, site: str = "north") -> Path:
    """What an honest coordinator makes and sends: the zip of one site."""
    from dpfda.federation.workspace import init_study

    folder, _ = init_study(study)
    return folder.kits / f"{site}.zip"


def one_function() -> Any:
    """A basis of one function, as quantile studies have it."""
    from dpfda.basis import Cosine

    return Cosine(1, (0.0, 1.0))
