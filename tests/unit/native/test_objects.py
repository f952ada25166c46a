"""Kernels compiled ahead of time: complete, chosen by flags, refused if they are not what was built, same bits as numba."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import dpfda
from dpfda import _objects
from dpfda._compile import (
    BYTES,
    FLAG,
    REAL,
    REALS,
    REALS_2D,
    WHOLE,
    WORD,
    Bundle,
    Entry,
    KernelError,
    compiled,
    entries,
)
from dpfda.audit import proofs
from dpfda.native import build as builds
from dpfda.native.sources import kernel_modules, source_files

SOURCE = Path(dpfda.__file__).parent


def runnable() -> list[str]:
    return [name for name in builds.LEVELS if builds.runs_here(name)]


@pytest.fixture
def copied(objects, tmp_path) -> Path:
    """A copy of the objects, and of the sources, that may be spoiled."""
    folder = tmp_path / "dpfda" / "native" / "objects"
    shutil.copytree(SOURCE, tmp_path / "dpfda", ignore=shutil.ignore_patterns("__pycache__", "objects"))
    shutil.copytree(objects, folder)
    return folder


@pytest.fixture(scope="session")
def objects(tmp_path_factory) -> Path:
    """The folder of current objects: those of `make setup`, or some that are built here."""
    if builds.is_current():
        return _objects.FOLDER
    package = tmp_path_factory.mktemp("built") / "dpfda"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__", "objects"))
    builds.build(folder=package / "native" / "objects")
    return package / "native" / "objects"


def manifest_of(folder: Path) -> dict:
    return json.loads((folder / "manifest.json").read_text())


def test_every_kernel_of_the_source_is_in_the_objects_with_its_kinds(objects) -> None:
    for module in kernel_modules():
        importlib.import_module(module)
    declared = {name: entry.signature for name, entry in entries().items() if (SOURCE / _file(name)).exists()}
    entered = manifest_of(objects)["entries"].items()  # with those of tests, if it was built here
    listed = {name: entry["signature"] for name, entry in entered if (SOURCE / _file(name)).exists()}
    assert declared == listed, "run `make kernels`"
    for level, each in manifest_of(objects)["objects"].items():
        if level in runnable():
            handle = _objects.ctypes.CDLL(str(objects / each["file"]))
            for name in listed:
                assert getattr(handle, manifest_of(objects)["entries"][name]["symbol"])


def _file(name: str) -> str:
    return name.rsplit(".", 1)[0].replace(".", "/") + ".py"


def test_every_kernel_in_the_package_has_kinds() -> None:
    import ast

    without = [
        (file.name, node.name)
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and "compiled" in [ast.unparse(mark) for mark in node.decorator_list]
    ]
    assert without == [], "write @compiled(REALS, ...) with the kinds of the arguments: see docs/architecture.md"


def test_sources_are_those_that_kernels_and_their_constants_come_from() -> None:
    names = {file.relative_to(SOURCE).as_posix() for file in source_files()}
    assert {"privacy/exact.py", "silo/kernels/trig.py", "curves/tables/grouping.py", "native/linking.py"} <= names
    assert "silo/silo.py" not in names


# the chooser

V3 = frozenset(builds.LEVELS["x86-64-v3"].needs)
V4 = frozenset(builds.LEVELS["x86-64-v4"].needs)
ALL = {name: {"machine": level.machine, "needs": level.needs} for name, level in builds.LEVELS.items()}


@pytest.mark.parametrize(
    ("machine", "flags", "level"),
    [
        ("x86_64", frozenset(), "x86-64"),
        ("x86_64", V3, "x86-64-v3"),
        ("x86_64", V4, "x86-64-v4"),
        ("x86_64", V4 | {"avx10", "amx_tile"}, "x86-64-v4"),
        ("aarch64", frozenset({"asimd"}), "aarch64"),
        ("aarch64", V4, "aarch64"),
        ("riscv64", V4, None),
    ],
)
def test_the_best_set_is_chosen(machine, flags, level) -> None:
    assert _objects.choose_level(ALL, machine, flags) == level


@pytest.mark.parametrize("missing", sorted(V4))
def test_a_set_of_which_one_flag_is_masked_is_not_chosen(missing) -> None:
    chosen = _objects.choose_level(ALL, "x86_64", V4 - {missing})
    assert chosen == ("x86-64" if missing in V3 else "x86-64-v3")
    for name in ("x86-64-v4", *(["x86-64-v3"] if missing in V3 else [])):
        with pytest.raises(OSError, match="not among"):
            _objects.choose_level(ALL, "x86_64", V4 - {missing}, wanted=name)


def test_flags_are_those_that_every_processor_has(tmp_path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text("processor : 0\nflags\t\t: fpu avx avx2 avx512f\n\nprocessor : 1\nflags\t\t: fpu avx avx2\n")
    assert _objects.read_flags(file) == {"fpu", "avx", "avx2"}
    file.write_text("processor : 0\nFeatures : fp asimd\n")
    assert _objects.read_flags(file) == {"fp", "asimd"}
    file.write_text("")
    assert _objects.read_flags(file) == frozenset()
    assert _objects.read_flags(tmp_path / "none") == frozenset()


def test_a_processor_with_masked_flags_gets_the_lower_object(objects, copied) -> None:
    here = _objects.read_flags()
    assert _objects.open_library(copied, here).level == runnable()[-1]
    for missing in (*V4, "asimd"):
        flags = here - {missing}
        fitting = [name for name in runnable() if flags.issuperset(builds.LEVELS[name].needs)]
        assert _objects.open_library(copied, flags).level == fitting[-1]


# what is refused


def load(folder: Path) -> _objects.Library:
    return _objects.open_library(folder, _objects.read_flags())


def test_the_objects_are_loaded(copied) -> None:
    assert load(copied).level == runnable()[-1]


def test_an_object_with_another_byte_is_not_loaded(copied) -> None:
    file = copied / f"{runnable()[-1]}.so"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert load(copied).handle is None
    assert load(copied).reason == f"{file.name} is not the file that was built"


def test_an_object_of_other_sources_is_not_loaded(copied) -> None:
    source = copied.parents[1] / "silo" / "kernels" / "trig.py"
    source.write_text(source.read_text() + "\n# changed\n")
    assert "silo/kernels/trig.py" in load(copied).reason


def test_no_objects_are_no_failure(copied) -> None:
    shutil.rmtree(copied)
    assert load(copied).reason == "this installation has no compiled kernels"


def test_a_kernel_with_other_kinds_is_not_taken_from_the_object(objects) -> None:
    name = "silo.kernels.store._place_curves"
    assert _objects.load_entry(name, "(f8[:]) ->", (REALS,), None) is None
    assert _objects.load_entry("silo.kernels.store._no_such", "() ->", (), None) is None


def test_objects_are_those_of_the_record() -> None:
    assert proofs.object_problems() == []


def test_a_record_of_other_objects_is_noticed(objects, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(proofs, "compiled_digests", lambda: {"tools": "some", "x86-64": "1"})
    record = tmp_path / "reviewed.toml"
    proofs.accept(record)
    assert proofs.object_problems(record) == []
    monkeypatch.setattr(proofs, "compiled_digests", lambda: {"tools": "some", "x86-64": "2"})
    assert len(proofs.object_problems(record)) == 1
    record.write_text("[sha256]\n")
    assert len(proofs.object_problems(record)) == 1


# how they are called


@compiled(REALS, WHOLE, REAL, FLAG, WORD, REALS_2D, BYTES, returns=WHOLE)
def _anything(a, b, c, d, e, f, g):
    return b


def calling(function):
    """A caller of an entry, with a Python function where the object's would be."""

    class Symbol:
        argtypes = restype = None

        def __call__(self, packed, result):
            return function(packed)

    return _objects._caller(Symbol(), "an_entry", _anything.kinds, _anything.returns)


