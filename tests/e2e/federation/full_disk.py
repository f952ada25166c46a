"""Run in a mount namespace of its own: a site whose disk is full, and then no longer.

`unshare -m python full_disk.py <folder>`; prints one JSON line.
"""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "helpers"))

from world import PASSPHRASE, accept, curves, enrol, set_policy, write_table

from dpfda.cli.commands.federate_demo import free_port
from dpfda.errors import TransportError
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.consortium import ConsortiumFolder
from dpfda.federation.policy import SitePolicy
from dpfda.federation.running import RunOptions, StudyRun
from dpfda.federation.site_ledger import open_ledger
from dpfda.federation.site_status import read_site_status
from dpfda.federation.workspace import propose_study

root = Path(sys.argv[1])
small = root / "small"
small.mkdir(parents=True)
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m,mode=0700", "none", str(small)], check=True)
consortium = ConsortiumFolder.create(root / "lipids", "lipids", "127.0.0.1", free_port(), PASSPHRASE, "127.0.0.1")
folder = enrol(consortium, small / "north", "north")
write_table(root / "north.csv", curves(120, 0))
data = {"source": str(root / "north.csv"), "id": "pid", "x": "t", "y": "value", "duplicates": "keep"}
policy = set_policy(folder, SitePolicy(data, 1.0, 1e-3, 1.0, 1e-3, str(small / "ledger")))
(root / "s.toml").write_text(
    'consortium = "lipids"\nname = "s"\nmodel = "mean"\ndomain = [0, 1]\ny_bounds = [-5, 5]\nmethod = "published"\n'
    'n_basis = 4\n[[sites]]\nname = "north"\nn = 120\nepsilon = 1.0\ndelta = 1e-3\npoints_per_curve = 4\n'
)
study = propose_study(root / "s.toml")
accept(folder, study.terms(), consortium)
words = ["--quiet", "site", "run", str(folder.root)]
site = subprocess.Popen([sys.executable, "-m", "dpfda.cli.main", *words], stdin=subprocess.DEVNULL)
found = {}
try:
    time.sleep(5)
    filler = small / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    found["notes"] = read_site_status(folder)["notes"]
    began = time.monotonic()
    try:
        StudyRun(study, RunOptions(for_sites=40.0, in_all=5.0), lambda _: None).to_end()
    except TransportError as error:
        found["full"] = str(error)
    found["seconds"] = time.monotonic() - began
    filler.unlink()
    found["debits"] = open_ledger(policy).spent().debits
    StudyRun(study, RunOptions(for_sites=90.0, in_all=60.0), lambda _: None).to_end()
    found["rounds"], found["debits after"] = study.rounds_done(), open_ledger(policy).spent().debits
    open_ledger(policy).verify()
    found["lines"] = AuditLog(folder.audit).verify()
    found["notes after"] = read_site_status(folder)["notes"]
finally:
    site.terminate()
    site.wait(30)
print(json.dumps(found))
