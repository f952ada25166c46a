"""`python -m dpfda.federation.rehearsal_main SITE KEY DESCRIPTOR`: one rehearsal, on made-up data, over one connection."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Callable

from dpfda.errors import DpfdaError, TransportError

IDLE = 60.0  # seconds without a question after which it ends


def main(arguments: list[str]) -> int:
    """Answer until the connection ends."""
    from dpfda.federation.flare.launch import end_with_parent

    end_with_parent()
    os.nice(10)
    from dpfda.federation.keys import read_public_text
    from dpfda.federation.rehearsal import Rehearsal

    site, key, descriptor = arguments
    rehearsal = Rehearsal(site, read_public_text(key))
    with socket.socket(fileno=int(descriptor)) as connection:
        connection.settimeout(IDLE)
        with contextlib.suppress(TransportError, OSError):
            serve(connection, rehearsal)
    sys.stdout.write(f"a rehearsal has ended: {rehearsal.rounds} rounds were answered from made-up data\n")
    return 0


def serve(connection: socket.socket, handler: Callable[[bytes], bytes]) -> None:
    """One frame after another; whatever goes wrong is the answer `unavailable`."""
    from dpfda.federation.frames import receive_frame, send_frame
    from dpfda.federation.silo_service import Reply

    while True:
        message = receive_frame(connection)
        try:
            reply = Reply(True, handler(message))
        except Exception as error:
            sys.stdout.write(f"a question of a rehearsal was refused ({type(error).__name__})\n")
            reply = Reply(False)
        send_frame(connection, reply.encode())


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except DpfdaError as error:
        sys.exit(f"dpfda: {error}")
