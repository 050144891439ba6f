"""A PostgreSQL of our own: Debian's package, a cluster in a scratch directory, gone afterwards.

It listens on a Unix socket alone, in a directory that only its own user and root can enter.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_USER = "postgres"
_START_SECONDS_MAX = 60.0
_STOP_SECONDS_MAX = 120.0
_POLICY = Path("/usr/sbin/policy-rc.d")

_SETTINGS = {
    # What a durable queue needs stays as it comes: fsync, synchronous_commit and full_page_writes
    # are on. The rest is what one sets for large loads, and favours PostgreSQL.
    "listen_addresses": "",
    "shared_buffers": "1GB",
    "max_wal_size": "32GB",  # no checkpoint in the middle of a load
    "min_wal_size": "16GB",  # files of the log are used again; see bench/spark_copy.py
    "checkpoint_timeout": "30min",
    "wal_buffers": "64MB",
    "maintenance_work_mem": "256MB",
    "autovacuum": "off",  # its share of the work would come later
    "logging_collector": "off",
}


def _binaries() -> Path | None:
    """The newest version's, which Debian keeps out of the path."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda file: int(file.parts[-3])
    )
    return found[-1].parent if found else None


def postgres_binaries() -> Path:
    """Where `initdb` and `postgres` are; installs Debian's package if need and rights be."""
    binaries = _binaries()
    if binaries is None:
        _install()
        binaries = _binaries()
    if binaries is None:
        raise SystemExit(
            "PostgreSQL is missing: install the package postgresql, or leave 'copy' out of "
            "--contenders"
        )
    return binaries


def _install() -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with _services_kept_down():
        for command in (
            ["apt-get", "-qq", "update"],
            ["apt-get", "-qq", "install", "-y", "--no-install-recommends", "postgresql"],
        ):
            done = subprocess.run(
                command, env=environment, check=False, capture_output=True, text=True
            )
            if done.returncode != 0:
                raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr.strip()}")


@contextlib.contextmanager
def _services_kept_down() -> Iterator[None]:
    """Let the package start no cluster: Debian asks this script before it starts a service."""
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink()


def postgres_version(binaries: Path) -> str:
    done = subprocess.run(
        [binaries / "postgres", "--version"], check=True, capture_output=True, text=True
    )
    return done.stdout.split()[2]


@contextlib.contextmanager
def running_postgres(binaries: Path, folder: Path) -> Iterator[str]:
    """A new cluster below `folder`, as the conninfo that reaches it."""
    folder = folder.resolve()
    # The path of a socket has at most 107 bytes, so it cannot be in just any folder.
    with tempfile.TemporaryDirectory(prefix="bench-") as socket_path:
        socket_dir = Path(socket_path)
        data_dir = folder / "postgres"
        data_dir.mkdir()
        user = _hand_over(data_dir, socket_dir)
        log_file = folder / "postgres.log"
        with log_file.open("wb") as log:

            def command(name: str, *arguments: str) -> "subprocess.Popen[bytes]":
                return subprocess.Popen(
                    [binaries / name, "-D", data_dir, *arguments],
                    cwd=data_dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    user=user, group=user, extra_groups=None if user is None else [],
                )  # fmt: skip

            made = command(
                "initdb", "--username", _USER, "--auth", "trust", "--encoding", "UTF8",
                "--wal-segsize", "64",
            )  # fmt: skip
            if made.wait() != 0:
                raise SystemExit(f"initdb failed:\n{log_file.read_text()}")
            options = {**_SETTINGS, "unix_socket_directories": str(socket_dir)}
            server = command("postgres", *(f"--{name}={value}" for name, value in options.items()))
            try:
                _wait_until_ready(binaries, socket_dir, server, log_file)
                yield f"host={socket_dir} user={_USER} dbname=postgres"
            finally:
                _stop(server)


def _hand_over(*folders: Path) -> str | None:
    """Root may not run PostgreSQL, so the package's user gets the folders and runs it."""
    if os.geteuid() != 0:
        return None
    owner = pwd.getpwnam(_USER)
    for folder in folders:
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        folder.chmod(0o700)
        # Our own scratch directory is closed to others; passing through is enough.
        scratch = folder.parent
        if scratch.stat().st_uid == 0 and scratch.stat().st_mode & 0o777 == 0o700:
            scratch.chmod(0o711)
        test = ["setpriv", f"--reuid={_USER}", "--clear-groups", "test", "-w", str(folder)]
        if subprocess.run(test, check=False).returncode != 0:
            raise SystemExit(f"the user {_USER} cannot reach {folder}; choose another --dir")
    return _USER


def _wait_until_ready(
    binaries: Path, socket_dir: Path, server: "subprocess.Popen[bytes]", log_file: Path
) -> None:
    give_up_at = time.monotonic() + _START_SECONDS_MAX
    ask = [str(binaries / "pg_isready"), "--quiet", "--host", str(socket_dir)]
    while subprocess.run(ask, check=False).returncode != 0:
        if server.poll() is not None or time.monotonic() > give_up_at:
            raise SystemExit(f"PostgreSQL did not start:\n{log_file.read_text()}")
        time.sleep(0.05)


def _stop(server: "subprocess.Popen[bytes]") -> None:
    """Nothing that it holds is wanted any more, so it need not write it out first."""
    if server.poll() is None:
        server.send_signal(signal.SIGQUIT)
        server.wait(_STOP_SECONDS_MAX)
