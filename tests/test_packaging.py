"""The package: all of the tree is in it, and it works where nothing else is installed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXTRAS = {"http", "auth", "otel", "spark", "backup", "jobs", "celery"}
PACKAGES = ("queueber", "queueber_kombu", "queueber_pytest")
"""The last two are what kombu and pytest load to know of Queueber."""


def run(*command: str, folder: Path) -> str:
    """What a command prints, in an environment that knows nothing of this checkout."""
    environment = {name: each for name, each in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False,
        timeout=240,
    )  # fmt: skip
    if "Could not find a version" in ended.stderr or "Temporary failure" in ended.stderr:
        pytest.skip("packages cannot be fetched: there is no package index")
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: setuptools leaves files beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet")
    run(*pip, "--no-deps", "--wheel-dir", str(folder), str(source), folder=folder)
    (made,) = folder.glob("queueber-*.whl")
    return made


def test_extras_are_those_that_are_promised() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert set(project["optional-dependencies"]) >= EXTRAS


@pytest.mark.slow
def test_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    in_tree = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert in_tree - packed == set()
    assert packed - in_tree == set()


@pytest.mark.slow
def test_installed_package_serves_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    # Without a pip of its own, and without bytecode: that takes half of the time.
    run(sys.executable, "-m", "venv", "--without-pip", "env", folder=tmp_path)
    bin_folder = tmp_path / "env" / "bin"
    pip = (
        sys.executable, "-m", "pip", "--disable-pip-version-check",
        "--python", str(bin_folder / "python"),
    )  # fmt: skip
    constraints = ("--constraint", str(ROOT / "constraints.txt"))
    run(*pip, "install", "--quiet", "--no-compile", *constraints, str(wheel), folder=tmp_path)
    queueber = str(bin_folder / "queueber")
    address_file = tmp_path / "address"
    server = subprocess.Popen(
        [
            queueber, "serve", "--data-dir", "data", "--listen", "127.0.0.1:0",
            "--address-file", str(address_file), "--log-format", "json",
        ],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={name: each for name, each in os.environ.items() if name != "PYTHONPATH"},
    )  # fmt: skip
    try:
        give_up_at = time.monotonic() + 30
        while not (address_file.is_file() and address_file.read_text()):
            assert server.poll() is None, server.communicate()
            assert time.monotonic() < give_up_at
            time.sleep(0.05)
        address = ("--address", address_file.read_text())
        run(queueber, "add", "do this", *address, folder=tmp_path)
        polled = run(queueber, "poll", "--json", *address, folder=tmp_path)
        backed_up = run(queueber, "backup", "backups", *address, folder=tmp_path)
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=30)

    assert '"contents": "do this"' in polled
    assert re.search(r"1 queue, 1 item, 0 topics", backed_up)
    assert server.returncode == 0
    listed = run(*pip, "list", "--format", "json", folder=tmp_path)
    installed = {each["name"].lower() for each in json.loads(listed)}
    assert not installed & {"pyspark", "pyarrow", "starlette", "obstore", "pyjwt", "pytest"}
    for needs, arguments in {
        "backup": ("backup", "s3://bucket/x"),
        "http": ("gateway", "--http", "127.0.0.1:0"),
    }.items():
        refused = subprocess.run(
            [queueber, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False,
            timeout=60, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        )  # fmt: skip
        assert refused.returncode in {2, 5}
        assert f"queueber[{needs}]" in refused.stderr
        assert "Traceback" not in refused.stderr