def good():
    return [np.zeros(2), 3, 0.5, True, 2**64 - 1, np.zeros((2, 3)), np.zeros(4, np.uint8)]


def test_arguments_become_words() -> None:
    import struct

    arguments, seen = good(), []
    calling(lambda packed: seen.append(struct.unpack("=QqqdqQQqqQq", packed)) or 0)(*arguments)
    addresses = [array.ctypes.data for array in arguments if isinstance(array, np.ndarray)]
    first, second, third = addresses
    assert seen == [(first, 2, 3, 0.5, 1, 2**64 - 1, second, 2, 3, third, 4)]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, np.zeros(2, np.float32)), (0, np.zeros((2, 1))), (0, np.zeros(4)[::2]), (0, [0.0, 1.0]), (0, 1.0),
        (1, 0.5), (1, 2**63), (2, "x"), (4, -1), (5, np.zeros((3, 2)).T), (5, np.zeros(6)), (6, np.zeros(4)),
    ],
)  # fmt: skip
def test_what_is_not_of_its_kind_is_refused(place, value) -> None:
    arguments = good()
    arguments[place] = value
    with pytest.raises(KernelError, match="called wrongly"):
        calling(lambda packed: 0)(*arguments)


def test_too_few_arguments_are_refused() -> None:
    with pytest.raises(KernelError, match="does not fit"):
        calling(lambda packed: 0)(*good()[:-1])


