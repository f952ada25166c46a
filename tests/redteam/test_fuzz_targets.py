"""The kept corpus of the fuzzers, through the same functions that atheris calls (`make fuzz` looks for more)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "fuzz"


def load(name: str):
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


targets = load("targets")


@pytest.mark.parametrize("name", ["messages", "terms", "site", "results"])
def test_the_corpus_is_refused_or_accepted(name) -> None:
    seeds = targets.seeds(name)
    assert seeds
    for data in seeds:
        targets.TARGETS[name](data)


def test_some_of_the_terms_and_messages_are_accepted() -> None:
    assert sum(map(targets.terms, targets.seeds("terms"))) >= 6
    assert any(map(targets.messages, targets.seeds("messages")))


def test_a_few_tables() -> None:
    pytest.importorskip("polars")
    for data in targets.seeds("tables")[:5]:
        targets.tables(data)
