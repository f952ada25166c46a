"""Run in a network namespace of its own: cut the network for a while, and see how site and server find each other again.

`unshare -n python network_cut.py <folder> <seconds>`; prints one JSON line.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from consortium import Consortium, wait_until

from dpfda.federation.rounds import Closing, count_all
from dpfda.federation.signing import QUERY, Subject, sign_message


def switch(state):
    subprocess.run(["ip", "link", "set", "lo", state], check=True)


def ask(world, closing):
    question = sign_message(QUERY, Subject("0" * 64, "run", 0), b"x", world.signing_key)
    return world.link().ask(["alpha"], question, closing, count_all)


switch("up")
world = Consortium(Path(sys.argv[1]))
site = world.add("alpha")
try:
    world.start_server()
    site.start()
    world.wait_for("alpha", seconds=60)
    client = site.client().pid
    switch("down")
    began = time.monotonic()
    lost = ask(world, Closing(1, 1.0, 3.0)).missing
    away = wait_until(lambda: site.contact().state == "away", 30)
    noticed = time.monotonic() - began
    time.sleep(max(0.0, float(sys.argv[2]) - noticed))
    switch("up")
    began = time.monotonic()
    answered = ask(world, Closing(1, 1.0, 100.0)).given
    back = time.monotonic() - began
    same = site.client().pid == client
    said = site.said()
    print(
        json.dumps(
            {
                "lost": lost,
                "away": away,
                "noticed": noticed,
                "back": back,
                "answered": list(answered),
                "same": same,
                "said": said,
            }
        )
    )
finally:
    world.close()