def test_an_index_out_of_bounds_is_raised() -> None:
    with pytest.raises(IndexError, match="an_entry"):
        calling(lambda packed: 1)(*good())


class _Fields(NamedTuple):
    first: object
    second: object


class _Pair(_Fields, Bundle):
    """Two arrays whose words are kept."""


def test_words_of_a_bundle_are_kept_only_when_they_are_whole() -> None:
    read = _objects._reader(_Pair(REALS, REALS))
    good = _Pair(np.zeros(2), np.zeros(3))
    assert read(good) is read(good)
    assert len(read(good)) == 4
    wrong = _Pair(np.zeros(2), np.zeros((3, 1)))
    for _ in range(2):
        with pytest.raises(KernelError, match="an array must be"):
            read(wrong)
    assert wrong.kept_words == {}


def test_both_ways_to_an_address_agree() -> None:
    for array in (np.zeros(5), np.zeros(5)[2:], np.zeros((3, 4))[1:], np.zeros(0), np.frombuffer(b"12345678")):
        assert _objects._quick_address(array) == _objects._public_address(array) == _objects._address(array)


# bits

SUMS = """
import hashlib, sys
from pathlib import Path
import numpy as np
from dpfda import _objects
if sys.argv[1] != "numba":
    library = _objects.open_library(Path(sys.argv[1]), _objects.read_flags(), sys.argv[2])
    assert not library.reason, library.reason
    _objects.load_library = lambda: library
from dpfda.basis import BSpline, Fourier, FreeEnds
from dpfda.curves.fingerprint import label_texts, sum_lanes
from dpfda.curves.tables.grouping import may_hold_copies, order_rows, split_columns
from dpfda.curves.tables.repeats import has_repeat
from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.reproduce.published_runs import Moments, truncated_sums
from dpfda.silo.kernels.packed import PackedCurves
rng = np.random.default_rng(5)
lengths = rng.integers(0, 60, 300)
offsets = np.append(0, np.cumsum(lengths))
u, y = rng.random(offsets[-1]), rng.normal(size=offsets[-1])
y[7], y[99], y[500] = 1e200, np.inf, np.nan
design = np.column_stack([np.ones(300), rng.random(300)])
changes = rng.random(300) < 0.5
rows = np.repeat(design, lengths, axis=0)
rows[:, 1] += np.repeat(changes, lengths) * rng.random(offsets[-1])
exact, real = [], []
for basis in (Fourier(5), Fourier(71), FreeEnds(9), BSpline(7)):
    width = 2 * basis.size
    iterate, whitener = rng.normal(size=(2, basis.size)), rng.normal(size=(width, width))
    ball, found = EllipsoidBound(np.ones(width), 2.0), []
    for each in (None, rows):
        packed = PackedCurves.pack(u, y, offsets, design, basis, rows=each)
        found += [packed.truncated_words(iterate, EntrywiseBound(np.ones(width)))]
        total, outer, curve_lengths = packed.clipped_words(iterate, whitener, ball)
        found += [total, outer, np.where(np.isfinite(curve_lengths), curve_lengths, -1.0), packed.level_words(9)]
        found += [packed.moment_words(np.zeros(basis.moment_count), EllipsoidBound(np.ones(basis.moment_count), 2.0))]
        piece = u[:400], np.ones(400), design[0] if each is None else rows[:400]
        packed = PackedCurves.pack_pieces([piece] * 3, basis)
        found += [packed.truncated_words(iterate, EntrywiseBound(np.ones(width)))]
    exact += [np.asarray(part).tobytes() for part in found]
    real += [float(v) for part in found for v in np.ravel(
        np.asarray(part)[0] * 2.0**32 + np.asarray(part)[1] if np.ndim(part) == 2 else part)]
codes = rng.integers(0, 50, 1000)
exact += [part.tobytes() for part in order_rows(codes, rng.random(1000), rng.random(1000))]
numbers = codes.astype(np.uint16)
exact += [part.tobytes() for part in split_columns(numbers, np.bincount(codes), [rng.random(1000)])]
exact += [repr(may_hold_copies(u, y, offsets)).encode(), repr(has_repeat(codes.astype(np.uint64))).encode()]
for each in (design, (design, rows, changes)):
    exact += [repr(sum_lanes(u, y, offsets, each, None, b"0123456789abcdef")).encode()]
for q in (3, 4):
    moments = Moments(rng.normal(size=(2, 50, q, q)), rng.normal(size=(2, 50, q)))
    exact += [truncated_sums(moments, 5, 45, rng.normal(size=(2, q, 7)), rng.random((q, 7))).tobytes()]
exact += [label_texts(np.array([0, 3, 12]), np.arange(12, dtype=np.uint8)).tobytes()]
print(hashlib.sha256(b"|".join(exact)).hexdigest())
print(" ".join(map(repr, real)))
print(_objects.load_library().level, "numba" in sys.modules)
"""


