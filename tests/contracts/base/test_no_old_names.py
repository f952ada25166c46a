"""No name of the tree before 0.2 is left in code, comments, tests or pages: a reader would look for files that are gone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = {".py", ".md", ".toml", ".j2", ".js", ".css", ".yml", ".yaml", ".cfg", ".txt", ".json", ""}
OF_0_1 = ROOT / "tests" / "redteam" / "version_0_1"  # scripts against that version call its names
START = r"(?<![\w./-])"  # not the end of a longer path or word
OLD_NAMES = {
    "engine/": START
    + r"(src/dpfda/|dpfda/)?engine/|dpfda\.engine\b|(?<![\w.])engine\.(plan|run|adaptive|quantities)\b",
    "algorithms/": START + r"(src/dpfda/|dpfda/)?algorithms/|dpfda\.algorithms\b|(?<![\w.])algorithms\.[A-Z]",
    "measures.py": r"(?<!\w)measures\.(py|measure)\b|dpfda\.measures\b",
    "curve_sums": r"(?<!\w)curve_sums\b",
    "model.py": START + r"model\.py\b|dpfda\.model\b|(?<![\w.])model\.prepare",
    "spread/": START + r"spread/(?!\w)|dpfda\.spread\b|(?<![\w.])spread\.curves\b|Spread(Curves|Sums)|test_spread",
    "storage/": START + r"storage/(?!\w)|dpfda\.storage\b",
    "transport/": START + r"transport/|dpfda\.transport\b",
    "theory/": r"(?<!planning/)(?<!\w)theory/\w+\.py|dpfda\.theory\b",
    "planning.py": r"(?<!\w)planning\.py\b|dpfda\.planning\.(plan|expected|required)\w*\(|from dpfda import planning\b",
    "experiments/": r"(?<![\w-])experiments/|dpfda\.experiments\b|experiments-quick|test_experiments",
    "reference.py": START + r"reference\.py\b",
    "tests without rooms": r"tests/(unit|properties|statistical|contracts|audit|e2e)/test_\w+\.py",
}


def tracked() -> list[Path]:
    """Every text file in git but this one and the scripts against version 0.1."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    paths = [ROOT / name for name in listed if name]
    kept = [path for path in paths if OF_0_1 not in path.parents and path != Path(__file__)]
    return [path for path in kept if path.suffix in TEXT and path.is_file()]


@pytest.mark.parametrize("name", OLD_NAMES)
def test_no_old_name_is_left(name):
    pattern, found = re.compile(OLD_NAMES[name]), []
    for path in tracked():
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
            for number, line in enumerate(lines, start=1)
            if pattern.search(line)
        ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("engine/", "contract keeps `engine/` from importing"),
        ("measures.py", "`measures.py` turns"),
        ("curve_sums", "`curve_sums.CurveSums` of"),
        ("model.py", "`model.py`, `curves.py`"),
        ("spread/", "`Part.words` in `spread/` and"),
        ("transport/", "(`transport/flare` only)"),
        ("experiments/", "[claims](experiments/RESULTS.md)"),
        ("tests without rooms", "`tests/unit/test_silo.py`"),
    ],
)
def test_an_old_name_would_be_found(name, line):
    assert re.search(OLD_NAMES[name], line)
