"""The files in a kit's `local/` folder that make a FLARE site safe, and the check that they still do.

FLARE's defaults let the coordinator's project administrator bring code, run shell commands and read logs. A site replaces
them: exactly one class may run, no code comes with a job, nobody may operate the site from outside, no log leaves it. These
files are the first wall. The second is `dpfda.federation.flare.guard`: a malicious server may leave out FLARE's own
permission checks, so the site's process does not even have the handlers for shell commands and the like.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dpfda.federation.files import write_json

EXECUTOR = "dpfda.federation.flare.executor.SiteExecutor"
CONTROLLER = "dpfda.federation.flare.controller.StudyController"
LAUNCHER = "dpfda.federation.flare.launcher.SiteJobLauncher"
ROLES = ("project_admin", "org_admin", "lead", "member")
RIGHTS = (
    "submit_job", "clone_job", "manage_job", "download_job", "view", "operate", "shell_commands", "byoc",
    "server-predeployed-flwr",
)  # fmt: skip
HEART_BEAT_TIMEOUT = 30

_RESOURCE_MANAGER: dict[str, Any] = {
    "id": "resource_manager",
    "path": "nvflare.app_common.resource_managers.gpu_resource_manager.GPUResourceManager",
    "args": {"num_of_gpus": 0, "mem_per_gpu_in_GiB": 0, "expiration_period": 300},
}
_RESOURCE_CONSUMER: dict[str, Any] = {
    "id": "resource_consumer",
    "path": "nvflare.app_common.resource_consumers.gpu_resource_consumer.GPUResourceConsumer",
    "args": {},
}


def site_resources() -> dict[str, Any]:
    """One class may run, started by our launcher; no log streamer."""
    return {
        "format_version": 2,
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": [EXECUTOR],
        "allow_log_streaming": False,
        "client": {"retry_timeout": 30, "compression": "Gzip"},
        "components": [
            _RESOURCE_MANAGER,
            _RESOURCE_CONSUMER,
            {"id": "process_launcher", "path": LAUNCHER, "args": {}},
        ],
    }


def site_authorization() -> dict[str, Any]:
    """The lead may submit jobs; nobody may do anything else here."""
    nothing = dict.fromkeys(RIGHTS, "none")
    permissions = {role: dict(nothing) for role in ROLES}
    permissions["lead"]["submit_job"] = "any"
    return {"format_version": "1.0", "permissions": permissions}


def harden_site(kit: Path) -> None:
    """Write the site's `local/` files."""
    local = kit / "local"
    local.mkdir(exist_ok=True)
    write_json(local / "resources.json", site_resources())
    write_json(local / "authorization.json", site_authorization())
    for key in (kit / "startup").glob("*.key"):
        key.chmod(0o600)


def find_unsafe_settings(kit: Path) -> list[str]:
    """What keeps this kit from being safe to run; empty if nothing does."""
    found = []
    for name, wanted in (("resources.json", site_resources()), ("authorization.json", site_authorization())):
        try:
            actual = json.loads((kit / "local" / name).read_bytes())
        except (OSError, ValueError):
            found.append(f"local/{name} is missing or unreadable")
            continue
        if actual != wanted:
            found.append(f"local/{name} is not what dpfda wrote")
    if (kit / "local" / "custom").exists():
        found.append("local/custom would add code to the site")
    keys = (kit / "startup").glob("*.key")
    return [*found, *(f"startup/{key.name} can be read by others" for key in keys if key.stat().st_mode & 0o077)]


def harden_server(kit: Path, *, max_sites: int, extra_classes: tuple[str, ...] = ()) -> None:
    """The coordinator's own server: our controller, stores inside its folder instead of the temporary folder."""
    default = json.loads((kit / "local" / "resources.json.default").read_bytes())
    default["class_allow_list"] = [CONTROLLER, *extra_classes]
    default["servers"][0].update(max_num_clients=max(100, max_sites), heart_beat_timeout=HEART_BEAT_TIMEOUT)
    default["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"] = str(kit / "stores" / "snapshots")
    components = [part for part in default["components"] if part["id"] != "log_receiver"]
    for part in components:
        if part["id"] == "job_manager":
            part["args"]["uri_root"] = str(kit / "stores" / "jobs")
    default["components"] = components
    write_json(kit / "local" / "resources.json", default)
    authorization = json.loads((kit / "local" / "authorization.json.default").read_bytes())
    for role, rights in authorization["permissions"].items():
        if role == "project_admin" or isinstance(rights, str):
            authorization["permissions"][role] = dict.fromkeys(RIGHTS, "none") | {"view": "any", "operate": "any"}
        else:
            rights.update(byoc="none", shell_commands="none")
    write_json(kit / "local" / "authorization.json", authorization)
