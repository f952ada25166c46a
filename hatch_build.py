"""The wheel carries the kernels that `python -m dpfda.native` compiled, and then is one for a platform; else it is for any.

It also carries its bill of materials (`release/sbom.py`).

A wheel built from sources without compiled kernels compiles them, where numba is there to do it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
from release.sbom import NAME, make_sbom

OBJECTS = Path("src/dpfda/native/objects")
TAGS = {"x86_64": "manylinux_2_17_x86_64", "aarch64": "manylinux_2_17_aarch64"}


class CustomBuildHook(BuildHookInterface):
    """Puts the compiled kernels of one kind of machine into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the wheel is put together; an editable installation takes kernels from where they are made."""
        if version != "editable":
            self.add_bill(build_data)
        machine = os.environ.get("DPFDA_WHEEL_MACHINE", os.uname().machine if hasattr(os, "uname") else "")
        if version == "editable" or not sys.platform.startswith("linux") or machine not in TAGS:
            return
        root = Path(self.root)
        if find_spec("numba"):
            paths = [str(root / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]  # pip's isolation lives there
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
            subprocess.run([sys.executable, "-m", "dpfda.native"], check=True, env=environment, cwd=root)
        manifest = root / OBJECTS / "manifest.json"
        if not manifest.exists():
            self.app.display_warning("No compiled kernels: dpfda will compile them with numba when they are called.")
            return
        objects = json.loads(manifest.read_text())["objects"].values()
        files = ["manifest.json", *(each["file"] for each in objects if each["machine"] == machine)]
        if len(files) == 1:
            raise RuntimeError(f"No kernels were compiled for {machine}: run python -m dpfda.native --all.")
        for name in files:
            build_data["force_include"][str(root / OBJECTS / name)] = f"dpfda/native/objects/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{TAGS[machine]}"

    def add_bill(self, build_data: dict[str, Any]) -> None:
        """The bill of materials, made from the lock."""
        file = Path(self.root) / "build" / NAME
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(make_sbom(Path(self.root), self.metadata.version))
        build_data.setdefault("sbom_files", []).append(str(file.relative_to(self.root)))
