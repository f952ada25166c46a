"""Time, bytes and memory of a study on one machine: real sites (3, 10, 30) and 1,000 silos in process.

python -m benchmarks.federation 3 10 30 --in-process 1000
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from dpfda.cli.commands.federate_demo import free_port
from dpfda.curves.curves import Curves
from dpfda.federation.consortium import ConsortiumFolder
from dpfda.federation.decisions import Decisions
from dpfda.federation.enrolment import request_enrolment, take_credentials
from dpfda.federation.flare.launch import ended_politely, make_command
from dpfda.federation.flare.supervisor import Supervisor
from dpfda.federation.folder import SiteFolder
from dpfda.federation.policy import SitePolicy
from dpfda.federation.running import RunOptions, StudyRun
from dpfda.federation.seal import write_seal
from dpfda.federation.site_ledger import create_ledger, open_ledger
from dpfda.federation.status import Status
from dpfda.federation.study import name_study
from dpfda.federation.workspace import propose_study
from dpfda.methods.run import run_study
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.terms import SiloTerms, StudyTerms
from dpfda.silo.silo import Silo
from dpfda.transports.in_process import InProcessTransport

R, N, POINTS = 50, 200, 5
LOOK_EVERY = 10  # rounds, at the memory of sites: the median of a round must not hold it
PASSPHRASE = b"of a benchmark, for minutes"


def curves(seed: int) -> Curves:
    """N curves of POINTS points."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(N), POINTS)
    x = rng.uniform(0, 1, ids.size)
    return Curves.from_long(ids, x, np.sin(6 * x) + rng.normal(0, 0.3, ids.size))


def study_toml(names: list[str]) -> str:
    """The published method: many rounds with one vector of R numbers each."""
    head = (
        'consortium = "consortium"\nname = "bench"\nmodel = "mean"\ndomain = [0, 1]\ny_bounds = [-3, 3]\n'
        f'method = "published"\nn_basis = {R}\nmin_sites = {len(names)}\n'
    )
    site = '[[sites]]\nname = "{}"\nn = {}\nepsilon = 1.0\ndelta = 1e-3\npoints_per_curve = {}\n'
    return head + "".join(site.format(name, N, POINTS) for name in names)


def enrol(root: Path, consortium: ConsortiumFolder, name: str, seed: int) -> SiteFolder:
    """Keys, credentials, data, policy, ledger."""
    credentials, _ = consortium.sign(request_enrolment(root / name, name), name, "bench", PASSPHRASE)
    folder, data = SiteFolder(root / name), curves(seed)
    take_credentials(folder, credentials, lambda _: True)
    rows = zip(data.owners, data.x, data.y, strict=True)
    lines = [f"s{owner:05d},{float(x)!r},{float(y)!r}\n" for owner, x, y in rows]
    (root / f"{name}.csv").write_text("pid,t,value\n" + "".join(lines))
    source = {"source": str(root / f"{name}.csv"), "id": "pid", "x": "t", "y": "value"}
    policy = SitePolicy(source, 1.0, 1e-3, 1.0, 1e-3, str(root / f"{name}.ledger"))
    create_ledger(policy)
    policy.save(folder.policy_path)
    write_seal(folder)
    return folder


@contextlib.contextmanager
def serving(folder: SiteFolder) -> Iterator[None]:
    """A site's client and silo processes."""
    stop = threading.Event()
    command = make_command("dpfda.federation.silo_main", str(folder.root))
    thread = threading.Thread(target=Supervisor(folder, command, lambda _: None).run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def with_processes(count: int) -> None:
    """A study over real sites; one line of the table."""
    with tempfile.TemporaryDirectory(prefix="dpfda-bench-") as scratch, contextlib.ExitStack() as stack:
        root, names = Path(scratch), [f"site{index:02d}" for index in range(count)]
        consortium = ConsortiumFolder.create(
            root / "consortium", "bench", "127.0.0.1", free_port(), PASSPHRASE, "127.0.0.1"
        )
        sites = [enrol(root, consortium, name, seed) for seed, name in enumerate(names)]
        (root / "bench.toml").write_text(study_toml(names))
        folder = propose_study(root / "bench.toml")
        terms, signed, peak = folder.terms(), folder.terms_path.read_bytes(), [0.0]
        began = time.perf_counter()
        for site in sites:
            decisions = Decisions(site)
            decisions.keep(signed)
            decisions.accept(terms, open_ledger(SitePolicy.load(site.policy_path)))
            stack.enter_context(serving(site))

        def watch(status: Status) -> None:
            if status.done % LOOK_EVERY:  # looking through all processes takes as long as a site's answer
                return
            family = [each for each in psutil.Process().children() if "flare.server" not in str(each.cmdline())]
            peak[0] = max(peak[0], sum(each.memory_info().rss for each in family) / 2**20 / count)

        StudyRun(folder, RunOptions(for_sites=300.0, in_all=300.0, after_enough=60.0), watch).to_end()
        in_all = time.perf_counter() - began
        status = folder.status()
        assert status is not None
        seconds = status.round_seconds
        out, back = message_sizes(terms)
        print(
            f"| {count} sites | {len(seconds) + 1} | {1000 * statistics.median(seconds):.1f} | {1000 * max(seconds):.1f} | "
            f"{out:,} | {back:,} | {peak[0]:.0f} | {in_all - sum(seconds):.1f} |", flush=True,
        )  # fmt: skip


def message_sizes(terms: StudyTerms) -> tuple[int, int]:
    """Bytes of a question to one site and of its answer, without signatures."""
    query = Query(name_study(terms), 1, {"iterate": np.zeros(R)})
    release = Release(name_study(terms), 1, terms.silos[0].name, np.zeros(R), np.zeros(R), True)
    return len(query.encode()), len(release.encode())


def in_process(count: int) -> None:
    """The same study over silos in this process."""
    stated = tuple(SiloTerms(f"silo{index:04d}", N, 1.0, 1e-3, float(POINTS)) for index in range(count))
    terms = StudyTerms("published", (0.0, 1.0), (-3.0, 3.0), stated, n_basis=R, name="bench")
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-3, "points_per_curve": POINTS}
    silos = [Silo(curves(index), name=each.name, **options) for index, each in enumerate(stated)]
    ticks = [time.perf_counter()]
    run_study(terms, InProcessTransport(silos), name_study(terms), lambda *_: ticks.append(time.perf_counter()))
    ms = 1000 * np.diff(ticks)[1:]
    print(f"| {count} silos in process | {len(ticks) - 1} | {np.median(ms):.1f} | {ms.max():.1f} | | | | |")


def main() -> None:
    """The table of docs/federation.md."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sites", type=int, nargs="*", default=[3])
    parser.add_argument("--in-process", type=int, default=0)
    arguments = parser.parse_args()
    print("| sites | rounds | median ms a round | longest | bytes out | bytes back | MB a site | start-up s |")
    print("|---|---|---|---|---|---|---|---|")
    with ended_politely():
        for count in arguments.sites:
            with_processes(count)
    if arguments.in_process:
        in_process(arguments.in_process)


if __name__ == "__main__":
    main()
