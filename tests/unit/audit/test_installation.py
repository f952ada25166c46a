"""What `dpfda verify-install` finds: changed, missing and strange files, damaged wheels, wrong kernels and data."""

from __future__ import annotations

import importlib.util
import marshal
import py_compile
import shutil
import zipfile
from pathlib import Path

import pytest
from cli_helpers import dpfda

from dpfda.audit import installation
from dpfda.audit.installation import PACKAGE, read_wheel, verify_installation
from dpfda.errors import InvalidInput


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that may be damaged."""
    return Path(
        shutil.copytree(PACKAGE, tmp_path / "dpfda", ignore=shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc"))
    )


def make_wheel(package: Path, path: Path, *, wrong: str = "") -> Path:
    rows = []
    with zipfile.ZipFile(path, "w") as wheel:
        for file in sorted(file for file in package.rglob("*") if file.is_file()):
            name = file.relative_to(package.parent).as_posix()
            wheel.write(file, name)
            digest = "x" if name == wrong else installation._digest(file.read_bytes())
            rows.append(f"{name},sha256={digest},{file.stat().st_size}\n")
        wheel.writestr("dpfda-0.2.0.dist-info/RECORD", "".join(rows))
    return path


def wrong(wheel: Path | None, package: Path) -> list[str]:
    return [each for check in verify_installation(wheel, package) for each in check.wrong]


def test_files_that_are_missing_changed_or_added_are_named(package: Path, tmp_path: Path) -> None:
    wheel = make_wheel(package, tmp_path / "w.whl")
    assert wrong(wheel, package) == []
    (package / "errors.py").unlink()
    (package / "_blas.py").write_text("changed")
    (package / "extra.py").write_text("import os")
    assert wrong(wheel, package) == [
        "dpfda/_blas.py was changed",
        "dpfda/errors.py is missing",
        "dpfda/extra.py does not belong to the release",
    ]


def test_bytecode_that_is_not_its_source_s_is_named(package: Path) -> None:
    """Eighth review, R8-10: planted bytecode ran in place of a source that was as stated."""
    source = package / "errors.py"
    cache = Path(importlib.util.cache_from_source(str(source)))
    planted = compile(source.read_text() + "\nprint('planted')", str(source), "exec")
    for mode in py_compile.PycInvalidationMode:
        py_compile.compile(str(source), doraise=True, invalidation_mode=mode)
        assert wrong(None, package) == []
        head = cache.read_bytes()[:16]
        cache.write_bytes(head + marshal.dumps(planted))
        assert wrong(None, package) == [f"dpfda/__pycache__/{cache.name} is not what its source compiles to"]
    cache.write_bytes(head[:8] + bytes(8) + marshal.dumps(planted))  # never looked at again
    assert len(wrong(None, package)) == 1
    cache.write_bytes(head[:4] + bytes(12) + marshal.dumps(planted))  # of an older source: Python compiles anew
    assert wrong(None, package) == []
    for content in (head[:16], head[:16] + b"x", b"", head[:3]):
        cache.write_bytes(content)
        verify_installation(None, package)
    cache.unlink()
    (package / "_blas.pyc").write_bytes(head + marshal.dumps(planted))
    assert wrong(None, package) == ["dpfda/_blas.pyc is not what its source compiles to"]


def test_a_wheel_that_is_damaged_or_none_is_refused(package: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is damaged"):
        read_wheel(make_wheel(package, tmp_path / "w.whl", wrong="dpfda/errors.py"))
    (tmp_path / "text.whl").write_text("no wheel")
    for name in ("text.whl", "absent.whl"):
        with pytest.raises(InvalidInput, match="must name a wheel"):
            read_wheel(tmp_path / name)


def test_kernels_their_sources_and_data_are_compared_with_their_hashes(package: Path) -> None:
    assert wrong(None, package) == []
    kernel = next((package / "native" / "objects").glob("*.so"))
    kernel.write_bytes(kernel.read_bytes() + b"\0")
    (package / "native" / "objects" / "strange.so").write_bytes(b"")
    (package / "curves" / "shipped" / "pbcseq.parquet").write_bytes(b"")
    found = wrong(None, package)
    assert f"dpfda/native/objects/{kernel.name} is not what was built" in found
    assert "strange.so does not belong to the release" in found
    assert "pbcseq.parquet was changed" in found


def test_without_compiled_kernels_it_says_so(package: Path) -> None:
    shutil.rmtree(package / "native" / "objects")
    assert "there are none" in str(verify_installation(None, package)[1])


def test_the_command_says_what_it_compared(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ran = dpfda(capsys, "verify-install")
    assert ran.code == 0
    assert "example data against sources.toml: 2 files, all as stated" in ran.out
    ran = dpfda(capsys, "verify-install", "--wheel", tmp_path / "absent.whl")
    assert ran.code == 2
    assert "must name a wheel" in ran.err
