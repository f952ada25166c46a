"""`python -m dpfda.federation.silo_main FOLDER`: the silo's process. It holds data and ledger and has no network.

Its working folder must be empty: numba, matplotlib and others read settings from where a process is started, and such
settings can load code.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dpfda.errors import DpfdaError, InvalidInput
from dpfda.federation.quiet import neutralise


def main(arguments: list[str]) -> int:
    """Serve the site's questions until the process that started this one ends."""
    from dpfda.federation.flare.launch import end_with_parent

    end_with_parent()
    _check_surroundings()
    from dpfda.federation.folder import Address, SiteFolder
    from dpfda.federation.keys import read_public_text, read_signing_key
    from dpfda.federation.seal import check_seal, read_site_name
    from dpfda.federation.signed import SignedHandler
    from dpfda.federation.silo_service import SiloService
    from dpfda.federation.site import Site

    folder = SiteFolder(Path(arguments[0]))
    check_seal(folder)
    coordinator = read_public_text(Address.read(folder.address_path).coordinator_key)
    site = Site(folder, simulation="--simulation" in arguments[1:])
    handler = SignedHandler(read_site_name(folder), coordinator, read_signing_key(folder.sign_key), site.answer)
    SiloService(handler, folder.run / "silo.sock", _say).run()
    return 0


def _check_surroundings() -> None:
    if any(Path.cwd().iterdir()):
        raise InvalidInput("The silo's process must be started in an empty folder; use dpfda site run.")
    bad = [name for name in os.environ if name.upper().startswith(("NUMBA_", "PYTHON", "LD_"))]
    if bad:
        raise InvalidInput(f"The environment sets {', '.join(sorted(bad))}; use dpfda site run.")


def _say(why: str) -> None:
    sys.stdout.write(f"refused: {neutralise(why)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except DpfdaError as error:
        sys.exit(f"dpfda: {neutralise(str(error))}")
