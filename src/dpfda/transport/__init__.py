"""Transports: what carries queries to silos and releases back."""

from dpfda.transport.base import Transport
from dpfda.transport.in_process import InProcessTransport

__all__ = ["InProcessTransport", "Transport"]
