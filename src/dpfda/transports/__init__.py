"""Transports: what carries queries to silos and releases back."""

from dpfda.protocol.transport import Transport
from dpfda.transports.in_process import InProcessTransport

__all__ = ["InProcessTransport", "Transport"]
