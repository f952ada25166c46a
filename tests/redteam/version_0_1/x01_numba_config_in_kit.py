"""X1 (new): a kit with `.numba_config.yaml` runs the coordinator's code in the process that holds the data.

Promised: no code comes with a kit or a job.
Breaks: `dpfda site run` starts FLARE's client, and that the job process, with the KIT as working folder. numba reads
`.numba_config.yaml` from the working folder at import; its `cache_dir` names a folder of the kit; kernels are
compiled with `cache=True`, and numba's cache index is a PICKLE that is loaded before any check of its version or
stamp. The first sum over curves runs it. No file that FLARE knows is involved, so a list of FLARE's file names does
not find it. (The name of the folder holds a hash of the path where dpfda is installed: the attacker guesses it, or
ships many.)
Root cause: the working folder of the site's processes is filled by somebody else; caches of compiled code are
trusted.
Removed by: rule 3 (anything else in the folder is refused by name); and beyond it: a working folder of our own that
is empty, the environment from an allow-list, NUMBA_CACHE_DIR set to a folder of the site's user with mode 0700.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import harness

source = harness.source()
sys.path.insert(0, str(source.parent / "tests" / "flare"))
del os.environ["NUMBA_CACHE_DIR"]  # a site has none

import numpy as np  # noqa: E402
import world  # noqa: E402
from dpfda.engine.plan import SiloTerms  # noqa: E402
from dpfda.messages import Query  # noqa: E402
from dpfda.transport.flare.processes import wait_until  # noqa: E402

NAMES = """
import os, sys
from pathlib import Path
from dpfda.kernels import store
file = store.place_curves._cache._cache_file
print(Path(file._index_path).parent.name, file._index_name)
"""


class Code:
    """A pickle that calls a shell when it is loaded: a harmless stand-in for code."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"(tr '\\0' ' ' < /proc/$PPID/cmdline; ls local/dpfda) > {self.marker}",)


with harness.scratch() as folder:
    os.environ["HOME"] = str(folder)
    here = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "own")}
    named = subprocess.run([sys.executable, "-P", "-c", NAMES], env=here, capture_output=True, text=True, check=True)
    subfolder, index = named.stdout.split()
    deployed = world.Deployment(folder, sites=("alpha",)).make()
    document = world.study((SiloTerms("alpha", 60, 1.0, 1e-3, 4.0),), constants={"C_T": 1.0})
    deployed.configure("alpha", world.curves(60, 1), document)

    kit, marker = deployed.kit("alpha"), folder / "ran"
    (kit / ".numba_config.yaml").write_text("cache_dir: transfer/c\n")
    evil = kit / "transfer" / "c" / subfolder
    evil.mkdir(parents=True)
    (evil / index).write_bytes(pickle.dumps(Code(marker)))
    from dpfda.federation.hardening import unsafe

    print(f"two files more in the kit: .numba_config.yaml, transfer/c/*/*.nbi; unsafe() says {unsafe(kit)}")
    puppet = None
    try:
        deployed.start()
        puppet = world.Puppet(deployed)
        puppet("open", plan=document.plan.to_dict(), run=document.id, clients={"alpha": "alpha"}, min_sites=1)
        reply = puppet.raw("alpha", Query(document.id, 0, {"iterate": np.zeros(4)}).encode())
        wait_until(marker.exists, 5)
        print(f"an honest study asks its first question: {reply['code']}")
    finally:
        if puppet is not None:
            puppet.close()
        deployed.stop()
    text = marker.read_text() if marker.exists() else ""
    if text:
        who = "the site worker" if "site_worker" in text else text[:60]
        print(f"the pickle was loaded by {who}, which sees {text.split()[-3:]}")
harness.verdict(
    "site_worker" in text,
    "a pickle of the kit ran in the site's job process, where the curves are",
    "nothing of the kit ran",
)
