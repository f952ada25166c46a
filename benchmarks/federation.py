"""Time, bytes and memory of a study on one machine: real FLARE sites (3, 10, 30) and 1,000 silos in process.

python -m benchmarks.federation 3 10 30 --in-process 1000
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from dpfda.cli.commands.federate_demo import free_ports
from dpfda.curves.curves import Curves
from dpfda.federation.flare.processes import ended_politely, start_site, stop
from dpfda.federation.flare.run_study import RunOptions, StudyRun
from dpfda.federation.joining import check_promise, check_study, join, unpack
from dpfda.federation.policy import read_policy
from dpfda.federation.study import make_document
from dpfda.federation.workspace import init_study
from dpfda.methods.run import run_study
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.terms import SiloTerms, StudyTerms
from dpfda.silo.silo import Silo
from dpfda.transports.checkpoint import Transcript
from dpfda.transports.in_process import InProcessTransport

R, N, POINTS = 50, 200, 5


def curves(seed: int) -> Curves:
    """N curves of POINTS points."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(N), POINTS)
    x = rng.uniform(0, 1, ids.size)
    return Curves.from_long(ids, x, np.sin(6 * x) + rng.normal(0, 0.3, ids.size))


def study_toml(names: list[str]) -> str:
    """The published method: many rounds with one vector of R numbers each."""
    port, admin_port = free_ports(2)
    head = (
        f'name = "bench"\nmodel = "mean"\ndomain = [0, 1]\ny_bounds = [-3, 3]\nmethod = "published"\nn_basis = {R}\n'
        f"min_sites = {len(names)}\n[server]\nport = {port}\nadmin_port = {admin_port}\n"
    )
    site = "[[sites]]\nname = {!r}\nn = {}\nepsilon = 1.0\ndelta = 1e-3\npoints_per_curve = {}\n"
    return head + "".join(site.format(name, N, POINTS) for name in names)


def add_site(root: Path, folder: Any, name: str, seed: int) -> Any:
    """Data, policy, promise, process."""
    data = curves(seed)
    rows = zip(data.owners, data.x, data.y, strict=True)
    lines = [f"s{owner:05d},{float(x)!r},{float(y)!r}\n" for owner, x, y in rows]
    (root / f"{name}.csv").write_text("pid,t,value\n" + "".join(lines))
    policy = root / f"{name}.toml"
    policy.write_text(
        f'[data]\nsource = "{name}.csv"\nid = "pid"\nx = "t"\ny = "value"\n[promise]\nepsilon = 1.0\ndelta = 1e-3\n'
        "[budget]\nepsilon = 1.0\ndelta = 1e-3\n"
    )
    kit = unpack(folder.kits / f"{name}.zip")
    join(kit, check_promise(check_study(kit), read_policy(policy), name))
    return start_site(kit, name, kit / "site.log")


def with_processes(count: int) -> None:
    """A study over real sites; one line of the table."""
    with tempfile.TemporaryDirectory(prefix="dpfda-bench-") as scratch:
        root, names = Path(scratch), [f"site{index:02d}" for index in range(count)]
        (root / "bench.toml").write_text(study_toml(names))
        began = time.perf_counter()
        folder, document = init_study(root / "bench.toml")
        processes, peak = [add_site(root, folder, name, seed) for seed, name in enumerate(names)], [0.0]
        started = time.perf_counter() - began

        def watch(*_: Any) -> None:
            family = [each for p in processes for each in (psutil.Process(p.pid), *psutil.Process(p.pid).children())]
            peak[0] = max(peak[0], sum(each.memory_info().rss for each in family) / 2**20 / count)

        try:
            run = StudyRun(folder, RunOptions(for_sites=300.0, in_all=300.0, after_enough=60.0), watch)
            run.to_end()
        finally:
            stop(processes)
        seconds = folder.status().round_seconds  # type: ignore[union-attr]
        out, back = message_sizes(document, folder.transcript)
        print(
            f"| {count} processes | {len(seconds) + 1} | {statistics.median(seconds):.3f} | {max(seconds):.3f} | {out:,} | "
            f"{back:,} | {peak[0]:.0f} | {started:.0f} |", flush=True,
        )  # fmt: skip


def message_sizes(document: Any, folder: Path) -> tuple[int, int]:
    """Bytes of a question to one site and of its answer."""
    query = Query(document.id, 1, {"iterate": np.zeros(document.plan.n_coefficients * document.plan.basis.size)})
    known = next(iter(folder.glob("round-000001.bin")), None)
    assert known is not None
    assert Transcript(folder).rounds()
    size = document.plan.n_coefficients * document.plan.basis.size
    release = Release(document.id, 1, document.plan.silos[0].name, np.zeros(size), np.zeros(size), True)
    return len(query.encode()), len(release.encode())


def in_process(count: int) -> None:
    """The same plan over silos in this process."""
    terms = tuple(SiloTerms(f"silo{index:04d}", N, 1.0, 1e-3, float(POINTS)) for index in range(count))
    document = make_document(
        StudyTerms("published", (0.0, 1.0), (-3.0, 3.0), terms, name="bench", min_silos=count, n_basis=R)
    )
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-3, "points_per_curve": POINTS}
    silos = [Silo(curves(index), name=each.name, **options) for index, each in enumerate(terms)]
    ticks = [time.perf_counter()]
    run_study(document.terms, InProcessTransport(silos), document.id, lambda *_: ticks.append(time.perf_counter()))
    seconds = np.diff(ticks)[1:]
    print(f"| {count} silos in process | {len(ticks) - 1} | {np.median(seconds):.3f} | {seconds.max():.3f} | | | | |")


def main() -> None:
    """The table of docs/federation.md."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sites", type=int, nargs="*", default=[3])
    parser.add_argument("--in-process", type=int, default=0)
    arguments = parser.parse_args()
    print("| sites | rounds | median s a round | longest | bytes out | bytes back | MB a site | set-up s |")
    print("|---|---|---|---|---|---|---|---|")
    with ended_politely():
        for count in arguments.sites:
            with_processes(count)
    if arguments.in_process:
        in_process(arguments.in_process)


if __name__ == "__main__":
    main()
