"""Where the table of a fit is read: in this process, or by the workers of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpfda.curves.tables import load_curves
from dpfda.curves.tables.loading import Loaded

if TYPE_CHECKING:
    from dpfda.cli.fit.request import FitRequest
    from dpfda.curves.tables.loading import Progress


def read_table(request: FitRequest, advance: Progress) -> Loaded:
    """The curves of a request, and the notes for their owner."""
    engine, scratch = request.settings["engine"], request.settings["scratch"]
    if engine is None:
        return load_curves(request.source, request.reading, scratch=scratch, progress=advance)
    from dpfda.silo.cluster import DaskCurves

    source = request.source
    spread = DaskCurves.from_source(engine, source.location, request.reading, query=source.query, scratch=scratch)
    return Loaded(spread, request.reading.functions, spread.owner_notes, spread.owner_doubts)
