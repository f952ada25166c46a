"""Where the table of a fit is read: in this process, or by the workers of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpfda.cli.fit.outcomes import choose_visits, join_loaded
from dpfda.curves.tables import load_curves
from dpfda.curves.tables.loading import Loaded

if TYPE_CHECKING:
    from dpfda.cli.fit.request import FitRequest
    from dpfda.curves.tables.loading import Progress


def read_table(request: FitRequest, advance: Progress) -> Loaded:
    """The curves of a request, and the notes for their owner."""
    engine, scratch = request.settings["engine"], request.settings["scratch"]
    if engine is None:
        return read_here(request, advance)
    from dpfda.silo.cluster import DaskCurves

    source = request.source
    spread = DaskCurves.from_source(engine, source.location, request.reading, query=source.query, scratch=scratch)
    return Loaded(spread, request.reading.functions, spread.owner_notes, spread.owner_doubts)


def read_here(request: FitRequest, advance: Progress | None = None) -> Loaded:
    """The same in this process; of several outcomes, one after the other."""
    if request.each:
        names, visits = tuple(request.each), choose_visits(request.settings)
        return join_loaded(names, lambda name: read_here(request.each[name], advance), visits, request.reading)
    return load_curves(request.source, request.reading, scratch=request.settings["scratch"], progress=advance)
