"""What a silo can reach is what the list of the trust base says, and the pages say its size."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from dpfda.audit import trust_base

FIRST = trust_base.modules(trust_base.first_ring())
SECOND = trust_base.modules(trust_base.second_ring())
GENERATED = trust_base.generated_texts()

RELEASE = """
import sys
import numpy as np
from dpfda.curves.curves import Curves
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.messages import Query
from dpfda.protocol.plans import make_plan
from dpfda.protocol.terms import StudyTerms
from dpfda.silo.silo import Silo

rng = np.random.default_rng(0)
curves = Curves.from_long(np.repeat(np.arange(200), 4), rng.uniform(size=800), rng.normal(size=800))
for method in ("adaptive", "published"):
    Ledger.create(sys.argv[1] + method, 4.0, 1e-5)
    silo = Silo(curves, epsilon=4.0, delta=1e-5, points_per_curve=4, ledger=sys.argv[1] + method)
    terms = StudyTerms(method, (0.0, 1.0), (-2.0, 2.0), (silo.terms(),), n_basis=3)
    plan = make_plan(terms)
    silo.join(terms, method)
    for index in range(len(plan.rounds)):
        arrays = {name: np.full(size, 0.1) for name, size in plan.query_sizes(index).items()}
        silo.release(Query(method, index, arrays))
print(*(name for name in sys.modules if name == "dpfda" or name.startswith("dpfda.")))
"""


def path_of(module: str) -> str:
    """dpfda.silo.silo -> silo/silo.py."""
    path = Path(*module.split(".")[1:])
    package = (trust_base.PACKAGE / path).is_dir()
    return (path / "__init__.py" if package else path.with_suffix(".py")).as_posix()


def leads_to_the_second_ring(importer: str, imported: str) -> bool:
    return any(imported.startswith(place) for place in trust_base.doors().get(importer, ()))


def reached(start: str, graph: grimp.ImportGraph, *, through_doors: bool = False) -> set[str]:
    """Everything that importing and calling a module can load: imports in functions count, packages run their __init__."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        module = waiting.pop()
        if path_of(module) in found:
            continue
        found.add(path_of(module))
        parts = module.split(".")
        waiting += [".".join(parts[:length]) for length in range(1, len(parts))]
        waiting += [
            imported
            for imported in graph.find_modules_directly_imported_by(module)
            if through_doors or not leads_to_the_second_ring(path_of(module), path_of(imported))
        ]
    return found


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("dpfda", exclude_type_checking_imports=True)


def test_a_silo_reaches_nothing_outside_the_first_ring(graph) -> None:
    assert reached("dpfda.silo.silo", graph) - FIRST == set()


def test_no_module_of_the_first_ring_reaches_beyond_the_second(graph) -> None:
    modules = {"dpfda." + name.removesuffix(".py").replace("/", ".") for name in FIRST if "__init__" not in name}
    for module in modules:
        assert reached(module, graph, through_doors=True) - FIRST - SECOND == set(), module
        assert reached(module, graph) - FIRST == set(), module


def test_doors_are_used(graph) -> None:
    """A door that nobody goes through any more is taken off the list."""
    for importer in trust_base.doors():
        module = "dpfda." + importer.removesuffix(".py").replace("/", ".")
        imports = map(path_of, graph.find_modules_directly_imported_by(module))
        assert any(leads_to_the_second_ring(importer, imported) for imported in imports), importer


def test_releases_load_nothing_outside_the_first_ring(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RELEASE, str(tmp_path / "silo.ledger")], stdout=subprocess.PIPE, text=True, check=True
    )
    loaded = {path_of(module) for module in done.stdout.split()}
    assert "silo/release_statistics.py" in loaded
    assert loaded - FIRST == set()


def test_every_entry_of_the_list_names_modules_that_exist() -> None:
    for ring in ("first_ring", "second_ring", "after_release"):
        for entry in trust_base.read_list()[ring]:
            for glob in [*entry["files"], *entry.get("without", ())]:
                assert any(trust_base.PACKAGE.glob(glob)), glob
    assert not FIRST & SECOND


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_pages_say_the_size_of_the_trust_base(path) -> None:
    page = path.read_text()
    current = trust_base.update_page(page, GENERATED[path])
    assert page == current, "run python -m dpfda.audit.trust_base --write"


def test_lines_of_code_leave_out_prose(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(trust_base, "PACKAGE", tmp_path)
    (tmp_path / "some.py").write_text(
        '"""Two\nlines."""\n\n# a comment\nx = (\n    1,\n)\n\n\ndef f():\n    """Doc."""\n    return x\n'
    )
    assert trust_base.count_lines("some.py") == 5
