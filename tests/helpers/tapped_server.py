"""The coordinator's server; every frame that arrives is recorded in the file TAP before anything decodes it."""

import runpy
import sys
import threading

from nvflare.fuel.f3.sfm import conn_manager

TAP, LOCK = sys.argv[1], threading.Lock()
process = conn_manager.ConnManager.process_frame


def recorded(manager, sfm_conn, frame, *rest, **named):
    with LOCK, open(TAP, "ab") as file:
        file.write(bytes(frame))
    return process(manager, sfm_conn, frame, *rest, **named)


conn_manager.ConnManager.process_frame = recorded
sys.argv = ["server", sys.argv[2]]
runpy.run_module("dpfda.federation.flare.server", run_name="__main__", alter_sys=True)
