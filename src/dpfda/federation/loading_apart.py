"""Reads a site's table in a process of its own, which ends: what reading tables takes in memory goes with it.

Polars and Arrow stay resident for the life of a process that has used them, a third of a silo's memory for something that
is done once. So a small table is read by a child of the silo's process, with the same code, and comes back as the arrays of
`Curves`, bit by bit; a large one, whose curves are maps of scratch files, and a database with its connection are read in
place. The child has no network of its own either: its standard input and output are pipes of the silo's process.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

import numpy as np

from dpfda.curves.curves import Curves
from dpfda.errors import DpfdaError, InvalidInput, SourceError
from dpfda.federation.policy import SitePolicy
from dpfda.protocol.terms import StudyTerms

LARGEST = 50_000_000  # bytes of a file that is read apart
_ERRORS = {kind.__name__: kind for kind in (InvalidInput, SourceError)}
_NAMES = ("x", "y", "offsets", "design", "labels")


def load_curves_apart(policy: SitePolicy, terms: StudyTerms, n: int | None) -> tuple[Curves, tuple[str, ...]]:
    """The site's curves and what was found in them, as `SitePolicy.load_curves` gives them."""
    path = policy.source().path
    if policy.source().is_database or path is None or not path.is_file() or path.stat().st_size > LARGEST:
        loaded = policy.load_curves(terms, n)
        return loaded.curves, loaded.owner_notes
    from dpfda.federation.flare.launch import make_command, make_environment

    request = {"data": dict(policy.data), "terms": terms.encode().decode(), "n": n}
    command = make_command("dpfda.federation.loading_apart")
    done = subprocess.run(
        command, input=json.dumps(request).encode(), stdout=subprocess.PIPE, env=make_environment(), check=False
    )
    if done.returncode:
        raise SourceError(f"The table could not be read: its process ended with code {done.returncode}.")
    return _unpack(done.stdout)


def main() -> int:
    """In the child: a request on standard input, arrays on standard output."""
    request = json.loads(sys.stdin.buffer.read())
    terms = StudyTerms.decode(request["terms"].encode())
    policy = SitePolicy(request["data"], 1.0, 0.5, 1.0, 0.5, "")  # only its data are used
    content: dict[str, Any]
    told: dict[str, Any]
    try:
        loaded = policy.load_curves(terms, request["n"])
        content = {name: getattr(loaded.curves, name) for name in _NAMES if getattr(loaded.curves, name) is not None}
        told = {"notes": list(loaded.owner_notes)}
    except DpfdaError as error:
        content, told = {}, {"error": type(error).__name__, "sentence": str(error)}
    buffer = io.BytesIO()
    np.savez(buffer, told=np.frombuffer(json.dumps(told).encode(), dtype=np.uint8), **content)
    sys.stdout.buffer.write(buffer.getvalue())
    return 0


def _unpack(data: bytes) -> tuple[Curves, tuple[str, ...]]:
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        told = json.loads(arrays["told"].tobytes())
        if "error" in told:
            raise _ERRORS.get(told["error"], SourceError)(told["sentence"])
        found = {name: arrays[name] for name in _NAMES if name in arrays}
    return Curves.of_checked_arrays(**found), tuple(told["notes"])


if __name__ == "__main__":
    sys.exit(main())
