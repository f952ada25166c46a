"""`dpfda federate-demo`: a whole study on this machine, with real data, real processes and mutual TLS."""

from __future__ import annotations

import socket
import tempfile
import time
import warnings
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


@app.command(epilog=example("dpfda federate-demo"))
def federate_demo(
    ctx: typer.Context,
    epsilon: Annotated[float, typer.Option("--epsilon", help="What every site promises.")] = 1.0,
    delta: Annotated[float, typer.Option("--delta")] = 1e-5,
) -> None:
    """Three hospitals estimate the mean of a blood lipid over age without showing each other a single row.

    Starts one server and three sites as separate processes on 127.0.0.1, runs a study from kits to result, shows it
    beside the pooled fit without privacy and the private fit of one site alone, and cleans up.
    """
    from dpfda.federation.flare.provision import require_flare

    require_flare()
    from dpfda.federation.flare.processes import ended_politely

    with tempfile.TemporaryDirectory(prefix="dpfda-demo-") as folder, ended_politely():
        run_demo(Path(folder), ctx.obj, epsilon, delta)


def run_demo(root: Path, terminal: Terminal, epsilon: float, delta: float) -> Any:
    """From the tables of three sites to one private curve; the fitted estimator."""
    from dpfda.federation.flare.processes import stop
    from dpfda.federation.flare.run_study import RunOptions, StudyRun
    from dpfda.federation.workspace import StudyFolder, init_study

    began = time.perf_counter()
    tables = _split_tables(root)
    study = root / "lipid.toml"
    study.write_text(_study_toml(tables, epsilon, delta))
    folder, document = init_study(study)
    terminal.say(f"Study {document.id}: kits made, {len(document.plan.rounds)} rounds planned.")
    processes = []
    try:
        for name in tables:
            processes.append(_start_site(folder, name, root, epsilon, delta, terminal))  # noqa: PERF401  (ended if one fails)
        StudyRun(folder, RunOptions(for_sites=60.0), lambda *_: None).to_end()
    finally:
        stop(processes)
    terminal.say(f"Finished in {time.perf_counter() - began:.0f} s, processes included.")
    fitted = StudyFolder.of(study).load_estimator()
    _show(fitted, tables, folder, terminal, epsilon, delta)
    return fitted


def _start_site(folder: Any, name: str, root: Path, epsilon: float, delta: float, terminal: Terminal) -> Any:
    """What `dpfda site join` and `dpfda site run` do, for one site."""
    from dpfda.federation.flare.processes import start_site
    from dpfda.federation.joining import check_promise, check_ready, check_study, join, unpack
    from dpfda.federation.policy import read_policy

    policy = root / f"{name}.toml"
    policy.write_text(
        f'[data]\nsource = "{name}.csv"\nid = "id"\nx = "x"\ny = "y"\nduplicates = "keep"\n\n'
        f"[promise]\nepsilon = {epsilon!r}\ndelta = {delta!r}\n\n[budget]\nepsilon = {epsilon!r}\ndelta = {delta!r}\n"
    )
    kit = unpack(folder.kits / f"{name}.zip")
    promise = check_promise(check_study(kit), read_policy(policy), name)
    join(kit, promise)
    check_ready(kit, name)
    subjects = promise.document.terms.silo(name).n
    terminal.say(f"Site {name}: {subjects:,} subjects, promises epsilon = {epsilon:g}, delta = {delta:g}.")
    return start_site(kit, name, kit / "site.log")


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

    info, (port, admin_port) = get_dataset_info(DATASET), free_ports(2)
    lines = [
        'name = "lipid-demo"', 'model = "mean"', f"domain = {list(info.domain)}", f"y_bounds = {list(info.y_bounds)}",
        'x = "age"', 'y = "lipid"', "min_sites = 2", "", "[server]", 'host = "127.0.0.1"', f"port = {port}",
        f"admin_port = {admin_port}",
    ]  # fmt: skip
    for name, table in tables.items():
        lines += ["", "[[sites]]", f'name = "{name}"', f"n = {table['id'].nunique()}", f"epsilon = {epsilon!r}"]
        lines += [f"delta = {delta!r}", "points_per_curve = 10"]
    return "\n".join(lines) + "\n"


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody uses now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _show(
    fitted: Any, tables: dict[str, pd.DataFrame], folder: Any, terminal: Terminal, epsilon: float, delta: float
) -> None:
    """The three fits beside each other, their distances, and the sites' privacy cards."""
    import numpy as np

    from dpfda.cli.commands.study import print_cards

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
