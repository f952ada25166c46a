"""The example data that come with dpfda: Parquet files with their hashes, sources and licences in `sources.toml`.

They are no part of dpfda's own licence: `LGPL-2.0.txt` beside them is theirs. `python -m benchmarks.example_data` made them.
"""

from __future__ import annotations

import hashlib
import tomllib
from importlib.resources import files
from typing import Any

from dpfda.errors import InvalidInput


def read_sources() -> dict[str, dict[str, str]]:
    """File, SHA-256, source and licence of every data set that is shipped, by name."""
    found: dict[str, dict[str, str]] = tomllib.loads((files(__name__) / "sources.toml").read_text(encoding="utf-8"))
    return found


def read_shipped(name: str) -> Any:
    """One shipped set as a pyarrow table; a file that is not what was released is refused."""
    source = read_sources()[name]
    content = (files(__name__) / source["file"]).read_bytes()
    if hashlib.sha256(content).hexdigest() != source["sha256"]:
        raise InvalidInput(f"The file {source['file']} of this installation was changed; install dpfda again.")
    try:
        from pyarrow import BufferReader, parquet
    except ImportError:
        raise InvalidInput(
            "Example data need the package 'pyarrow'; install it with `pip install dpfda[data]`."
        ) from None
    # read_table starts threads, and one that is still at work when the process ends may abort it
    with parquet.ParquetFile(BufferReader(content), pre_buffer=False) as file:
        return file.read(use_threads=False)
