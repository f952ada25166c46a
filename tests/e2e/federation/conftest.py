"""One consortium of three sites serves most tests of this folder; each test leaves it as it found it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("nvflare", reason="the extra dpfda[federated] is not installed")
sys.path.insert(0, str(Path(__file__).parent))

from consortium import Consortium


@pytest.fixture(scope="session")
def consortium(tmp_path_factory):
    made = Consortium(tmp_path_factory.mktemp("consortium"))
    for name in ("alpha", "beta", "gamma"):
        made.add(name)
    try:
        made.start_server()
        for site in made.sites.values():
            site.start()
        made.wait_for("alpha", "beta", "gamma")
        yield made
    finally:
        made.close()


@pytest.fixture
def world(consortium):
    consortium.wait_for("alpha", "beta", "gamma")
    return consortium
