"""`dpfda site run` as a test needs it: the supervisor with a silo that echoes."""

import signal
import sys
import threading
from pathlib import Path

from dpfda.errors import DpfdaError
from dpfda.federation.flare.launch import end_with_parent
from dpfda.federation.flare.supervisor import Supervisor
from dpfda.federation.folder import SiteFolder

stop = threading.Event()
end_with_parent()
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: stop.set())
folder = SiteFolder(Path(sys.argv[1]))
here = Path(__file__).parent
root = str(Path(sys.modules["dpfda"].__file__).parents[1])
command = [sys.executable, "-P", "-u", str(here / "echo_silo.py"), str(folder.root)]
try:
    Supervisor(folder, command, lambda text: print(text, flush=True), {"PYTHONPATH": root}).run(stop)
except DpfdaError as error:
    sys.exit(f"dpfda: {error}")
