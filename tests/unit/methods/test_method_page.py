"""docs/method.md names functions that exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "method.md"
ROOMS = ("protocol", "planning", "inference")


def test_every_function_of_the_page_exists_and_every_module_is_on_it() -> None:
    named = re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)\.([A-Za-z_]+)`", PAGE.read_text())
    named = [(module, name) for module, name in named if name not in ("py", "md") and not module.endswith("_")]
    assert len(named) > 40
    for module, name in named:
        place = module if module.startswith(ROOMS) else f"methods.adaptive.{module}"
        assert hasattr(importlib.import_module(f"dpfda.{place}"), name), f"{module}.{name}"
    modules = {path.stem for path in (PAGE.parents[1] / "src/dpfda/methods/adaptive").glob("[a-z]*.py")}
    helpers = {"constants", "matrices", "coordinates"}
    assert modules - helpers == {module for module, _ in named if not module.startswith(ROOMS)}
