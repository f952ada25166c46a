"""A release in `dist/`: sdist and wheels built twice from clean copies, compared, looked into, hashed: `make release`."""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

from release.sbom import NAME, ROOT

MACHINES = ("x86_64", "aarch64")
ALLOWED = re.compile(r"\.(py|pyi|toml|html|css|js|j2|json|svg|txt|parquet|so)$|/py\.typed$")
HTMX_LICENCE = "src/dpfda/cli/console/assets/htmx.LICENSE.txt"
WHEEL_ONLY = re.compile(r"^dpfda(-[^/]+\.dist-info)?/")


class BadRelease(Exception):
    """What is wrong with a build, in one sentence."""


def build_all(target: Path, machines: tuple[str, ...]) -> list[Path]:
    """Every file of the release; each is built twice, in different folders, and must have the same bytes."""
    with tempfile.TemporaryDirectory() as place:
        builds = [_build_once(Path(place) / name, machines) for name in ("first", "a-second-folder-with-another-name")]
        first, second = ({file.name: file.read_bytes() for file in sorted(built.iterdir())} for built in builds)
    for name in sorted(first.keys() | second.keys()):
        if first.get(name) != second.get(name):
            raise BadRelease(f"{name} is not the same when it is built again.")
    target.mkdir(parents=True, exist_ok=True)
    for name, content in first.items():
        (target / name).write_bytes(content)
    return [target / name for name in first]


def _build_once(folder: Path, machines: tuple[str, ...]) -> Path:
    """A clean copy of what git knows, with the compiled kernels, built there."""
    source, built = folder / "source", folder / "dist"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name)
    objects = Path("src/dpfda/native/objects")
    shutil.copytree(ROOT / objects, source / objects, ignore=shutil.ignore_patterns("checked*"))
    _run_build(source, built, "--sdist")
    for machine in machines:
        _run_build(source, built, "--wheel", DPFDA_WHEEL_MACHINE=machine)
    return built


def _run_build(source: Path, built: Path, what: str, **more: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DPFDA_"))}
    words = [sys.executable, "-m", "build", "--no-isolation", what, "--outdir", str(built), str(source)]
    done = subprocess.run(words, env={**kept, **more}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BadRelease(f"The build failed: {done.stdout[-800:]}{done.stderr[-800:]}")


def check_wheel(path: Path) -> None:
    """Nothing is in it that should not be, everything has its hash, licences and bill of materials are there."""
    with zipfile.ZipFile(path) as wheel:
        content = {name: wheel.read(name) for name in wheel.namelist()}
    info = next(name for name in content if name.endswith(".dist-info/METADATA")).removesuffix("METADATA")
    strange = [name for name in content if not WHEEL_ONLY.match(name)]
    strange += [name for name in content if name.startswith("dpfda/") and not ALLOWED.search(name)]
    if strange:
        raise BadRelease(f"{path.name} has files that do not belong there: {', '.join(strange[:5])}.")
    _check_record(path.name, content, info)
    sources = tomllib.loads(content["dpfda/curves/shipped/sources.toml"].decode())
    known = {f"dpfda/curves/shipped/{each['file']}": each for each in sources.values()}
    data = {name for name in content if name.endswith(".parquet")}
    if data != known.keys() or any(hashlib.sha256(content[name]).hexdigest() != known[name]["sha256"] for name in data):
        raise BadRelease(f"{path.name} has data without source, licence and hash in sources.toml.")
    texts = ("LICENSE", "THIRD_PARTY.md", "src/dpfda/curves/shipped/LGPL-2.0.txt", HTMX_LICENCE)
    wanted = [f"{info}sboms/{NAME}", *(f"{info}licenses/{name}" for name in texts)]
    missing = [name for name in wanted if name not in content]
    if missing:
        raise BadRelease(f"{path.name} lacks {', '.join(missing)}.")


def _check_record(wheel: str, content: dict[str, bytes], info: str) -> None:
    rows = {row[0]: row[1] for row in csv.reader(io.StringIO(content[f"{info}RECORD"].decode()))}
    for name, data in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        if name != f"{info}RECORD" and rows.get(name) != f"sha256={digest}":
            raise BadRelease(f"{wheel}: RECORD does not have the hash of {name}.")


def check_sdist(path: Path) -> None:
    """A wheel can be made from it, and it holds no compiled code and nobody's private files."""
    with tarfile.open(path) as archive:
        names = [member.name.partition("/")[2] for member in archive.getmembers()]
    wanted = ["pyproject.toml", "hatch_build.py", "requirements.lock", "release/sbom.py", "release/licences.toml"]
    missing = [name for name in wanted if name not in names]
    strange = [name for name in names if re.search(r"\.(so|pyc|pkl|db|ledger)$|(^|/)(\.venv|out|\.git)/", name)]
    strange = [name for name in strange if not name.startswith("tests/corpus/")]
    if missing or strange:
        raise BadRelease(f"{path.name}: missing {missing}, not wanted {strange[:5]}.")


def write_hashes(files: list[Path]) -> Path:
    """SHA256SUMS, as `sha256sum --check` reads it."""
    target = files[0].with_name("SHA256SUMS")
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files)]
    target.write_text("".join(lines))
    return target


def check_texts(files: list[Path]) -> None:
    """`twine check --strict`: a registry can show the description."""
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BadRelease(f"twine check: {done.stdout[-500:]}")


def main(arguments: list[str]) -> int:
    """Build, compare, check, hash."""
    parser = argparse.ArgumentParser(prog="python -m release.build")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--machines", nargs="+", choices=MACHINES, default=list(MACHINES))
    options = parser.parse_args(arguments)
    try:
        files = build_all(options.output, tuple(options.machines))
        for file in files:
            (check_wheel if file.suffix == ".whl" else check_sdist)(file)
        check_texts(files)
    except BadRelease as error:
        print(error, file=sys.stderr)
        return 1
    with zipfile.ZipFile(next(file for file in files if file.suffix == ".whl")) as wheel:
        bill = options.output / NAME
        bill.write_bytes(wheel.read(next(name for name in wheel.namelist() if name.endswith(NAME))))
    print(write_hashes([*files, bill]).read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
