"""Builds servers that Queueber is compared with, if Debian's is too old and Go is at hand.

A program is built once and kept below `.bench`. Go fetches it by its name, and from wherever the
user's settings say.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from bench.peers.peer import Unavailable

PROGRAMS = Path(__file__).parents[2] / ".bench" / "programs"
_GO_PATH = "/usr/local/go/bin"
"""Where Go's own installation is; a user's PATH may lack it."""
_BUILD_SECONDS_MAX = 300.0
_REASON_CHARACTERS_MAX = 300


def built_program(name: str, version: str) -> Path | None:
    """The path of a program that was built before."""
    path = _path(name, version)
    return path if path.is_file() else None


def find_or_build(name: str, module: str, version: str) -> Path:
    """The path of a program, which is built if it was not yet; raises `Unavailable`."""
    return built_program(name, version) or _build(name, module, version)


def _path(name: str, version: str) -> Path:
    return PROGRAMS / f"{name}-{version}"


def _build(name: str, module: str, version: str) -> Path:
    go = shutil.which("go", path=f"{os.environ.get('PATH', os.defpath)}:{_GO_PATH}")
    if go is None:
        raise Unavailable(f"{name} {version} has to be built, and Go is missing")
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PROGRAMS) as folder:
        environment = {**os.environ, "GOBIN": folder, "CGO_ENABLED": "0"}
        try:
            subprocess.run(
                [go, "install", f"{module}@{version}"],
                env=environment, check=True, capture_output=True, text=True,
                timeout=_BUILD_SECONDS_MAX,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Unavailable(
                f"{name} {version} was not built in {_BUILD_SECONDS_MAX:.0f} s"
            ) from None
        except subprocess.CalledProcessError as error:
            # Go tells what it downloads line by line, and the error last.
            reason = (error.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise Unavailable(
                f"Go could not build {name} {version} ({reason[:_REASON_CHARACTERS_MAX]})"
            ) from None
        return (Path(folder) / name).rename(_path(name, version))
