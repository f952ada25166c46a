"""Every field of a plan at extreme values, each on its own, against version 0.1: what a coordinator's choice does.

For each mutation of an honest plan's JSON: where it is refused, or by how much the sum over one of two neighbouring
data sets differs from the other in units of what is declared (more than 1 breaks the promise). Each case runs in a
process of its own, with a limit of time and memory, since some of them may end it. `python probe_fields.py --source
/path/to/v01/src` prints the table.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

SECONDS, GIGABYTES = 20, 4
HUGE, TINY = 1e300, 1e-300
NUMBERS: list[Any] = [
    0,
    -1,
    1,
    1.5,
    True,
    1e-101,
    1e101,
    HUGE,
    -HUGE,
    TINY,
    float("nan"),
    float("inf"),
    2**31,
    2**63,
    2**70,
    "1",
    None,
    [],
]
COUNTS: list[Any] = [
    0,
    -1,
    1,
    2,
    3,
    5,
    64,
    1000,
    99_999,
    100_000,
    2**31,
    2**62,
    2**63,
    2**70,
    1.0,
    1.5,
    True,
    False,
    "3",
    None,
    float("nan"),
]
PAIRS: list[Any] = [
    [0, 0],
    [1, 0],
    [0, 1e-300],
    [-1e100, 1e100],
    [-1e308, 1e308],
    [5, 6],
    [0, float("nan")],
    [0],
    [0, 1, 2],
    "ab",
    None,
]
FIELDS: dict[str, list[Any]] = {
    "n_coefficients": COUNTS,
    "calibration": ["lemma1", "none", "", None, 1],
    "method": ["", "none", None],
    "step": NUMBERS[:3],
    "alpha": NUMBERS[:3],
    "basis.size": COUNTS,
    "basis.domain": PAIRS,
    "basis.name": ["fourier", "fourier-extension", "none"],
    "scaling.y_bounds": PAIRS,
    "scaling.y_shift": NUMBERS,
    "scaling.y_scale": NUMBERS,
    "scaling.design_bounds": [[[1, 0]], [[0, 0]], [[-1e100, 1e100]], [[1, 1], [0, 1]], [[1]], [1, 1], []],
    "scaling.design_shift": [[0, 0], [1e100], [float("nan")], 1],
    "scaling.design_scale": [[1, 1], [1e-100], [-1], [0], [float("nan")]],
    "silos.0.n": COUNTS,
    "silos.0.epsilon": [0, 1e-6, 0.5, 1.0000001, 1e4, float("nan")],
    "silos.0.delta": [0, 1e-100, 1e-6, 0.5, 1.0],
    "silos.0.clip_factor": NUMBERS,
    "silos.0.weight": NUMBERS[:3],
    "silos.0.shares": [
        [],
        [[0.5]],
        [[1e-300]],
        [[5e-324]],
        [[True]],
        [[1.0]],
        [[2]],
        [[-1]],
        [[float("nan")]],
        [["1"]],
        [[0.5, 0.5]],
    ],
    "rounds.0.part": COUNTS,
    "rounds.0.parts": COUNTS,
    "rounds": [[], [{"measures": [], "part": None, "parts": 1}]],
}
MEASURES: dict[str, dict[str, list[Any]]] = {
    "level-histogram": {"bins": COUNTS},
    "entrywise-gradient": {
        "radii": [
            [],
            [1],
            [1, 1],
            [1, 1, 1],
            [1] * 4,
            [1] * 50,
            [1e-100] * 3,
            [1e100] * 3,
            [1e-101] * 3,
            [0, 1, 1],
            "111",
        ]
    },
    "clipped-rest": {"reach": NUMBERS},
    "covariate-products": {"radius": NUMBERS},
    "share-below": {"level": NUMBERS[:3]},
    "covariate-squares": {},
    "design-moments": {},
    "whitened-gradient": {},
    "short-share": {},
    "spread-matrix": {},
}


def honest(kind: str) -> dict[str, Any]:
    """A plan of one round with one measure, as JSON."""
    fields = {"entrywise-gradient": {"radii": [1.0] * 3}}.get(kind, {})
    return {
        "method": "published", "algorithm": "probe", "n_coefficients": 1, "calibration": "exact",
        "step": 1.0, "alpha": 2.0,
        "basis": {"name": "cosine", "size": 1 if kind == "share-below" else 3, "domain": [0.0, 1.0]},
        "scaling": {"y_bounds": [-1.0, 1.0], "design_bounds": [[1.0, 1.0]], "y_shift": 0.0, "y_scale": 1.0},
        "rounds": [{"measures": [{"kind": kind, **fields}], "part": None, "parts": 1}],
        "silos": [{"name": "north", "n": 24, "epsilon": 1.0, "delta": 1e-6, "clip_factor": 1.0, "shares": [[0.5]]}],
        "projection": {"kind": "none", "alpha": 3.0, "radius": 1.0},
    }  # fmt: skip


def changed(plan: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The plan with one field replaced."""
    plan = json.loads(json.dumps(plan))
    *way, last = path.split(".")
    place: Any = plan
    for step in way:
        place = place[int(step) if step.isdigit() else step]
    place[last] = value
    return plan


