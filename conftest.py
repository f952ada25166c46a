"""Examples in docstrings: each runs in a folder of its own, and its seeds need no warning."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.add_marker(pytest.mark.filterwarnings("ignore::dpfda.errors.NotPrivateWarning"))


@pytest.fixture(autouse=True)
def _own_folder_of_an_example(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
