"""What `deploy/` has for systemd, Docker and Kubernetes: linted, and its commands are run."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from queueber.testing import running_server
from queueber.version import VERSION
from tests.support.certificates import Authority, new_authority

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("queueber*.service"))
BASE = DEPLOY / "kubernetes" / "base"
PROGRAM = "/opt/queueber/bin/queueber"
EXPOSURE_MAX = 20
"""In tenths: a unit without any protection has 96."""

systemd_analyze = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(
    systemd_analyze is None, reason="systemd-analyze is missing: install the package systemd"
)


def tool(name: str) -> str:
    """A tool of the environment."""
    return str(Path(sys.executable).with_name(name))


def run(*command: str, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, env=env, capture_output=True, text=True, check=False, timeout=120
    )


# --- systemd --------------------------------------------------------------------------------------


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_unit_is_one_that_systemd_understands(unit: Path, tmp_path: Path) -> None:
    for each in (DEPLOY / "systemd").glob("queueber*"):
        text = each.read_text().replace(PROGRAM, sys.executable)
        (tmp_path / each.name).write_text(re.sub(r"^(User|Group)=.*\n", "", text, flags=re.M))

    told = run(str(systemd_analyze), "verify", "--man=no", str(tmp_path / unit.name))

    ours = [line for line in told.stderr.splitlines() if "queueber" in line]
    assert (told.returncode, ours) == (0, [])


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_unit_exposes_little(unit: Path) -> None:
    threshold = f"--threshold={EXPOSURE_MAX}"
    told = run(
        str(systemd_analyze), "security", "--offline=true", "--no-pager", threshold, str(unit)
    )

    assert told.returncode == 0, told.stdout[-200:] + told.stderr


@needs_systemd
def test_timer_comes_every_hour() -> None:
    timer = (DEPLOY / "systemd" / "queueber-backup.timer").read_text()
    calendar = re.search(r"^OnCalendar=(.*)$", timer, re.M)
    assert calendar is not None

    told = run(str(systemd_analyze), "calendar", calendar[1])

    assert told.returncode == 0
    assert "*-*-* *:00:00" in told.stdout


def command_of(unit: str) -> list[str]:
    """The arguments of `queueber` in a unit."""
    text = (DEPLOY / "systemd" / unit).read_text().replace("\\\n", " ")
    found = re.search(r"^ExecStart=(.*)$", text, re.M)
    assert found is not None
    program, *arguments = shlex.split(found[1])
    assert program == PROGRAM
    return arguments


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        port: int = opened.getsockname()[1]
        return port


class Installed:
    """The files and addresses of the units, moved into a folder and to free ports."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        self._folder = folder
        self.rpc, self.http = free_port(), free_port()
        etc = folder / "etc"
        etc.mkdir()
        certificate = authority.issue("server", "localhost", "127.0.0.1")
        shutil.copy(certificate, etc / "server.crt")
        shutil.copy(certificate, etc / "server.key")
        shutil.copy(authority.ca_file, etc / "ca.crt")
        token = run(
            sys.executable, "-m", "queueber", "token", "create", "--json", "--role", "admin",
            "--queue", "*", "--topic", "*", "--file", str(etc / "tokens.toml"),
        )  # fmt: skip
        assert token.returncode == 0, token.stderr
        (etc / "backup.token").write_text(json.loads(token.stdout)["token"])
        (etc / "backup.token").chmod(0o600)
        config = (DEPLOY / "systemd" / "queueber.toml").read_text()
        (etc / "queueber.toml").write_text(self.moved(config).replace("0.0.0.0", "127.0.0.1"))

    def moved(self, text: str) -> str:
        folders = {
            "/etc/queueber": "etc", "/var/lib/queueber": "data", "/var/backups/queueber": "backups"
        }  # fmt: skip
        for path, name in folders.items():
            text = text.replace(path, str(self._folder / name))
        return text.replace(":9090", f":{self.rpc}").replace(":9091", f":{self.http}")

    def command(self, unit: str) -> list[str]:
        return [
            sys.executable,
            "-m",
            "queueber",
            *(self.moved(each) for each in command_of(unit)),
        ]


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Installed]:
    authority = new_authority(tmp_path / "authority")
    made = Installed(tmp_path, authority)
    processes = []
    try:
        for unit in ("queueber.service", "queueber-gateway.service"):
            with (tmp_path / f"{unit}.log").open("wb") as log:
                processes.append(subprocess.Popen(made.command(unit), stdout=log, stderr=log))
        yield made
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(30)


