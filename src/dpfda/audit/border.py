"""The audit of the border: parameters, ledgers, data, rows and folders, as an attacker or an accident would have them.

Each check tries what must be refused, or what must not be refused. Refusals are free, so whatever gets through is asked on
neighbouring data sets.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpfda.audit.cases import DELTA, EPSILON, NAME, default_arrays, make_silo, ordinary_curves, terms_of
from dpfda.audit.findings import Collector, Violation
from dpfda.curves.curves import Curves
from dpfda.errors import DpfdaError, InvalidInput
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.messages import Query
from dpfda.protocol.plans.registry import BUILDERS, make_plan
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.statistics import KINDS, Statistic
from dpfda.protocol.terms import SiloTerms, StudyTerms

_WRONG: tuple[Any, ...] = (
    0, False, True, -1, 1.5, 1e-300, 1e300, 2**63, float("nan"), float("inf"), "3", None, (), (1.0,), (1.0,) * 5,
    (1.0,) * 7, (0.0,) * 6, (float("nan"),) * 6, [1.0] * 6, "ones",
)  # fmt: skip
_TABLE = "id,x,y\na,0.1,1\nb,0.5,{value}\nc,0.9,1\n"
_KIT = (  # each of these ran code or decided something in version 0.1
    "local/log_config.json", "local/x__resources.json", "local/privacy.json", "startup/fed_client.json", "startup/start.sh",
    "config/comm_config.json", "studies/x.json", ".numba_config.yaml", "log_config.json", "run/local/log_config.json",
)  # fmt: skip
_ROWS = ("1", "n.d.", "1e400", "2019-01-31", "", '"', "9" * 400, "1\nb,0.5,1")


def audit_border(rng: np.random.Generator) -> tuple[int, list[Violation]]:
    """How many things were tried, and those that went wrong."""
    notes, tried = Collector("the border"), 0
    for check in (_parameters, _missing_ledgers, _changed_data, _odd_rows, _foreign_files):
        for name, label, holds in check(rng):
            tried += 1
            notes.expect(holds, name, label)
    return tried, notes.found


def _parameters(rng: np.random.Generator) -> Iterator[tuple[str, str, bool]]:
    """Every parameter of every statistic, at values out of its range: no statistic, or no plan, is made of it."""
    declared = [SiloTerms(NAME, 4, EPSILON, DELTA, 3.0)]
    for kind in KINDS.values():
        for field in dataclasses.fields(kind):
            for value in _WRONG:
                if not _allowed(kind, value):
                    label = f"{kind.kind} with {field.name} = {str(value)[:40]}"
                    yield "parameters", f"{label} was accepted", _refused(kind, {field.name: value}, declared)


def _allowed(kind: type[Statistic], value: object) -> bool:
    """The sizes that a statistic may have, stated here once more: the audit does not ask the code that it audits."""
    if kind.kind == "entrywise-gradient":
        return value == [1.0] * 6
    if kind.kind in ("covariate-moments", "covariate-histograms"):
        return type(value) is bool
    if kind.kind == "length-histogram":
        return type(value) is int and value in (0, 1, 2)
    return kind.kind == "share-below" and type(value) is float and value == 1e-300


def _refused(kind: type[Statistic], options: dict[str, Any], silos: list[SiloTerms]) -> bool:
    try:
        terms = terms_of(kind(**options), silos)
    except InvalidInput:
        return True
    except Exception:  # any other error comes from further inside than it should
        return False
    try:
        make_plan(terms)
    except InvalidInput:
        return True
    except Exception:
        return False
    finally:
        BUILDERS.pop(terms.method)  # nobody else gets this method, nor the plan that was made of it
    return False


def _missing_ledgers(rng: np.random.Generator) -> Iterator[tuple[str, str, bool]]:
    """What is not there is refused, and is not there afterwards."""
    curves = ordinary_curves(4, 1, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lost.ledger"
        doors = {"Ledger.open": lambda: Ledger.open(path), "Silo(ledger=)": lambda: make_silo(curves, ledger=path)}
        for name, door in doors.items():
            yield "ledger made on open", f"{name} of a missing ledger was answered", _refuses(door)
            yield "ledger made on open", f"{name} of a missing ledger left a file", not any(Path(folder).iterdir())
            path.unlink(missing_ok=True)


def _changed_data(rng: np.random.Generator) -> Iterator[tuple[str, str, bool]]:
    """A run whose data change after its first round gets no second answer, neither by the object nor by a new one."""
    curves = ordinary_curves(40, 1, rng)
    y = curves.y + 1e-9 * (np.arange(curves.n_points) == 0)
    other = Curves(curves.x, y, curves.offsets, curves.design)
    silo = SiloTerms(NAME, 40, EPSILON, DELTA, 3.0)
    constants = PublishedConstants(C_T=1.0)
    terms = StudyTerms("published", (0.0, 1.0), (-2.0, 2.0), (silo,), basis="fourier", n_basis=3, constants=constants)
    plan = make_plan(terms)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "audit.ledger"
        Ledger.create(path, EPSILON, DELTA).close()
        answered = []
        for index, data in enumerate((curves, other, curves)):
            owner = make_silo(data, ledger=path)
            question = Query("run", min(index, 1), default_arrays(plan, min(index, 1)))
            answered.append(not _refuses(lambda o=owner, q=question: (o.join(terms, "run"), o.release(q))))
    yield "data of a run", "a round was answered from other data than the first", not answered[1]
    yield "data of a run", "a round was refused though the data are the same", answered[0] and answered[2]


def _odd_rows(rng: np.random.Generator) -> Iterator[tuple[str, str, bool]]:
    """A table as a site reads it: the rows of one subject refuse nothing, and n stays."""
    try:
        from dpfda.curves.tables import Domain, Reading, find_source, load_curves
    except ImportError:  # a library without the tools for tables
        return
    reading = Reading(Domain(0.0, 1.0), (-2.0, 2.0), id="id", x="x", y="y", rows="never refuse")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        for value in _ROWS:
            path.write_text(_TABLE.format(value=value))
            try:
                n = load_curves(find_source(str(path)), reading).curves.n
            except Exception as error:
                yield "rows refuse", f"y = {value[:12]!r}: {type(error).__name__}", False
            else:
                yield "rows refuse", f"y = {value[:12]!r}: {n} curves in place of 3", n == 3


def _foreign_files(rng: np.random.Generator) -> Iterator[tuple[str, str, bool]]:
    """A file of a kit in a site's folder is refused or gone before anything starts; the site's own files are neither."""
    try:
        from dpfda.federation.folder import SiteFolder
    except ImportError:  # a library without the tools for consortia
        return
    with tempfile.TemporaryDirectory() as place:
        folder = SiteFolder.create(Path(place) / "site")
        yield "files of a kit", "a new folder was refused", not _refuses(folder.prepare)
        for name in _KIT:
            path = folder.root / name
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(0o600)
            refused = _refuses(folder.prepare)
            yield "files of a kit", f"{name} lay in a site's folder when it started", refused or not path.exists()
            shutil.rmtree(folder.root / path.relative_to(folder.root).parts[0], ignore_errors=True)
            path.unlink(missing_ok=True)


def _refuses(door: Any) -> bool:
    try:
        door()
    except DpfdaError:
        return True
    return False
