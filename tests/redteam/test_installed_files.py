"""What lies beside the files of an installation is named, whatever it is (ninth review, R9-7)."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from dpfda.audit.installation import PACKAGE, _digest, verify_installation


def make_wheel(package: Path, path: Path) -> Path:
    files = {file.relative_to(package.parent).as_posix(): file for file in package.rglob("*") if file.is_file()}
    rows = [f"{name},sha256={_digest(file.read_bytes())},{file.stat().st_size}\n" for name, file in files.items()]
    with zipfile.ZipFile(path, "w") as wheel:
        for name, file in files.items():
            wheel.write(file, name)
        wheel.writestr("dpfda-0.2.0.dist-info/RECORD", "".join(rows))
    return path


def test_links_and_strange_folders_are_named(tmp_path) -> None:
    """Python imports a linked folder in place of the module of its name, and nobody looked into it."""
    made_later = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    package = Path(shutil.copytree(PACKAGE, tmp_path / "dpfda", ignore=made_later))
    wheel = make_wheel(package, tmp_path / "w.whl")
    (package / "silo" / "__pycache__").mkdir()
    assert verify_installation(wheel, package)[0].wrong == ()
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "__init__.py").write_text("import os")
    (package / "errors").symlink_to(planted)
    (package / "gone").symlink_to(tmp_path / "nowhere")
    (package / "extra" / "__pycache__").mkdir(parents=True)
    (package / "silo" / "__pycache__" / "extra").mkdir()
    shutil.move(package / "_blas.py", planted / "_blas.py")
    (package / "_blas.py").symlink_to(planted / "_blas.py")
    assert verify_installation(wheel, package)[0].wrong == (
        "dpfda/_blas.py is a link, which no release has",
        "dpfda/errors is a link, which no release has",
        "dpfda/extra does not belong to the release",
        "dpfda/extra/__pycache__ does not belong to the release",
        "dpfda/gone is a link, which no release has",
        "dpfda/silo/__pycache__/extra does not belong to the release",
    )
