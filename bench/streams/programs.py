"""Servers that npm and cargo install: once, below `.bench`, in the version that is named here."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.peers.go_programs import PROGRAMS
from bench.peers.peer import Unavailable

_INSTALL_SECONDS_MAX = 600.0
"""The Rust server is built in two minutes of one core."""
_CARGO_PATH = Path.home() / ".cargo" / "bin"
"""Where Rust's own installation is; a user's PATH may lack it."""
_REASON_CHARACTERS_MAX = 300


def npm_folder(name: str, packages: Sequence[str]) -> Path:
    """The directory with `node_modules`; installs the packages if they are not there yet."""

    def command(folder: Path) -> list[str]:
        return [
            _tool("npm", name), "install", "--prefix", str(folder), "--no-audit", "--no-fund",
            "--ignore-scripts", "--save-exact", *packages,
        ]  # fmt: skip

    return _installed(name, command, {})


def cargo_folder(name: str, crate: str, version: str) -> Path:
    """The directory with `bin`; builds the crate if it is not there yet.

    Without optimisation at link time, which takes longer than all the rest of the build.
    """

    def command(folder: Path) -> list[str]:
        return [
            _tool("cargo", name), "install", "--locked", "--root", str(folder),
            "--target-dir", str(folder / "target"), "--version", version, crate,
        ]  # fmt: skip

    return _installed(name, command, {"CARGO_PROFILE_RELEASE_LTO": "off"})


def is_here(name: str) -> bool:
    return (PROGRAMS / name).is_dir()


def _tool(tool: str, name: str) -> str:
    path = f"{os.environ.get('PATH', os.defpath)}:{_CARGO_PATH}"
    found = shutil.which(tool, path=path)
    if found is None:
        raise Unavailable(f"{name} is installed with {tool}, which is missing")
    return found


def _installed(
    name: str, command: Callable[[Path], Sequence[str]], settings: Mapping[str, str]
) -> Path:
    if is_here(name):
        return PROGRAMS / name
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PROGRAMS) as path:
        folder = Path(path) / "made"
        folder.mkdir()
        _run(name, command(folder), {**os.environ, **settings})
        shutil.rmtree(folder / "target", ignore_errors=True)
        return folder.rename(PROGRAMS / name)


def _run(name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
    tool = Path(command[0]).name
    try:
        subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True,
            timeout=_INSTALL_SECONDS_MAX,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{name} was not installed in {_INSTALL_SECONDS_MAX:.0f} s") from None
    except subprocess.CalledProcessError as error:
        # Both tools tell line by line what they do, and the reason last.
        lines = error.stderr.strip().splitlines() or ["no reason given"]
        reason = lines[-1][:_REASON_CHARACTERS_MAX]
        raise Unavailable(f"{tool} could not install {name} ({reason})") from None
