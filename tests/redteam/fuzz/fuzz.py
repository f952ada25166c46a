"""One target under atheris (coverage-guided): `python fuzz.py TARGET --seconds N --output FOLDER`.

Findings do not end a run: each kind (exception and place) is kept once, with its bytes, in FOLDER/findings. A crash of
the process itself is libFuzzer's to keep.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import traceback
from pathlib import Path

import atheris
import numpy as np

with atheris.instrument_imports(include=["dpfda.protocol", "dpfda.federation", "dpfda.report.document", "json"]):
    import targets

    from dpfda.audit.hostile import change_terms

    for _target in targets.TARGETS.values():
        _target(b"")  # imports what it needs while imports are watched


def main() -> None:
    """Fuzz until the time is over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target", choices=targets.TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--output", type=Path, required=True)
    chosen = parser.parse_args()
    corpus, findings = (chosen.output / name for name in ("corpus", "findings"))
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    for data in targets.seeds(chosen.target):
        (corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)
    attack, seen = targets.TARGETS[chosen.target], set()

    def one(data: bytes) -> None:
        try:
            attack(data)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__}-{Path(place.filename).stem}-{place.lineno}"
            if kind not in seen:
                seen.add(kind)
                (findings / f"{kind}.bin").write_bytes(data)
                (findings / f"{kind}.txt").write_text(traceback.format_exc())

    options = [
        f"-max_total_time={chosen.seconds}",
        "-print_final_stats=1",
        "-max_len=4096",
        "-timeout=20",
        "-report_slow_units=20",  # what is slower ends as a timeout; the first input loads libraries
        "-rss_limit_mb=2048",
    ]
    arguments = [sys.argv[0], str(corpus), *options, f"-artifact_prefix={findings}/"]
    mutators = {"messages": _mutate_message, "terms": _mutate_terms}
    if chosen.target in mutators:
        atheris.Setup(arguments, one, custom_mutator=mutators[chosen.target])
    else:
        atheris.Setup(arguments, one)
    atheris.Fuzz()


def _mutate_message(data: bytes, max_size: int, seed: int) -> bytes:
    """Any change, and then mostly a header whose stated length is right: else few get past the first check."""
    changed = atheris.Mutate(data, max_size)
    end = changed.rfind(b"}") + 1
    if seed % 8 and end > 10:
        changed = b"dpfda" + changed[5:6] + (end - 10).to_bytes(4, "little") + changed[10:]
    return changed


def _mutate_terms(data: bytes, max_size: int, seed: int) -> bytes:
    """Three times in four a change by the hostile generator, so that what is tried is still JSON; else any change."""
    if seed % 4:
        try:
            return change_terms(data, np.random.default_rng(seed))[:max_size]
        except (ValueError, RecursionError, TypeError):
            pass
    return atheris.Mutate(data, max_size)


if __name__ == "__main__":
    main()
