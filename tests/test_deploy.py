"""What deploy/ names is there: commands, settings, paths, extras; what a shell can complete."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from commands import ROOT

from cli.commands import Commands
from core.settings import FIELDS, variable_of

DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
UNIT = (DEPLOY / "carrel.service").read_text(encoding="utf-8")
SCALE_TEXT = (DEPLOY / "scale" / "compose.yaml").read_text(encoding="utf-8")
SCALE: dict[str, Any] = yaml.safe_load(SCALE_TEXT)
CLUSTER_TEXT = (DEPLOY / "kubernetes" / "carrel.yaml").read_text(encoding="utf-8")
CLUSTER: list[dict[str, Any]] = list(yaml.safe_load_all(CLUSTER_TEXT))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OWN_VARIABLES = {"CARREL_GGUF", "CARREL_MODELS", "CARREL_FILES"}  # of compose.yaml alone
EXAMPLE = {"CARREL_NAME"}
DATA, CACHE = "CARREL_DATA", "CARREL_CACHE"


def copied() -> Iterator[str]:
    for line in DOCKERFILE.splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            yield from line.split()[1:-1]


def test_every_variable_is_a_setting() -> None:
    known = {variable_of(name) for name in FIELDS}
    compose = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    for text in (DOCKERFILE, compose, UNIT, SCALE_TEXT, CLUSTER_TEXT):
        assert set(re.findall(r"CARREL_\w+", text)) - known - OWN_VARIABLES - EXAMPLE == set()


def test_the_image_has_every_room_and_what_builds_it() -> None:
    rooms = {name.split(".")[0] for name in PROJECT["tool"]["setuptools"]["packages"]}
    files = {"pyproject.toml", "constraints.txt", "README.md", "LICENSE"}
    assert set(copied()) == rooms | {"examples"} | files
    assert all((ROOT / name).exists() for name in copied())
    taken = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {one[1:] for one in taken if one.startswith("!")} == set(copied())
    (extras,) = re.findall(r"ARG EXTRAS=(\S+)", DOCKERFILE)
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])


def test_commands_are_commands_of_the_program() -> None:
    started = re.findall(r'^CMD \["(\w+)"', DOCKERFILE, re.MULTILINE)
    started += re.findall(r"^ExecStart=/opt/carrel/bin/carrel (\w+)", UNIT, re.MULTILINE)
    started += re.findall(r"server (\w+)", (DEPLOY / "compose.yaml").read_text().split("name:")[0])
    assert started[:2] == ["serve", "serve"] and set(started) <= set(Commands.places)
    assert 'ENTRYPOINT ["carrel"]' in DOCKERFILE and "carrel" in PROJECT["project"]["scripts"]


def test_the_image_is_not_root_and_tells_its_health() -> None:
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    (uid,) = re.findall(r"^USER (\d+)$", last, re.MULTILINE)
    assert int(uid) > 0 and f"--uid {uid} " in last
    assert re.search(r"^HEALTHCHECK .*/api/v1/health", last, re.MULTILINE)
    (data,) = re.findall(rf"{DATA}=(\S+)", last)
    assert f"VOLUME {data}\n" in last
    assert COMPOSE["services"]["server"]["volumes"] == [f"data:{data}"]
    made = re.search(r"python -c \"([^\"]+)\"", last)
    assert made
    compile(made[1], "Dockerfile", "exec")


def test_services_are_confined_and_only_this_machine_reaches_them() -> None:
    services = COMPOSE["services"]
    assert set(services) == {"server", "llama", "redis"}
    for one in services.values():
        assert one["read_only"] and one["cap_drop"] == ["ALL"]
        assert all(port.startswith("127.0.0.1:") for port in one.get("ports", []))
    assert all(services[name]["profiles"] for name in ("llama", "redis"))
    place = COMPOSE["services"]["server"]["build"]
    assert (DEPLOY / place["context"] / place["dockerfile"]).is_file()


def test_servers_and_workers_of_one_catalogue_fit_together() -> None:
    services = SCALE["services"]
    parts = {"proxy", "server1", "server2", "worker", "postgres", "milvus", "redis", "llama"}
    assert set(services) == parts and services["worker"]["deploy"]["replicas"] == 3
    for one in services.values():
        assert set(one.get("depends_on", {})) <= parts
        assert all(port.startswith("127.0.0.1:") for port in one.get("ports", []))
        assert "no-new-privileges:true" in one["security_opt"]
        named = [volume.split(":")[0] for volume in one.get("volumes", [])]
        assert {name for name in named if name.isalpha()} <= set(SCALE["volumes"])
    for name in ("server1", "server2", "worker"):
        environment = services[name]["environment"]
        assert environment["CARREL_CATALOGUE"].startswith("postgresql://carrel@postgres/")
        place = services[name]["build"]
        where = DEPLOY / "scale" / place["context"] / place["dockerfile"]
        assert where.is_file()
        extras = set(place["args"]["EXTRAS"].split(","))
        assert extras <= set(PROJECT["project"]["optional-dependencies"])
        command = services[name].get("command", ["serve"])
        assert command[0] in Commands.places
    routed = SCALE["configs"]["caddyfile"]["content"]
    assert "server1:8400 server2:8400" in routed and "/api/v1/ready" in routed


def test_kubernetes_takes_the_manifests() -> None:
    """What the models of the API do not know, or lack, does not come back as it was."""
    client = pytest.importorskip("kubernetes.client")
    api = client.ApiClient()
    for one in CLUSTER:
        made = api.deserialize(json.dumps(one), f"V1{one['kind']}", "application/json")
        assert api.sanitize_for_serialization(made) == one, one["metadata"]["name"]
    deployments = [one["spec"] for one in CLUSTER if one["kind"] == "Deployment"]
    for spec in deployments:
        (container,) = spec["template"]["spec"]["containers"]
        assert container["args"][0] in Commands.places
        assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
        mounted = {one["name"] for one in container["volumeMounts"]}
        assert mounted == {one["name"] for one in spec["template"]["spec"]["volumes"]}
    probes = deployments[0]["template"]["spec"]["containers"][0]
    assert probes["readinessProbe"]["httpGet"]["path"] != probes["livenessProbe"]["httpGet"]["path"]


def test_the_unit_writes_where_systemd_makes_folders() -> None:
    found = dict(re.findall(r"(CARREL_\w+)=(\S+)", UNIT.partition("Environment=")[2]))
    assert found[DATA].startswith("/var/lib/carrel") and "StateDirectory=carrel" in UNIT
    assert found[CACHE].startswith("/var/cache/carrel") and "CacheDirectory=carrel" in UNIT


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
def test_systemd_takes_the_unit() -> None:
    command = ["systemd-analyze", "verify", str(DEPLOY / "carrel.service")]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [one for one in done.stderr.splitlines() if "is not executable" not in one]
    assert [one for one in lines if "carrel.service" in one] == []


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")
def test_a_shell_completes_commands(tmp_path: Any) -> None:
    program = tmp_path / "carrel"
    run = shlex.join([sys.executable, "-m", "carrel"])
    program.write_text(f'#!/bin/sh\nexec env PYTHONPATH={shlex.quote(str(ROOT))} {run} "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(carrel completion bash)"; COMP_WORDS=(carrel re); COMP_CWORD=1;'
        '_carrel_completion carrel; echo "${COMPREPLY[*]}"'
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    wanted = [name for name in Commands.places if name.startswith("re")]
    assert (done.stdout.split(), done.stderr) == (wanted, "")
