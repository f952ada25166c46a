"""FLARE without gRPC: its processes connect by TCP and TLS alone, and FLARE itself needs three names of that package.

FLARE imports gRPC to translate a setting that only its gRPC driver reads, which is not registered here (`tls`). A module
with those names in its place keeps ten megabytes and a network library out of each process.
"""

from __future__ import annotations

import enum
import sys
import types

NAME = "grpc"


class Compression(enum.IntEnum):
    """What FLARE looks up."""

    NoCompression = 0
    Deflate = 1
    Gzip = 2


def stand_in_for_grpc() -> None:
    """Called before FLARE is imported, in a process of its own; where one of the two is loaded already, it stays."""
    if NAME in sys.modules or "nvflare" in sys.modules:
        return
    module = types.ModuleType(NAME, "Stands where gRPC would: nothing here connects by it.")
    module.Compression = Compression  # type: ignore[attr-defined]
    sys.modules[NAME] = module
