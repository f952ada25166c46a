"""B3: a kit from the coordinator runs the coordinator's code at the site, before any connection.

Promised: "exactly one class may run, no code comes with a job" (`federation/hardening.py`); `dpfda site run` "refuses
to start with unsafe settings".
Breaks: the kit's zip holds `local/log_config.json`. FLARE hands it to `logging.config.dictConfig`, whose "()" entries
call any installed callable with any arguments. `dpfda site join` accepts the kit, `unsafe()` finds nothing, and
`dpfda site run` runs the call as the site's user, where the data, the ledger and the keys are. No server is running
in this script. The same holds for the other files tried below.
Root cause: the site unpacks a foreign folder and checks two files of it.
Removed by: rule 3 (five things are taken; every file is written by the site's own dpfda; anything else is refused by
name).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import harness

harness.source()

from dpfda.federation.hardening import unsafe  # noqa: E402

FORMATTER = {"class": "logging.Formatter", "format": "%(message)s"}


def call(marker: Path) -> dict[str, object]:
    """A harmless stand-in for code: a shell that writes who it is and whether it can read the table."""
    script = f"(id -un; wc -l < {marker.parent / 'north-data' / 'table.csv'}) > {marker}"
    return {"()": "subprocess.Popen", "args": ["/bin/sh", "-c", script]}


def hostile_files(folder: Path) -> dict[str, tuple[str, Path]]:
    """Extra or changed files of a kit: name, content and the file that tells that its code ran."""
    marks = {name: folder / f"ran-{number}" for number, name in enumerate(("log", "resources", "fed_client"))}
    log = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": FORMATTER},
        "filters": {"x": call(marks["log"])},
    }
    log["handlers"] = {"console": {"class": "logging.StreamHandler", "formatter": "plain"}}
    log["root"] = {"level": "INFO", "handlers": ["console"]}
    component = {"id": "x", "path": "subprocess.Popen", "args": {"args": call(marks["resources"])["args"]}}
    return {
        "local/log_config.json": (json.dumps(log), marks["log"]),
        "local/x__resources.json": (json.dumps({"format_version": 2, "components": [component]}), marks["resources"]),
        "startup/fed_client.json": ("", marks["fed_client"]),
    }


def kit_with(honest: Path, target: Path, name: str, content: str, marker: Path) -> None:
    """The honest kit with one file added or changed."""
    with zipfile.ZipFile(honest) as old, zipfile.ZipFile(target, "w") as new:
        for item in old.namelist():
            if item != name:
                new.writestr(item, old.read(item))
        if name == "startup/fed_client.json":
            fields = json.loads(old.read(name))
            fields["components"] = [{"id": "x", "path": "subprocess.Popen", "args": {"args": call(marker)["args"]}}]
            content = json.dumps(fields)
        new.writestr(name, content)


def run_site(kit: Path, marker: Path, seconds: float = 25.0) -> None:
    """`dpfda site run` until the marker is there or the time is over; ended by its process id."""
    with (kit.parent / "run.log").open("ab") as log:
        site = subprocess.Popen([sys.executable, "-P", "-m", "dpfda", "site", "run", str(kit)], stdout=log, stderr=log)
    end = time.monotonic() + seconds
    while time.monotonic() < end and site.poll() is None and not (marker.exists() and marker.stat().st_size):
        time.sleep(0.2)
    if site.poll() is None:
        os.kill(site.pid, signal.SIGINT)
    try:
        site.wait(timeout=20)
    except subprocess.TimeoutExpired:
        site.kill()


ran = []
with harness.scratch() as folder:
    os.environ["HOME"] = str(folder)
    honest = harness.coordinator_kit(harness.study_toml(folder))
    data = folder / "north-data"
    harness.site_data(data)
    policy = harness.site_policy(data)
    for number, (name, (content, marker)) in enumerate(hostile_files(folder).items()):
        kit = folder / f"kit{number}.zip"
        kit_with(honest, kit, name, content, marker)
        code, text = harness.command("site", "join", str(kit), "--policy", str(policy), "--yes")
        joined = kit.with_suffix("")
        print(f"{name}: join exits with {code}, unsafe() says {unsafe(joined) if code == 0 else text.strip()[-200:]}")
        run_site(joined, marker)
        if marker.exists() and marker.stat().st_size:
            user, lines = marker.read_text().split()
            ran.append(name)
            print(
                f"  code of the kit ran as the site's user ({user}) and read its table ({lines} lines); no server ran"
            )
        else:
            print("  no code ran")
harness.verdict(
    "local/log_config.json" in ran,
    f"{len(ran)} of 3 hostile kits ran their code at the site before any connection: {', '.join(ran)}",
    "no code of the kit ran",
)