def run_python(code: str, *arguments: str, **changed: str) -> subprocess.CompletedProcess:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DPFDA_", "NUMBA_"))}
    environment = {**kept, "PYTHONPATH": str(SOURCE.parent), **changed}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def sums(folder: Path, level: str, **changed: str) -> tuple[str, np.ndarray, str]:
    if level == "numba":
        lines = run_python(SUMS, "numba", DPFDA_KERNELS="numba", **changed).stdout.splitlines()
    else:
        lines = run_python(SUMS, str(folder), level).stdout.splitlines()
    return lines[0], np.array(list(map(float, lines[1].split()))), lines[2]


def test_objects_give_the_bits_of_numba_and_no_numba_is_imported(objects, tmp_path) -> None:
    best = runnable()[-1]
    digest, _, state = sums(objects, best)
    assert state == f"{best} False"
    assert digest == sums(objects, "numba")[0]


def test_all_sets_agree_up_to_rounding(objects) -> None:
    results = {level: sums(objects, level) for level in runnable()}
    best = results[runnable()[-1]][1]
    for _, values, _ in results.values():
        scale = np.maximum(np.abs(best), np.abs(best).max() * 1e-3)
        assert (np.abs(values - best) <= 1e-12 * scale).all()
    if "x86-64-v4" in results:
        assert results["x86-64-v4"][0] == results["x86-64-v3"][0]  # both have a fused multiply-add


@pytest.mark.slow
@pytest.mark.parametrize("level", runnable())
def test_each_set_has_the_bits_of_numba_for_that_set(objects, level, tmp_path) -> None:
    target = builds.LEVELS[level]
    cpu = {"NUMBA_CPU_NAME": target.cpu, "NUMBA_CPU_FEATURES": target.features, "NUMBA_CACHE_DIR": str(tmp_path)}
    assert sums(objects, level)[0] == sums(objects, "numba", **cpu)[0]


@pytest.mark.slow
def test_the_same_sources_give_the_same_bytes(objects, tmp_path) -> None:
    level = runnable()[-1]
    code = (
        f"import sys; from dpfda.native import build; sys.stdout.write(build._lower_elsewhere({level!r}, False).hex())"
    )
    again = run_python(code, PYTHONHASHSEED="77", HOME=str(tmp_path), LC_ALL="C").stdout
    assert bytes.fromhex(again) == (objects / f"{level}.so").read_bytes()


# the fallback


def test_the_fallback_says_in_one_line_what_it_does(tmp_path) -> None:
    code = "import numpy as np; from dpfda.curves.tables.repeats import has_repeat; print(has_repeat(np.ones(2, np.uint64)))"
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    first = run_python(code, DPFDA_KERNELS="numba", **cache)
    assert first.stdout.strip() == "True"
    assert first.stderr.splitlines() == [
        "dpfda: numba compiles the kernels, which takes about 10 s, once (DPFDA_KERNELS=numba asks for it)."
    ]
    assert run_python(code, DPFDA_KERNELS="numba", **cache).stderr == ""  # from the cache: nothing to say


def test_without_objects_and_without_numba_one_sentence_says_what_to_install(tmp_path) -> None:
    code = (
        "import sys; sys.modules['numba'] = None\nimport numpy as np\nfrom dpfda._compile import KernelError\n"
        "from dpfda.curves.tables.repeats import has_repeat\n"
        "try: has_repeat(np.ones(2, np.uint64))\nexcept KernelError as error: print(error)"
    )
    assert "pip install 'dpfda[compiler]'" in run_python(code, DPFDA_KERNELS="numba").stdout


def test_entries_of_tests_are_no_kernels_of_the_package() -> None:
    assert isinstance(_anything, Entry)
    assert not any("native" in module for module in kernel_modules())
