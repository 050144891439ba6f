"""A private PostgreSQL: Debian's package, with a cluster in a temporary directory.

It listens only on a Unix socket, in a directory that only its own user and root can enter.
"""

import contextlib
import os
import pwd
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.debian import install

_USER = "postgres"
_START_SECONDS_MAX = 60.0
_STOP_SECONDS_MAX = 30.0

_FOR_LOADS = {
    # What a durable queue needs stays as it comes: fsync, synchronous_commit and full_page_writes
    # are on. The rest is what one sets for large loads, and favours PostgreSQL.
    "shared_buffers": "1GB",
    "max_wal_size": "32GB",  # no checkpoint in the middle of a load
    "min_wal_size": "16GB",  # files of the log are used again; see bench/spark_copy.py
    "checkpoint_timeout": "30min",
    "wal_buffers": "64MB",
    "maintenance_work_mem": "256MB",
    "autovacuum": "off",  # its share of the work would come later
}


def _binaries() -> Path | None:
    """The programs of the newest version, which are not in Debian's PATH."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda file: int(file.parts[-3])
    )
    return found[-1].parent if found else None


def postgres_binaries(otherwise: str = "leave 'copy' out of --contenders") -> Path:
    """The directory of `initdb` and `postgres`; installs Debian's package if it is missing."""
    binaries = _binaries()
    if binaries is None:
        install(["postgresql"], title="PostgreSQL", otherwise=otherwise)
        binaries = _binaries()
    if binaries is None:
        raise SystemExit("PostgreSQL is missing: its package postgresql has no initdb")
    return binaries


def postgres_version(binaries: Path) -> str:
    done = subprocess.run(
        [binaries / "postgres", "--version"], check=True, capture_output=True, text=True
    )
    return done.stdout.split()[2]


@contextlib.contextmanager
def running_postgres(
    binaries: Path, folder: Path, settings: Mapping[str, str] = _FOR_LOADS
) -> Iterator[str]:
    """Start a new cluster below `folder`; yields its conninfo."""
    folder = folder.resolve()
    # The path of a socket has at most 107 bytes, so it cannot be in any folder.
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
            options = {
                **settings, "listen_addresses": "", "logging_collector": "off",
                "unix_socket_directories": str(socket_dir),
            }  # fmt: skip
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
        # Other users cannot enter our temporary directory; let this one pass through.
        for above in folder.parents:
            if above.stat().st_uid == 0 and above.stat().st_mode & 0o777 == 0o700:
                above.chmod(0o711)
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
    """Stop it at once: its data is not needed any more."""
    if server.poll() is None:
        server.send_signal(signal.SIGQUIT)
        try:
            server.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            server.kill()  # its other processes then end as well
            server.wait()
