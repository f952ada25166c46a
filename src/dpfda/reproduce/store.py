"""Results on disk under the hash of what they depend on: an interrupted run resumes where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfda import __version__

ENGINE = 3  # raise it when the engine's results change, so that nothing old is read
_ADAPTIVE = (
    "protocol/**/*.py", "basis/*.py", "methods/adaptive/*.py", "silo/*.py", "silo/kernels/*.py", "privacy/*.py",
    "curves/simulated.py", "reproduce/adaptive_runs.py",
)  # fmt: skip
Arrays = dict[str, NDArray[np.float64]]


class Store:
    """A folder of results; it hides itself from git."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n")

    def read(self, key: Mapping[str, Any]) -> Arrays | None:
        """The stored result, or None where there is none or it is damaged."""
        path = self._path(key)
        try:
            with np.load(path) as stored:
                return {name: stored[name] for name in stored.files}
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error):
            return None

    def write(self, key: Mapping[str, Any], result: Arrays) -> None:
        """Store it whole or not at all."""
        handle, temporary = tempfile.mkstemp(dir=self.folder, suffix=".npz")
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **result)  # type: ignore[arg-type]
        os.replace(temporary, self._path(key))

    def _path(self, key: Mapping[str, Any]) -> Path:
        return self.folder / f"{digest(key)}.npz"


@lru_cache(maxsize=1)
def adaptive_code() -> str:
    """A hash of the code that decides about a result of the default method."""
    package = Path(__file__).parents[1]
    files = [path for place in _ADAPTIVE for path in sorted(package.glob(place))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def digest(key: Mapping[str, Any]) -> str:
    """A short hash of a configuration."""
    text = json.dumps(
        {"engine": ENGINE, "version": __version__, **key}, sort_keys=True, separators=(",", ":"), default=str
    )
    return hashlib.sha256(text.encode()).hexdigest()[:24]
