"""Installs the programs that Queueber is compared with, from Debian packages without services."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

_POLICY = Path("/usr/sbin/policy-rc.d")
_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where Debian installs servers; a user's PATH may lack it."""


def find_program(name: str, *, title: str, package: str, otherwise: str) -> str:
    """The path of a program; installs its package if it is missing and the user may."""
    path = f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM_PATH}"
    found = shutil.which(name, path=path)
    if found is None:
        install([package], title=title, otherwise=otherwise)
        found = shutil.which(name, path=path)
    if found is None:
        raise SystemExit(f"{title} is missing: its package {package} has no {name}")
    return found


def install(packages: Sequence[str], *, title: str, otherwise: str) -> None:
    """Install those of the packages that are missing, without starting their services.

    Without the rights, ends with a message: what is missing, and what to do `otherwise`.
    """
    missing = [package for package in packages if not is_installed(package)]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        noun = "package" if len(missing) == 1 else "packages"
        listed = ", ".join(missing)
        raise SystemExit(f"{title} is missing: install the {noun} {listed}, or {otherwise}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with _services_kept_down():
        for command in (
            ["apt-get", "-qq", "update"],
            ["apt-get", "-qq", "install", "-y", "--no-install-recommends", *missing],
        ):
            done = subprocess.run(
                command, env=environment, check=False, capture_output=True, text=True
            )
            if done.returncode != 0:
                raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr.strip()}")


def is_installed(package: str) -> bool:
    if shutil.which("dpkg-query") is None:
        return False
    ask = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package]
    return subprocess.run(ask, check=False, capture_output=True).stdout == b"installed"


@contextlib.contextmanager
def _services_kept_down() -> Iterator[None]:
    """Keep packages from starting services: Debian runs this script before it starts one."""
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink()
