"""How large an installation without extras is: `python -m release.minimal WHEEL` measures it, for docs/dependencies.md."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path

from release.sbom import ROOT

PAGE = ROOT / "docs" / "dependencies.md"
MARKS = "<!-- minimal -->", "<!-- /minimal -->"
OLD = "[compiler,sklearn]"  # what version 0.1 required as well
SMALL = 5.0  # megabytes below which packages share a row


def measure(wheel: Path, extras: str = "") -> dict[str, float]:
    """Megabytes (1e6 bytes) of every package, named with its version, without pip itself and without bytecode."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        target = next(Path(folder).glob("lib/python*/site-packages"))
        words = [sys.executable, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), "--no-compile"]
        subprocess.run([*words, "--target", str(target), f"{wheel}{extras}"], check=True)
        return {f"{each.metadata['Name']} {each.version}": _weigh(each) for each in distributions(path=[str(target)])}


def _weigh(package: Distribution) -> float:
    places = [Path(str(package.locate_file(file))) for file in package.files or []]
    return sum(place.stat().st_size for place in places if place.is_file()) / 1e6


def write_table(sizes: dict[str, float], before: dict[str, float]) -> str:
    """What the page says."""
    large = {name: size for name, size in sorted(sizes.items(), key=lambda item: -item[1]) if size >= SMALL}
    rows = [f"| {name} | {size:.0f} |" for name, size in large.items()]
    rest = sum(sizes.values()) - sum(large.values())
    rows.append(f"| {len(sizes) - len(large)} others | {rest:.0f} |")
    head = (
        f"`python -m release.minimal` on {datetime.now(UTC):%Y-%m-%d}, with the versions in `constraints.txt` and without "
        f"bytecode: {sum(sizes.values()):.0f} MB in {len(sizes)} packages. "
        f"With numba and scikit-learn, which version 0.1 required, it would be {sum(before.values()):.0f} MB."
    )
    return "\n".join([head, "", "| package | MB |", "|---|---|", *rows])


def main(arguments: list[str]) -> None:
    """Install, weigh, write."""
    wheel = Path(arguments[0])
    text = write_table(measure(wheel), measure(wheel, OLD))
    page = PAGE.read_text(encoding="utf-8")
    first, last = MARKS
    PAGE.write_text(
        re.sub(f"{first}.*?{last}", lambda _: f"{first}\n{text}\n{last}", page, flags=re.DOTALL), encoding="utf-8"
    )
    print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