def one(plan: dict[str, Any]) -> str:
    """What becomes of a plan, in this process."""
    import numpy as np
    from dpfda.engine.plan import Plan
    from dpfda.messages import Query

    from dpfda.curves import Curves
    from dpfda.silo import Silo

    def people(last: list[tuple[float, float]]) -> Curves:
        rng = np.random.default_rng(1)
        rows = [(i, x, y) for i in range(23) for x, y in zip(rng.uniform(0, 1, 3), rng.normal(0, 0.3, 3), strict=True)]
        rows += [(23, x, y) for x, y in last] or [(23, -9.0, 0.0)]
        ids, x, y = map(np.array, zip(*rows, strict=True))
        return Curves.from_long(ids, x, y)

    neighbours = [
        people(last) for last in ([(0.5, 0.1)] * 3, [], [(0.1, 1e300)], [(k / 40, (-1) ** k * 1e3) for k in range(40)])
    ]
    where, totals, outcomes = "from_dict", [], []
    for curves in neighbours:
        try:
            where = "from_dict"
            parsed = Plan.from_dict(plan)
            where = "join"
            silo = Silo(curves, epsilon=1.0, delta=1e-6, name="north")
            silo.join(parsed, "run")
            where = "query"
            sizes = parsed.query_sizes(0)
            arrays = {name: np.zeros(int(size)) for name, size in sizes.items()}
            width = sizes.get("iterate", 0)
            if "whitener" in arrays:
                arrays["whitener"] = np.eye(int(width)).ravel()
            for name in ("covariate_scale", "rest_direction"):
                if name in arrays:
                    arrays[name][:] = 1.0
            where = "release"
            query = Query("run", 0, arrays)
            bounded, _ = silo._bounded_sum(silo._checked(query), query)
            totals.append(bounded)
            silo.release(query)
            outcomes.append("answered")
        except Exception as error:
            outcomes.append(f"{where}: {type(error).__name__}")
    told = f"answers DIFFER {outcomes}" if len(set(outcomes)) > 1 else outcomes[0]
    if len(totals) > 1:
        norms = [each.sensitivity.whitened_norm(each.total - totals[0].total) for each in totals[1:]]
        told += f", change {max(norms):.3g} of 1 declared{'  <-- BREAKS' if not max(norms) <= 1 else ''}"
    return told


def main() -> None:
    """The table, or one case of it."""
    if len(sys.argv) > 3 and sys.argv[3] == "--case":
        resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))
        cases = json.loads(sys.stdin.read())
        sys.path.insert(0, sys.argv[2])
        for case in cases:
            began = time.monotonic()
            told = one(case)
            slow = time.monotonic() - began
            print(json.dumps(told + (f" [{slow:.1f} s]" if slow > 2 else "")), flush=True)
        return
    source = sys.argv[sys.argv.index("--source") + 1]
    todo: list[tuple[str, dict[str, Any]]] = []
    for kind, own in MEASURES.items():
        todo.append((f"{kind} | as it is", honest(kind)))
        todo += [
            (f"{kind} | {name} = {value!r}", changed(honest(kind), f"rounds.0.measures.0.{name}", value))
            for name, values in own.items()
            for value in values
        ]
    for path, values in FIELDS.items():
        for kind in ("level-histogram", "entrywise-gradient", "whitened-gradient", "design-moments"):
            if kind == "level-histogram" or path.startswith(("basis", "scaling", "silos.0.clip", "n_coeff")):
                todo += [(f"{kind} | {path} = {value!r}", changed(honest(kind), path, value)) for value in values]
    while todo:
        text = json.dumps([case for _, case in todo])
        command = [sys.executable, __file__, "--source", source, "--case"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            out, err = process.communicate(text, timeout=SECONDS + 0.5 * len(todo))
            ended = f"PROCESS ENDED ({process.returncode}) {err.strip().splitlines()[-1:]}"
        except subprocess.TimeoutExpired as slow:
            process.kill()
            process.communicate()
            out, ended = (
                (slow.stdout or b"").decode() if isinstance(slow.stdout, bytes) else slow.stdout or "",
                "TOO SLOW, killed",
            )
        lines = [json.loads(line) for line in out.splitlines()]
        for (name, _), line in zip(todo, lines, strict=False):
            print(f"{name}: {line}", flush=True)
        if len(lines) < len(todo):
            print(f"{todo[len(lines)][0]}: {ended}", flush=True)
        todo = todo[len(lines) + 1 :]


if __name__ == "__main__":
    main()
