"""From a Spark data frame to Parquet in the order of ids, written where the data live.

A silo runs over files, in one process or on Dask. Large tables often are in Spark: `write_by_id` has it write them so that
every subject's rows stand together, in the order in which they stood, and no reader has to sort or to hand on rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dpfda import _validate
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLACE = ("\0file", "\0row")  # no column of a table has such a name
_MOMENTS = "spark.sql.parquet.outputTimestampType"


def write_by_id(
    rows: Any, folder: str, *, id: str, files: int | None = None, order: Sequence[str] | None = None
) -> None:
    """Have Spark write a data frame as a folder of Parquet files in the order of ids; no row comes to this process.

    All rows of an id are in one of the `files` (Spark chooses how many if left out), one after the other. Within an id they
    keep the order that they have in the Parquet files that the frame was read from: by the path of the file, then by their
    place in it. So curves, fingerprint and fit have the same bits as from those files. A frame that comes from elsewhere
    has no order of its own: name the columns that say it (`order`). `folder` must not exist.
    """
    from pyspark.sql import functions as f

    if id not in rows.columns:
        raise InvalidInput(
            f"id names the column {id!r}, which the frame lacks; it has: {', '.join(rows.columns[:12])}."
        )
    names = list(rows.columns)
    placed, keys = _find_order(rows, order)
    count = () if files is None else (_validate.integer("files", files, minimum=1),)
    column = f.col(_quote(id))
    ordered = placed.repartitionByRange(*count, column).sortWithinPartitions(column, *keys)
    with _microseconds(rows.sparkSession):
        ordered.select(*map(_quote, names)).write.mode("errorifexists").parquet(folder)


def _find_order(rows: Any, order: Sequence[str] | None) -> tuple[Any, list[Any]]:
    """The frame with what its order is made of, and the columns to sort by."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    if order is not None:
        missing = [name for name in order if name not in rows.columns]
        if missing or not order:
            raise InvalidInput(f"order must name columns of the frame; it has: {', '.join(rows.columns[:12])}.")
        return rows, [f.col(_quote(name)) for name in order]
    try:
        path = f.url_decode(f.replace(f.col("_metadata.file_path"), f.lit("+"), f.lit("%2B")))
        folders = f.split(path, "/").alias(_PLACE[0])  # as paths are put in order: folder by folder
        placed = rows.select("*", folders, f.col("_metadata.row_index").alias(_PLACE[1]))
    except AnalysisException:
        raise InvalidInput(
            "The frame does not come straight from Parquet files, so its rows have no order of their own; name the columns "
            "that say their order (order=...)."
        ) from None
    return placed, [f.col(_quote(name)) for name in _PLACE]


@contextmanager
def _microseconds(session: Any) -> Iterator[None]:
    """Moments as Parquet's own type; the older one, Spark's default, has no room for the years after 2262."""
    before = session.conf.get(_MOMENTS)
    session.conf.set(_MOMENTS, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        session.conf.set(_MOMENTS, before)


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