@pytest.mark.slow
def test_units_work_together(installed: Installed, tmp_path: Path) -> None:
    give_up_at = time.monotonic() + 60
    status = 0
    while status != 200 and time.monotonic() < give_up_at:
        time.sleep(0.1)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{installed.http}/readyz") as answer:
                status = answer.status
        except (urllib.error.URLError, ConnectionError):
            continue
    logs = [log.read_text()[-2000:] for log in tmp_path.glob("*.log")]
    assert status == 200, logs

    backup = run(
        *installed.command("queueber-backup.service"),
        env={**os.environ, "QUEUEBER_ADDRESS": f"127.0.0.1:{installed.rpc}"},
    )

    assert (backup.returncode, backup.stderr) == (0, "")
    assert len(list((tmp_path / "backups" / "backups").iterdir())) == 1


# --- Docker ---------------------------------------------------------------------------------------


def test_dockerfile_is_linted() -> None:
    told = run(tool("hadolint"), str(DEPLOY / "docker" / "Dockerfile"))

    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def test_image_runs_without_rights_and_is_checked() -> None:
    lines = (DEPLOY / "docker" / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    last_stage = lines[max(at for at, line in enumerate(lines) if line.startswith("FROM ")) :]
    words = {line.partition(" ")[0]: line.partition(" ")[2] for line in last_stage if line}

    assert words["USER"] == "10001:10001"
    assert words["STOPSIGNAL"] == "SIGTERM"
    assert json.loads(words["ENTRYPOINT"]) == ["queueber"]
    check = json.loads(words["HEALTHCHECK"].partition("CMD ")[2])
    assert check[0] == "python"
    with running_server() as server:
        code = check[2].replace("9090", server.address.rpartition(":")[2])
        assert run(sys.executable, *check[1:2], code).returncode == 0
    assert run(sys.executable, *check[1:2], code).returncode != 0


def test_image_has_what_the_build_copies() -> None:
    text = (DEPLOY / "docker" / "Dockerfile").read_text()
    ignored = (DEPLOY / "docker" / "Dockerfile.dockerignore").read_text().splitlines()
    copied = [
        word
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.M)
        for word in line.split()
    ]

    assert copied
    assert all((ROOT / name).exists() and f"!{name}" in ignored for name in copied)


# --- Kubernetes -----------------------------------------------------------------------------------


def documents() -> list[dict[str, Any]]:
    kustomization = yaml.safe_load((BASE / "kustomization.yaml").read_text())
    return [
        document
        for name in kustomization["resources"]
        for document in yaml.safe_load_all((BASE / name).read_text())
    ]


def test_yaml_is_linted() -> None:
    told = run(tool("yamllint"), "--strict", "-c", str(DEPLOY / ".yamllint"), str(DEPLOY))

    assert (told.returncode, told.stdout) == (0, "")


def test_manifests_are_those_that_kubernetes_takes() -> None:
    files = [str(path) for path in sorted(BASE.glob("*.yaml")) if path.stem != "kustomization"]
    told = run(tool("kubernetes-validate"), "-k", "1.31", "--strict", *files)

    assert told.returncode == 0, told.stdout + told.stderr
    assert (told.stdout + told.stderr).count(" passed for resource ") == len(documents())


def test_kustomization_names_every_file() -> None:
    kustomization = yaml.safe_load((BASE / "kustomization.yaml").read_text())

    assert sorted(kustomization["resources"]) == sorted(
        path.name for path in BASE.glob("*.yaml") if path.stem != "kustomization"
    )
    assert [image["newTag"] for image in kustomization["images"]] == [VERSION]


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    """The pods that the manifests make, by kind and name."""
    for document in documents():
        spec = document.get("spec", {})
        if document["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if "template" in spec:
            yield str(document["kind"]), spec["template"]["spec"]


def test_pods_have_no_rights_bounds_and_probes() -> None:
    found = dict(pods())

    assert set(found) == {"StatefulSet", "Deployment", "CronJob"}
    for kind, pod in found.items():
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "memory" in container["resources"]["limits"]
        if kind != "CronJob":
            assert {"livenessProbe", "readinessProbe"} < set(container)


def test_arguments_of_pods_and_units_are_flags_that_exist() -> None:
    arguments = [pod["containers"][0]["args"] for _, pod in pods()]
    arguments += [command_of(unit.name) for unit in UNITS]

    for command, *rest in arguments:
        told = run(sys.executable, "-m", "queueber", command, "--help").stdout
        flags = [each.partition("=")[0] for each in rest if each.startswith("--")]
        assert flags
        assert [flag for flag in flags if f" {flag} " not in told.replace("\n", " ")] == []


def test_config_of_the_pod_is_that_of_the_unit_but_for_its_paths() -> None:
    (config,) = [each for each in documents() if each["kind"] == "ConfigMap"]
    in_pod = tomllib.loads(config["data"]["queueber.toml"])
    of_unit = tomllib.loads((DEPLOY / "systemd" / "queueber.toml").read_text())

    assert set(in_pod) == set(of_unit)
    assert in_pod["listen"] == of_unit["listen"]
