"""What kernels are called in an object."""

from __future__ import annotations

PREFIX = "dpfda_"


def symbol_of(name: str) -> str:
    """The symbol of a kernel."""
    return PREFIX + name.replace(".", "_")
