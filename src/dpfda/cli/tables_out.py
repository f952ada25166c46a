"""Tables to files, in the formats that `dpfda fit` reads."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from typing import Any

import narwhals as nw

from dpfda.errors import InvalidInput


def encode_table(frame: Any, target: str) -> bytes:
    """A pandas, polars or pyarrow table as CSV, gzipped CSV, Parquet or Feather, by the target's ending."""
    lower = target.lower()
    for ending, write in _WRITERS.items():
        if lower.endswith(ending):
            return write(nw.from_native(frame, eager_only=True).to_polars())
    raise InvalidInput(f"{target} must end in one of {', '.join(_WRITERS)}.")


def _csv(frame: Any) -> bytes:
    return bytes(frame.write_csv().encode())


def _parquet(frame: Any) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _feather(frame: Any) -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc(buffer)
    return buffer.getvalue()


_WRITERS: dict[str, Callable[[Any], bytes]] = {
    ".csv.gz": lambda frame: gzip.compress(_csv(frame)),
    ".csv": _csv,
    ".parquet": _parquet,
    ".feather": _feather,
}
