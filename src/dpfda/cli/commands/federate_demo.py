"""`dpfda federate-demo`: a whole study on this machine, with real data, real processes and mutual TLS."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfda.cli.new_app import example, new_app
from dpfda.cli.terminal import Terminal

if TYPE_CHECKING:
    import pandas as pd

app = new_app()

DATASET = "nafld-lipid"
SITES = {"north": 0.5, "middle": 0.3, "south": 0.2}
_SPLIT_SEED = 20261115
_GRID = 8
_PASSPHRASE = b"of a consortium that ends with the demo"


@app.command(epilog=example("dpfda federate-demo"))
def federate_demo(
    ctx: typer.Context,
    epsilon: Annotated[float, typer.Option("--epsilon", help="What every site promises.")] = 1.0,
    delta: Annotated[float, typer.Option("--delta")] = 1e-5,
) -> None:
    """Three hospitals estimate the mean of a blood lipid over age without showing each other a single row.

    Enrols three sites in a consortium, starts the server and the sites as separate processes on 127.0.0.1, runs a study
    from signed terms to the result, compares it with the pooled fit without privacy and the private fit of one site alone,
    and cleans up.
    """
    from dpfda.federation.flare.launch import ended_politely, require_flare

    require_flare()
    with tempfile.TemporaryDirectory(prefix="dpfda-demo-") as folder, ended_politely():
        run_demo(Path(folder), ctx.obj, epsilon, delta)


def run_demo(root: Path, terminal: Terminal, epsilon: float, delta: float) -> Any:
    """From the tables of three sites to one private curve; the fitted estimator."""
    from dpfda.federation.consortium import ConsortiumFolder
    from dpfda.federation.running import RunOptions, Server, StudyRun
    from dpfda.federation.study import name_study
    from dpfda.federation.workspace import propose_study

    began = time.perf_counter()
    tables = _split_tables(root)
    consortium = ConsortiumFolder.create(
        root / "consortium", "demo", "127.0.0.1", free_port(), _PASSPHRASE, "127.0.0.1"
    )
    terminal.say("Consortium demo: CA, signing key and server are made.")
    with contextlib.ExitStack() as stack:
        starting = stack.enter_context(ThreadPoolExecutor(1)).submit(lambda: stack.enter_context(Server(consortium)))
        folders = [_enrol(consortium, name, root) for name in tables]
        study = root / "lipid.toml"
        study.write_text(_study_toml(tables, epsilon, delta))
        folder = propose_study(study)
        terminal.say(f"Study {name_study(folder.terms())}: terms are signed and proposed.")
        for own, table in zip(folders, tables.values(), strict=True):
            subjects = _accept(own, folder.terms_path, root, epsilon, delta)
            terminal.say(
                f"Site {own.root.name}: {subjects:,} subjects, promises epsilon = {epsilon:g}, delta = {delta:g}."
            )
            stack.enter_context(_serving(own, terminal))
            assert subjects == table["id"].nunique()
        starting.result()
        StudyRun(folder, RunOptions(for_sites=60.0), lambda _: None).to_end()
        terminal.say(f"Finished in {time.perf_counter() - began:.0f} s, processes included.")
    fitted = folder.load_estimator()
    _show(fitted, tables, folder, terminal, epsilon, delta)
    return fitted


def _enrol(consortium: Any, name: str, root: Path) -> Any:
    """What `dpfda site enrol`, `dpfda consortium sign` and `dpfda site take` do, for one site."""
    from dpfda.federation.enrolment import request_enrolment, take_credentials
    from dpfda.federation.folder import SiteFolder

    request = request_enrolment(root / name, name)
    credentials, _ = consortium.sign(request, name, "demo", _PASSPHRASE)
    folder = SiteFolder(root / name)
    take_credentials(folder, credentials, lambda fingerprints: fingerprints == consortium.fingerprints())
    return folder


def _accept(folder: Any, terms: Path, root: Path, epsilon: float, delta: float) -> int:
    """What `dpfda site policy`, `inbox` and `accept` do, for one site; the number of its subjects."""
    from dpfda.federation.audit_log import AuditLog
    from dpfda.federation.decisions import Decisions
    from dpfda.federation.policy import read_policy
    from dpfda.federation.promise import check_promise
    from dpfda.federation.seal import write_seal
    from dpfda.federation.site_ledger import create_ledger

    decisions, name = Decisions(folder), folder.root.name
    policy = root / f"{name}.toml"
    policy.write_text(
        f'[data]\nsource = "{name}.csv"\nid = "id"\nx = "x"\ny = "y"\nduplicates = "keep"\n\n'
        f"[promise]\nepsilon = {epsilon!r}\ndelta = {delta!r}\n\n[budget]\nepsilon = {epsilon!r}\ndelta = {delta!r}\n"
    )
    rules = read_policy(policy)
    ledger = create_ledger(rules, AuditLog(folder.audit))
    rules.save(folder.policy_path)
    write_seal(folder)
    offered, _ = decisions.keep(terms.read_bytes())
    promise = check_promise(offered, rules, name)
    decisions.accept(offered, ledger)
    return promise.terms.silo(name).n


@contextlib.contextmanager
def _serving(folder: Any, terminal: Terminal) -> Iterator[None]:
    """What `dpfda site run` does: the silo's and the FLARE client's process, while this lasts."""
    from dpfda.federation.flare.launch import make_command
    from dpfda.federation.flare.supervisor import Supervisor
    from dpfda.federation.site import check_ready

    check_ready(folder, simulation=False)
    stop = threading.Event()
    command = make_command("dpfda.federation.silo_main", str(folder.root))
    supervisor = Supervisor(folder, command, terminal.detail)
    thread = threading.Thread(target=supervisor.run, args=(stop,), name=folder.root.name)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _split_tables(root: Path) -> dict[str, pd.DataFrame]:
    """Every subject goes to one site, at random (the data are public; the split is the demo's)."""
    import numpy as np

    from dpfda.curves.datasets import load_frame

    frame = load_frame(DATASET)[["id", "x", "y"]]
    ids = frame["id"].unique()
    np.random.default_rng(_SPLIT_SEED).shuffle(ids)
    ends = np.cumsum([round(share * ids.size) for share in SITES.values()])[:-1]
    tables = {}
    for name, part in zip(SITES, np.split(ids, ends), strict=True):
        tables[name] = frame[frame["id"].isin(part)]
        tables[name].to_csv(root / f"{name}.csv", index=False)
    return tables


def _study_toml(tables: dict[str, pd.DataFrame], epsilon: float, delta: float) -> str:
    from dpfda.curves.datasets import get_dataset_info

    info = get_dataset_info(DATASET)
    lines = [
        'consortium = "consortium"', 'name = "lipid-demo"', 'model = "mean"', f"domain = {list(info.domain)}",
        f"y_bounds = {list(info.y_bounds)}", 'x = "age"', 'y = "lipid"', "min_sites = 2",
    ]  # fmt: skip
    for name, table in tables.items():
        lines += ["", "[[sites]]", f'name = "{name}"', f"n = {table['id'].nunique()}", f"epsilon = {epsilon!r}"]
        lines += [f"delta = {delta!r}", "points_per_curve = 10"]
    return "\n".join(lines) + "\n"


def free_port() -> int:
    """A port of 127.0.0.1 that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _show(
    fitted: Any, tables: dict[str, pd.DataFrame], folder: Any, terminal: Terminal, epsilon: float, delta: float
) -> None:
    """The three fits beside each other, their distances, and the sites' privacy cards."""
    import numpy as np

    from dpfda.cli.study_result import print_cards

    alone_name = list(SITES)[-1]
    pooled, alone = _references(fitted, tables, alone_name, epsilon, delta)
    low, high = (float(end) for end in fitted.basis_.domain)
    terminal.out.print(_table(fitted, pooled, alone, alone_name, np.linspace(low, high, _GRID)))
    fine = np.linspace(low, high, 401)
    for label, fit in (("three sites", fitted), (f"{alone_name} alone", alone)):
        distance = float(np.sqrt(np.mean((fit.predict(fine) - pooled.predict(fine)) ** 2)))
        terminal.out.print(f"Distance of {label} from the pooled fit: {distance:.3f} (root mean square).")
    print_cards(folder, fitted.privacy_, terminal)


def _references(
    fitted: Any, tables: dict[str, pd.DataFrame], alone_name: str, epsilon: float, delta: float
) -> tuple[Any, Any]:
    """Least squares on everybody's rows, and the private fit of one site alone."""
    import pandas as pd

    from dpfda.curves.curves import Curves
    from dpfda.estimators import PrivateMean

    def curves(table: pd.DataFrame) -> Curves:
        return Curves.from_frame(table, id="id", x="x", y="y").restrict(fitted.domain)

    public: dict[str, Any] = {"domain": fitted.domain, "y_bounds": fitted.y_bounds}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the data are public: the demo may show a fit without privacy
        reference = PrivateMean(**public, n_basis=fitted.n_basis_, method="nonprivate")
        pooled = reference.fit(curves(pd.concat(list(tables.values()))))
    return pooled, PrivateMean(epsilon, delta, **public).fit(curves(tables[alone_name]))


def _table(fitted: Any, pooled: Any, alone: Any, alone_name: str, grid: Any) -> Any:
    from rich.table import Table

    table = Table(title="Mean lipid over age", title_justify="left", box=None, header_style="bold")
    for name in ("age", "three sites, private", "95% band", "pooled, NOT private", f"{alone_name} alone, private"):
        table.add_column(name, justify="right")
    low, high = fitted.band(0.95, x=grid) if fitted.has_band else (None, None)
    rows = zip(grid, fitted.predict(grid), pooled.predict(grid), alone.predict(grid), strict=True)
    for index, (x, ours, theirs, one) in enumerate(rows):
        band = "" if low is None or high is None else f"{low[index]:.2f} to {high[index]:.2f}"
        table.add_row(f"{x:.0f}", f"{ours:.2f}", band, f"{theirs:.2f}", f"{one:.2f}")
    return table
