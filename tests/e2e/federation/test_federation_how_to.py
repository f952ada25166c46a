"""docs/how-to/run-a-study.md, followed literally by a coordinator and three owners, each in a folder of their own."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("nvflare")

from world import environment, wait_until

from dpfda.cli.commands.federate_demo import free_port

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "run-a-study.md").read_text()
COMMAND = [sys.executable, "-m", "dpfda.cli.main"]
SUBJECTS = {"north": 400, "middle": 300, "south": 200}


def block(language, beginning):
    """The one code block of the page that is this or, if there is none, that begins so."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    texts = [text for name, text in blocks if name == language]
    (found,) = {text for text in texts if text.strip() == beginning} or {
        text for text in texts if text.startswith(beginning)
    }
    return found


def typed(beginning, folder, answer="", change=lambda line: line):
    """Type the commands of a block, as they stand on the page (at another site: with its name for `north`)."""
    said = ""
    for line in block("", beginning).strip().splitlines():
        words = change(line).split()
        assert words[0] == "dpfda"
        done = subprocess.run(
            [*COMMAND, *words[1:]], cwd=folder, input=answer, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        said += done.stdout + done.stderr
    return said


def write_visits(path, n, seed):
    rng = np.random.default_rng(seed)
    rows = [(pid, age, 50 + 0.2 * age + rng.normal(0, 8)) for pid in range(n) for age in rng.uniform(20, 90, 5)]
    path.write_text("pid,age,hdl\n" + "".join(f"p{pid},{age:.3f},{hdl:.2f}\n" for pid, age, hdl in rows))


def enrol(root, coordinator, name, seed):
    steward, rename = root / f"steward-{name}", lambda line: line.replace("north", name)
    steward.mkdir()
    write_visits(steward / "visits.csv", SUBJECTS[name], seed)
    typed("dpfda site enrol north --site north", steward, change=rename)
    shutil.copy(steward / f"{name}.request", coordinator)
    spelled = typed("dpfda consortium sign", coordinator, change=rename)
    shutil.copy(coordinator / f"{name}.credentials", steward)
    shown = typed("dpfda site take", steward, "y\n", rename)
    compared = re.findall(r"(?:CA|coordinator):\s+([0-9a-f ]+)", shown)
    assert len(compared) == 2
    assert all(" ".join(digits.split()) in " ".join(spelled.split()) for digits in compared)
    policy = block("toml", "[data]")
    (steward / "site.toml").write_text(policy.replace("epsilon = 1.0", "epsilon = 2.0") if name == "south" else policy)
    typed("dpfda site policy", steward, change=rename)
    return steward, rename


def started(beginning, folder, change=lambda line: line):
    """A command of the page that stays in the foreground."""
    words = change(block("", beginning)).split()
    with (folder / "run.said").open("a") as said:
        return subprocess.Popen([*COMMAND, *words[1:]], cwd=folder, stderr=said)


def renew(coordinator, steward):
    """The section on certificates, by its commands."""
    typed("dpfda site enrol north", steward)
    shutil.copy(steward / "north.request", coordinator)
    typed("dpfda consortium renew", coordinator)
    shutil.copy(coordinator / "north.credentials", steward)
    typed("dpfda site take", steward)
    assert wait_until(lambda: "There is a new certificate" in (steward / "run.said").read_text(), 120, 0.5)
    assert "1 older certificates of north are retired" in typed("dpfda consortium retire", coordinator)


@pytest.mark.slow
def test_the_page_works_as_written(tmp_path):
    coordinator, running, stewards = tmp_path / "coordinator", [], {}
    coordinator.mkdir()
    (coordinator / "ca.pass").write_text("correct horse battery\n")
    (coordinator / "lipid.toml").write_text(block("toml", "consortium ="))
    with environment(HOME=str(tmp_path)):
        port = f" --port {free_port()} --listen 127.0.0.1"  # that of the page may be taken here
        typed("dpfda consortium init", coordinator, change=lambda line: line + port)
        try:
            running.append(started("dpfda consortium serve", coordinator))
            for seed, name in enumerate(SUBJECTS):
                stewards[name] = enrol(tmp_path, coordinator, name, seed)
                running.append(started("dpfda site run", *stewards[name]))
            assert wait_until(lambda: typed("dpfda consortium status", coordinator).count(" connected") == 3, 120, 1.0)
            assert "connected to its server" in typed("dpfda site status north", stewards["north"][0])
            proposed = typed("dpfda study propose", coordinator).replace("\n", " ")
            assert "Sent to north, middle, south" in proposed
            assert "north: 0 rounds" not in typed("dpfda study rehearse", coordinator)
            for steward, rename in stewards.values():
                assert "outside the guarantee" in typed(
                    "dpfda site inbox north\ndpfda site check", steward, change=rename
                )
                assert "are about to promise" in typed("dpfda site accept", steward, "y\n", rename)
            began = time.monotonic()
            typed("dpfda study run", coordinator)
            print(f"the study itself took {time.monotonic() - began:.0f} s")
            status = typed("dpfda study status", coordinator, change=lambda line: line.replace(" --watch", ""))
            assert "finished" in status
            typed("dpfda study resume", coordinator)  # nothing is left to do
            typed("dpfda study result", coordinator)
            assert (coordinator / "lipid.html").stat().st_size > 1000
            assert (coordinator / "lipid.json").exists()
            assert "unbroken" in typed("dpfda site status north\ndpfda site log", stewards["north"][0])
            renew(coordinator, stewards["north"][0])
        finally:
            for process in running:
                process.send_signal(signal.SIGINT)
            assert [process.wait(30) for process in running] == [0, 0, 0, 0]
