"""The border: what a silo measures, bounds, sums and releases. Raw curves leave through `Silo.release` only."""

from dpfda.silo.silo import Silo

__all__ = ["Silo"]
