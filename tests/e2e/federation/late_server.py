"""The coordinator's server with a clock that is ten minutes ahead."""

import runpy
import sys
import time

right = time.time
time.time = lambda: right() + 600.0
sys.argv = ["server", sys.argv[1]]
runpy.run_module("dpfda.federation.flare.server", run_name="__main__", alter_sys=True)
