"""B8: an ordinary job runs code at a site; so does another MEMBER of the consortium.

Promised: "exactly one class may run, no code comes with a job" (`federation/hardening.py`), a job that brings code is
refused "however it got past the deployment" (`transport/flare/launcher.py`).
Breaks: (a) the lead submits a job with `config/comm_config.json` = {"comm_driver_path": "."} and a module whose name
begins with "_". FLARE looks configuration names up by walking the whole workspace, job folders included, and imports
every module below that path; our launcher skips names that begin with "_" or "." when it looks for files that are not
JSON. (b) A member who signs the same app with its own client certificate sends `train.deploy` and `train.start` to
another site through the server; FLARE's admin agent never looks at the origin of a request.
Root cause: jobs are a way for somebody else's files to reach a site; origins are not checked.
Removed by: the transport without jobs of 4-federation.md (no job, no admin agent; signed queries), rule 3.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import harness

source = harness.source()
sys.path.insert(0, str(source.parent / "tests" / "flare"))

from dpfda.transport.flare.job import write_job  # noqa: E402
from dpfda.transport.flare.processes import wait_until  # noqa: E402
from nvflare.lighter.utils import load_private_key_file, sign_folders  # noqa: E402
from world import Deployment  # noqa: E402

CODE = """import os
if os.getcwd().endswith("alpha"):
    open({marker!r}, "w").write(" ".join(sorted(os.listdir("local/dpfda"))) or "(empty)")
"""


def hostile(app: Path, marker: Path) -> None:
    """Two more files in the job's client app."""
    (app / "config").mkdir(parents=True, exist_ok=True)
    (app / "config" / "comm_config.json").write_text(json.dumps({"comm_driver_path": "."}))
    (app / "config" / "_x.py").write_text(CODE.format(marker=str(marker)))


def zipped(folder: Path) -> bytes:
    """As FLARE packs an app."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))
    return content.getvalue()


with harness.scratch() as folder:
    os.environ["HOME"] = str(folder)
    world = Deployment(folder, sites=("alpha", "beta")).make()
    (world.folder("alpha").root / "policy.json").write_text("{}")
    by_job, by_member = folder / "ran-by-job", folder / "ran-by-member"
    member = None
    try:
        world.start_server()
        world.start_site("alpha")
        world.connect_session()
        assert wait_until(lambda: "alpha" in world.session.sites(), 60), "the site did not connect"

        job = write_job(folder / "job", "x", ["alpha"], {"study": "none", "folder": "none"})
        hostile(job / "app_client", by_job)
        world.session.submit(job)
        wait_until(by_job.exists, 40)
        print(
            "a lead's job with comm_config.json and _x.py: code at the site "
            f"{'RAN' if by_job.exists() else 'did not run'}"
        )
        if by_job.exists():
            print(f"  it saw local/dpfda: {by_job.read_text()}")
        time.sleep(2.0)

        honest = write_job(folder / "job2", "y", ["alpha"], {}) / "app_client"
        hostile(honest, by_member)
        key = load_private_key_file(str(world.kit("beta") / "startup" / "client.key"))
        sign_folders(str(honest), key, str(world.kit("beta") / "startup" / "client.crt"))
        (folder / "app.zip").write_bytes(zipped(honest))
        for name in ("resources.json", "authorization.json"):
            (world.kit("beta") / "local" / name).unlink(missing_ok=True)  # the member's own folder: its own business
        log = (folder / "member.log").open("wb")
        script = Path(__file__).with_name("member_client.py")
        member = subprocess.Popen(
            [sys.executable, "-P", str(script), str(world.kit("beta")), "beta", "alpha", str(folder / "app.zip")],
            stdout=log, stderr=subprocess.STDOUT, cwd=world.kit("beta"),
        )  # fmt: skip
        wait_until(lambda: by_member.exists() or member.poll() is not None, 40)
        wait_until(by_member.exists, 5)
        for line in (folder / "member.log").read_text(errors="replace").splitlines():
            if line.startswith("MEMBER"):
                print(f"  {line[:160]}")
        print(
            "train.deploy and train.start_job by a member's certificate: code "
            f"{'RAN' if by_member.exists() else 'did not run'}"
        )
        if os.environ.get("REDTEAM_DEBUG"):
            print((folder / "member.log").read_text(errors="replace")[-3000:])
            print((folder / "alpha.log").read_text(errors="replace")[-3000:])
            print(world.folder("alpha").audit.path.read_text()[-2000:])
    finally:
        if member is not None and member.poll() is None:
            member.kill()
            member.wait()
        world.stop()
    shown = [by_job.exists(), by_member.exists()]
harness.verdict(
    shown[0],
    f"code ran at the site by an ordinary job{' and by another member of the consortium' if shown[1] else ''} "
    f"({sum(shown)} of 2 ways)",
    "no code ran",
)
