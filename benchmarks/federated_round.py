"""How long a round over real FLARE processes takes, and what they cost when nothing happens.

    python benchmarks/federated_round.py [sites] [bytes] [rounds] [idle seconds]

Server, clients and silos are the processes of the end-to-end tests, with mutual TLS on 127.0.0.1; the silos check the
question's signature and sign their answer, and do nothing else.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "e2e" / "federation"))

from consortium import Consortium  # type: ignore[import-not-found]

from dpfda.federation.rounds import Closing, count_all
from dpfda.federation.signing import QUERY, Subject, sign_message


def measure(count: int, size: int, rounds: int, idle: float) -> None:
    """Start everything, measure, stop everything."""
    with tempfile.TemporaryDirectory() as root:
        world = Consortium(Path(root) / "consortium")
        names = [f"site-{number}" for number in range(count)]
        for name in names:
            world.add(name)
        began = time.perf_counter()
        try:
            world.start_server()
            for site in world.sites.values():
                site.start()
            world.wait_for(*names, seconds=300)
            print(f"{count} sites and the server are up after {time.perf_counter() - began:.1f} s")
            measure_rounds(world, names, size, rounds)
            measure_idle(world, idle)
        finally:
            world.close()


def measure_rounds(world: Consortium, names: list[str], size: int, rounds: int) -> None:
    """Rounds of signed questions, one after another."""
    link, closing = world.link(), Closing(len(names), 5.0, 60.0)
    times = []
    for number in range(rounds):
        question = sign_message(QUERY, Subject("0" * 64, "run", number), os.urandom(size), world.signing_key)
        began = time.perf_counter()
        answers = link.ask(names, question, closing, count_all)
        times.append(1000 * (time.perf_counter() - began))
        assert len(answers.given) == len(names), answers.missing
    times.sort()
    middle, high = times[len(times) // 2], times[int(0.95 * (len(times) - 1))]
    print(
        f"round of {len(names)} sites, {size} bytes: median {middle:.2f} ms, 95% {high:.2f} ms, most {times[-1]:.2f} ms"
    )


def measure_idle(world: Consortium, seconds: float) -> None:
    """Processor time and memory of each process while nobody asks."""
    site = next(iter(world.sites.values()))
    processes = {
        "server": psutil.Process(world.server.pid), "client": site.client(), "silo": site.silo(),
        "supervisor": psutil.Process(site.process.pid),
    }  # fmt: skip
    before = {name: sum(process.cpu_times()[:2]) for name, process in processes.items()}
    time.sleep(seconds)
    for name, process in processes.items():
        used = sum(process.cpu_times()[:2]) - before[name]
        memory = process.memory_full_info()
        print(
            f"idle {name}: {100 * used / seconds:.2f}% of a core, {memory.rss / 1e6:.0f} MB resident, "
            f"{memory.uss / 1e6:.0f} MB of its own, {process.num_threads()} threads"
        )


if __name__ == "__main__":
    given = [float(text) for text in sys.argv[1:]]
    chosen = given + [3, 8000, 500, 30][len(given) :]
    measure(int(chosen[0]), int(chosen[1]), int(chosen[2]), chosen[3])
