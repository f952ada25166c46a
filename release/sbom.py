"""The software bill of materials (CycloneDX 1.6) that every wheel carries in `.dist-info/sboms/`, from the lock.

Only the standard library is used, since the build hook calls it. Same sources, same bytes: no time, no random identifier.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NAME = "dpfda.cdx.json"
NOT_SHIPPED = {"bench", "dev", "docs", "notebooks", "all"}  # extras that no user's installation needs
HTMX = "src/dpfda/cli/console/assets/htmx.min.js"


def make_sbom(root: Path, version: str) -> bytes:
    """Everything that an installation of this version brings: required, by extras, vendored, and example data."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = read_lock(root / "requirements.lock")
    needs = list_needs(project)
    required = reach(pins, map(bare, needs.pop("always")))
    optional = reach(pins, (bare(each) for packages in needs.values() for each in packages)) - required
    licences = read_licences(root)
    components = [
        describe_package(
            name, versions, licences.get(name, "NOASSERTION"), "required" if name in required else "optional"
        )
        for name, versions in sorted(pins.items())
        if name in required | optional
    ]
    subject = {"type": "library", "bom-ref": f"pkg:pypi/dpfda@{version}", "name": "dpfda", "version": version}
    subject |= {"purl": f"pkg:pypi/dpfda@{version}", "licenses": [{"expression": project["license"]}]}
    whole = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": subject},
        "components": [*components, *describe_shipped(root)],
        "dependencies": [
            {"ref": subject["bom-ref"], "dependsOn": sorted(each["bom-ref"] for each in components)},
        ],
    }
    digest = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).digest()
    whole["serialNumber"] = f"urn:uuid:{uuid.UUID(bytes=digest[:16], version=4)}"
    return json.dumps(whole, indent=1, sort_keys=True).encode() + b"\n"


def list_needs(project: dict[str, Any]) -> dict[str, list[str]]:
    """The requirements by who needs them: everybody, some systems, the extras that users install."""
    needs = {"always": [], "where no compiled kernels fit": []}  # type: dict[str, list[str]]
    for requirement in project["dependencies"]:
        needs["where no compiled kernels fit" if ";" in requirement else "always"].append(requirement)
    extras = project["optional-dependencies"].items()
    return needs | {f"extra `{name}`": packages for name, packages in extras if name not in NOT_SHIPPED}


def describe_package(name: str, versions: list[str], licence: str, scope: str) -> dict[str, Any]:
    """A package of the registry; where Pythons differ in its version, the newest."""
    purl = f"pkg:pypi/{name}@{versions[-1]}"
    found: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": versions[-1], "purl": purl}
    return found | {"scope": scope, "licenses": [{"license": {"name": licence}}]}


def describe_shipped(root: Path) -> Iterator[dict[str, Any]]:
    """What lies inside the wheel and is not dpfda's own: a script, and data with their licence."""
    script = (root / HTMX).read_bytes()
    version = re.search(r"htmx (\d[\d.]*)", (root / HTMX).with_name("htmx.LICENSE.txt").read_text(encoding="utf-8"))
    assert version is not None
    yield describe_file(f"pkg:npm/htmx.org@{version[1]}", "htmx.org", script, "0BSD", "library") | {
        "version": version[1]
    }
    folder = root / "src" / "dpfda" / "curves" / "shipped"
    for name, source in tomllib.loads((folder / "sources.toml").read_text(encoding="utf-8")).items():
        content = (folder / source["file"]).read_bytes()
        yield describe_file(f"data:{name}", f"{name} ({source['source']})", content, source["licence"], "data")


def describe_file(reference: str, name: str, content: bytes, licence: str, kind: str) -> dict[str, Any]:
    """A file with its hash and licence."""
    hashes = [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}]
    return {
        "type": kind,
        "bom-ref": reference,
        "name": name,
        "hashes": hashes,
        "licenses": [{"license": {"id": licence}}],
    }


def read_lock(path: Path) -> dict[str, Any]:
    """Versions and parents of every package in the lock; the parents are its `# via` comments."""
    found = _Pins()
    for block in re.split(r"\n(?=[a-z0-9])", path.read_text(encoding="utf-8").strip()):
        name, version = re.match(r"([a-z0-9._-]+)==([^\s;]+)", block).groups()  # type: ignore[union-attr]
        found.setdefault(name, []).append(version)
        comment = block.partition("# via")[2]
        found.parents.setdefault(name, set()).update(re.findall(r"^\s*(?:#\s+)?([a-z0-9._-]+)", comment, re.MULTILINE))
    return found


class _Pins(dict[str, list[str]]):
    """Versions by name, and who brings a package."""

    def __init__(self) -> None:
        super().__init__()
        self.parents: dict[str, set[str]] = {}


def reach(pins: Any, names: Any) -> set[str]:
    """These packages and all that they bring."""
    found, new = set(), set(names) & pins.keys()
    while new:
        found |= new
        new = {name for name, parents in pins.parents.items() if parents & new} - found
    return found


def read_licences(root: Path) -> dict[str, str]:
    """Licences by package, as `python -m release.third_party` wrote them."""
    listed = tomllib.loads((root / "release" / "licences.toml").read_text(encoding="utf-8"))
    return {name: str(licence) for name, licence in listed.items()}


def bare(requirement: str) -> str:
    """The name in a requirement."""
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower().replace("_", "-")
