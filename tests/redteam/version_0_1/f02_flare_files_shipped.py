"""F2: the kit tells its reader to start FLARE without our guard.

Promised: a site's process "does not even have the handlers for shell commands and the like"
(`federation/hardening.py`).
Breaks: the kit holds FLARE's own scripts and a readme that says "Run start.sh". Who does as told runs FLARE's plain
client: all its handlers are there (`ls`, `tail`, `cat`, `head`, `grep` of the shell among them), and
`authorization.json` is a check that the server may switch off with a header of its request.
Root cause: FLARE's own files are shipped.
Removed by: rule 3 (no FLARE script or readme is shipped; the site's folder is written by the site's own dpfda).
"""

from __future__ import annotations

import zipfile

import harness

harness.source()

from dpfda.federation.audit import AuditLog  # noqa: E402
from dpfda.transport.flare.guard import guard_parent  # noqa: E402
from nvflare.private.admin_defs import Message  # noqa: E402
from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors  # noqa: E402
from nvflare.private.fed.client.shell_cmd import ShellCommandProcessor  # noqa: E402

with harness.scratch() as folder:
    kit = harness.coordinator_kit(harness.study_toml(folder))
    with zipfile.ZipFile(kit) as archive:
        names = sorted(archive.namelist())
        scripts = [name for name in names if name.endswith(".sh")]
        readme = next(name for name in names if "readme" in name.lower())
        advice = [line.strip() for line in archive.read(readme).decode().splitlines() if "Run start.sh" in line]
        sub_start = archive.read("startup/sub_start.sh").decode()
    started = sorted({word for line in sub_start.splitlines() for word in line.split() if "client_train" in word})
    print(f"the kit of {len(names)} files holds {', '.join(scripts)} and {readme}")
    print(f"{readme} says: {advice[0] if advice else '(nothing about start.sh)'}")
    print(f"sub_start.sh starts {started}; our guarded module is named in it: {'site_main' in sub_start}")

    plain = list(ClientRequestProcessors.request_processors)
    secret = folder / "table.csv"
    secret.write_text("id,x,y\ns1,0.5,120\n")
    shell = next(each for each in plain if isinstance(each, ShellCommandProcessor))
    reply = shell.process(Message(topic="sys.shell", body=f"tail {secret}"), None)
    print(
        f"FLARE's plain client has {len(plain)} handlers; its shell, asked for `tail table.csv`, says: {reply.body!r}"
    )
    guard_parent(AuditLog(folder / "audit.jsonl"))
    kept = ClientRequestProcessors.request_processors
    shell_left = any(isinstance(getattr(each, "_inner", each), ShellCommandProcessor) for each in kept)
    print(f"dpfda site run has {len(kept)} handlers left, the shell among them: {shell_left}")
harness.verdict(
    bool(advice) and "120" in str(reply.body),
    f"the kit's {readme} says {advice[0]!r}: a client with {len(plain)} handlers in place of {len(kept)}, "
    "whose shell read a file of the site",
    "the kit does not point to FLARE's own start",
)
