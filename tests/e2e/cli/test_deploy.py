"""The operations pack: unit files, compose file and alerts say what the installed commands understand; its steps run."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest
import yaml

from dpfda.cli.main import run

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"


def commands():
    """Every dpfda command line of the pack, without places."""
    for path in (*DEPLOY.glob("systemd/*.service"), *DEPLOY.glob("*.md")):
        for line in re.findall(
            r"(?:bin/)?dpfda ((?:--quiet )?(?:site|consortium|study|budget) [a-z]+[^\n`]*)", path.read_text()
        ):
            yield path.name, shlex.split(line.split(",")[0].split(" charges")[0])


def test_the_commands_exist_with_these_options(capsys):
    seen = set()
    for name, words in commands():
        group, verb, *rest = [word for word in words if word != "--quiet"]
        assert run([group, verb, "--help"]) == 0, (name, words)
        page = capsys.readouterr().out
        for option in (word for word in rest if word.startswith("--")):
            assert option in page, (name, words, option)
        seen.add((group, verb))
    assert {("site", "run"), ("consortium", "serve"), ("consortium", "renew"), ("budget", "restore")} <= seen


def test_files_can_be_read_and_name_what_exists():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(compose["services"]) == {"site", "server"}
    assert compose["services"]["site"]["command"][1:3] == ["site", "run"]
    assert "ports" not in compose["services"]["site"], "a site listens nowhere"
    alerts = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text())["groups"][0]["rules"]
    source = "".join(path.read_text() for path in (ROOT / "src" / "dpfda" / "federation").rglob("*.py"))
    for alert in alerts:
        for metric in re.findall(r"dpfda_[a-z_]+", alert["expr"]):
            assert f'"{metric}"' in source, metric
    assert xml.etree.ElementTree.parse(DEPLOY / "data-flow.svg").getroot().tag.endswith("svg")
    for page in DEPLOY.glob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (DEPLOY / link).exists(), (page.name, link)


class Chart:
    """Renders the chart as Helm does, for the few constructs that it uses; any other one is an error."""

    CONDITION = re.compile(r'\{\{- if (?:eq )?\.Values\.(\w+)(?: "(\w+)")? \}\}')
    VALUE = re.compile(r"\{\{ \.(Values|Release|Chart)\.([\w.]+)( \| quote)? \}\}")

    def __init__(self, **chosen):
        root = DEPLOY / "helm" / "dpfda"
        self.templates = sorted((root / "templates").glob("*.yaml"))
        described = yaml.safe_load((root / "Chart.yaml").read_text())
        values = {**yaml.safe_load((root / "values.yaml").read_text()), **chosen}
        self.known = {"Values": values, "Release": {"Name": "north"}, "Chart": {"AppVersion": described["appVersion"]}}

    def manifests(self):
        """Every Kubernetes object, by kind."""
        found = [each for path in self.templates for each in yaml.safe_load_all(self.render(path.read_text())) if each]
        assert len({each["kind"] for each in found}) == len(found)
        return {each["kind"]: each for each in found}

    def render(self, text):
        """Lines outside conditions that do not hold, with their values put in."""
        lines, kept = [], True
        for line in text.splitlines():
            condition = self.CONDITION.fullmatch(line)
            if condition:
                value = self.known["Values"][condition[1]]
                kept = bool(value) if condition[2] is None else value == condition[2]
            elif line == "{{- end }}":
                kept = True
            elif kept:
                lines.append(self.VALUE.sub(self._value, line))
                assert "{{" not in lines[-1], lines[-1]
        return "\n".join(lines) + "\n"

    def _value(self, found):
        value = self.known[found[1]]
        for name in found[2].split("."):
            value = value[name]
        return json.dumps(str(value)) if found[3] else str(value)


def test_the_chart_renders_a_site_that_listens_nowhere_and_a_server_that_connects_nowhere():
    site, server = Chart(role="site", paused=False).manifests(), Chart(role="server", paused=False).manifests()
    assert set(site) == {"StatefulSet", "NetworkPolicy"}
    assert set(server) == {"StatefulSet", "NetworkPolicy", "Service"}
    assert site["NetworkPolicy"]["spec"]["ingress"] == [] == server["NetworkPolicy"]["spec"]["egress"]
    ports = [rule["port"] for each in site["NetworkPolicy"]["spec"]["egress"] for rule in each["ports"]]
    assert ports == [8102, 53, 53]
    for kinds, verb in ((site, "run"), (server, "serve")):
        described = kinds["StatefulSet"]["spec"]
        pod = described["template"]["spec"]
        [container] = pod["containers"]
        assert described["replicas"] == 1
        assert container["args"][2] == verb
        assert "command" not in container
        assert container["securityContext"]["runAsUser"] == 10001
        assert "fsGroup" not in pod.get("securityContext", {})
        assert pod["automountServiceAccountToken"] is False
        mounted = {each["name"] for each in container["volumeMounts"]}
        held = {each["name"] for each in pod["volumes"]} | {
            each["metadata"]["name"] for each in described["volumeClaimTemplates"]
        }
        assert mounted <= held
    [data] = [each for each in site["StatefulSet"]["spec"]["template"]["spec"]["volumes"] if each["name"] == "data"]
    assert data["persistentVolumeClaim"]["readOnly"] is True
    [waiting] = Chart().manifests()["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    assert waiting["command"] == ["sleep", "infinity"]


def test_image_compose_and_chart_agree(capsys):
    image = (DEPLOY / "oci" / "Containerfile").read_text()
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    values = yaml.safe_load((DEPLOY / "helm" / "dpfda" / "values.yaml").read_text())
    built = re.search(r"-t (\S+)", image)[1]
    assert {each["image"] for each in compose.values()} == {built} == {values["image"]}
    assert {each["user"] for each in compose.values()} == {"10001:10001"}
    assert "--uid 10001" in image
    assert compose["server"]["ports"] == [f"{values['port']}:{values['port']}"]
    for service in compose.values():
        assert run([*service["command"][1:3], "--help"]) == 0
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
    capsys.readouterr()


def test_unit_files_are_what_systemd_expects(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for unit in DEPLOY.glob("systemd/*.service"):
        copy = tmp_path / unit.name.replace("@", "@north")
        copy.write_text(unit.read_text().replace("/opt/dpfda/bin/dpfda", sys.executable))
        done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
        assert unit.stem.rstrip("@") not in done.stderr, done.stderr


@pytest.mark.slow
def test_the_images_steps_install_a_working_dpfda(tmp_path):
    """The steps of the Containerfile in a clean virtual environment; the image itself needs an engine."""
    source = tmp_path / "source"
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in kept:
        if (ROOT / name).is_file() and not name.startswith(("tests/", "results/")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    clean = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    steps = subprocess.run(
        ["sh", str(source / "deploy" / "oci" / "steps.sh"), str(source), str(tmp_path / "dpfda")],
        capture_output=True, text=True, check=False, timeout=1800, env=clean,
    )  # fmt: skip
    assert steps.returncode == 0, steps.stderr[-2000:]
    assert steps.stdout.startswith("dpfda ")
    for words in (["site", "run", "--help"], ["consortium", "console", "--help"]):
        assert (
            subprocess.run([tmp_path / "dpfda" / "bin" / "dpfda", *words], capture_output=True, check=False).returncode
            == 0
        )
