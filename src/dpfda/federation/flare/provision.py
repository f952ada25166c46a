"""Start-up kits with a PKI of their own: one server, one client per site, one lead who submits the study."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpfda.errors import InvalidInput, TransportError
from dpfda.federation.hardening import harden_server
from dpfda.federation.study import ServerAddress

LEAD = "lead@coordinator.study"


def require_flare() -> None:
    """One sentence instead of a traceback when the extra is not installed."""
    try:
        import nvflare  # noqa: F401
    except ImportError:
        raise InvalidInput(
            "Studies across sites need NVIDIA FLARE; install it with pip install 'dpfda[federated]'."
        ) from None


def provision(
    project: str, sites: Sequence[str], address: ServerAddress, folder: Path, *, extra_classes: tuple[str, ...] = ()
) -> None:
    """Write `server`, `lead` and `kits/<site>` into a folder that only the coordinator can read."""
    require_flare()
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        description = Path(scratch) / "project.json"  # JSON is YAML
        description.write_text(json.dumps(_project(project, sites, address)))
        made = _run_provision(description, Path(scratch))
        (folder / "kits").mkdir(exist_ok=True)
        shutil.move(made / address.host, folder / "server")
        shutil.move(made / LEAD, folder / "lead")
        for site in sites:
            shutil.move(made / site, folder / "kits" / site)
    harden_server(folder / "server", max_sites=len(sites), extra_classes=extra_classes)


def _run_provision(description: Path, scratch: Path) -> Path:
    command = [sys.executable, "-m", "nvflare.cli", "provision", "-p", str(description), "-w", str(scratch / "made")]
    environment = {**os.environ, "HOME": str(scratch)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=scratch, check=False)
    made = sorted((scratch / "made").glob("*/prod_00"))
    if done.returncode or not made:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise TransportError(f"NVIDIA FLARE could not make the kits: {lines[-1] if lines else 'no output'}")
    return made[0]


def _project(project: str, sites: Sequence[str], address: ServerAddress) -> dict[str, Any]:
    server = {
        "name": address.host, "type": "server", "org": "coordinator", "fed_learn_port": address.port,
        "admin_port": address.admin_port, "host_names": [address.host],
    }  # fmt: skip
    clients = [{"name": site, "type": "client", "org": _organisation(site)} for site in sites]
    lead = {"name": LEAD, "type": "admin", "org": "coordinator", "role": "lead"}
    builders = [
        {"path": "nvflare.lighter.impl.workspace.WorkspaceBuilder"},
        {"path": "nvflare.lighter.impl.static_file.StaticFileBuilder", "args": {"config_folder": "config"}},
        {"path": "nvflare.lighter.impl.cert.CertBuilder"},
        {"path": "nvflare.lighter.impl.signature.SignatureBuilder"},
    ]
    return {
        "api_version": 3, "name": project, "description": "dpfda study", "participants": [server, *clients, lead],
        "builders": builders,
    }  # fmt: skip


def _organisation(site: str) -> str:
    """FLARE wants letters, digits and _ in an organisation's name."""
    return "site_" + site.replace("-", "_")
