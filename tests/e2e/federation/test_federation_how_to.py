"""docs/how-to/run-a-study.md, followed literally by a coordinator and three data managers, each in a folder of their own."""

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

from world import environment

from dpfda.cli.commands.federate_demo import free_ports

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "run-a-study.md").read_text()
COMMAND = [sys.executable, "-m", "dpfda.cli.main"]


def block(language, beginning):
    """The one code block of the page that begins so."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (found,) = [text for name, text in blocks if name == language and text.startswith(beginning)]
    return found


def typed(beginning, folder, answer=""):
    """Type the commands of a block, as they stand on the page."""
    said = ""
    for line in block("", beginning).strip().splitlines():
        words = line.split()
        assert words[0] == "dpfda"
        done = subprocess.run(
            [*COMMAND, *words[1:]], cwd=folder, input=answer, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        said += done.stdout + done.stderr
    return said


def write_visits(path, n, seed):
    rng = np.random.default_rng(seed)
    rows = [(pid, age, 50 + 0.2 * age + rng.normal(0, 8)) for pid in range(n) for age in rng.uniform(20, 90, 5)]
    path.write_text("pid,age,hdl\n" + "".join(f"p{pid},{age:.3f},{hdl:.2f}\n" for pid, age, hdl in rows))


@pytest.mark.slow
def test_the_page_works_as_written(tmp_path):
    clara, running = tmp_path / "clara", []
    clara.mkdir()
    ports = dict(zip(("8102", "8103"), map(str, free_ports(2)), strict=True))  # those of the page may be taken here
    terms = re.sub("8102|8103", lambda port: ports[port.group()], block("toml", 'name = "lipid"'))
    (clara / "lipid.toml").write_text(terms)
    with environment(HOME=str(tmp_path)):
        assert "lipid.study/kits/north.zip" in typed("dpfda study init", clara).replace("\n", "")
        try:
            for seed, (name, n) in enumerate((("north", 400), ("middle", 300), ("south", 200))):
                dan = tmp_path / f"dan-{name}"
                dan.mkdir()
                shutil.copy(
                    clara / "lipid.study" / "kits" / f"{name}.zip", dan / "north.zip"
                )  # the page calls it north
                write_visits(dan / "visits.csv", n, seed)
                policy = block("toml", "[data]")
                (dan / "site.toml").write_text(
                    policy.replace("epsilon = 1.0", "epsilon = 2.0") if name == "south" else policy
                )
                said = typed("dpfda site join", dan, "y\n")
                assert "are about to promise" in said
                words = block("", "dpfda site run").split()
                running.append(subprocess.Popen([*COMMAND, *words[1:]], cwd=dan, stderr=subprocess.DEVNULL))
            began = time.monotonic()
            typed("dpfda study run", clara)
            print(f"the study itself took {time.monotonic() - began:.0f} s")
            assert (
                "finished"
                in subprocess.run(
                    [*COMMAND, "study", "status", "lipid.toml"], cwd=clara, capture_output=True, text=True, check=True
                ).stdout
            )
            typed("dpfda study resume", clara)  # nothing is left to do
            typed("dpfda study result", clara)
            assert (clara / "lipid.html").stat().st_size > 1000
            assert (clara / "lipid.json").exists()
            assert "unbroken" in typed("dpfda site status", tmp_path / "dan-north")
        finally:
            for process in running:
                process.send_signal(signal.SIGINT)
            assert [process.wait(30) for process in running] == [0, 0, 0]
