"""A server for all tests of the commands, and the commands themselves, in this process or not."""

import hashlib
import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest
import structlog
from click.testing import CliRunner

import queueber
from queueber.cli import program
from queueber.db.families import Family
from queueber.db.store.rocks import RocksStore
from queueber.testing import ServerProcess, running_server

ITEM_BYTES_MAX = 100_000


@dataclass(frozen=True)
class Outcome:
    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Cli:
    """`queueber` with the address of a server in its environment."""

    address: str = "127.0.0.1:1"
    environment: dict[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str, stdin: str | IO[bytes] = "") -> Outcome:
        """In this process, which is quick."""
        environment = {"QUEUEBER_ADDRESS": self.address, **self.environment}
        logging = structlog.get_config()
        try:
            result = CliRunner(env=environment).invoke(
                program, arguments, input=stdin, prog_name="queueber"
            )
        finally:
            structlog.configure(**logging)
        return Outcome(result.exit_code, result.stdout, result.stderr)

    def start(
        self,
        *arguments: str,
        stdin: int | IO[bytes] = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
    ) -> "subprocess.Popen[bytes]":
        """As a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "queueber", *arguments],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, "QUEUEBER_ADDRESS": self.address, **self.environment},
        )

    def run(self, *arguments: str, stdin: Path | None = None) -> Outcome:
        """As a process of its own, to its end."""
        with (stdin or Path(os.devnull)).open("rb") as opened:
            process = self.start(*arguments, stdin=opened)
            stdout, stderr = process.communicate(timeout=60)
        return Outcome(process.returncode, stdout.decode(), stderr.decode())


def read_terminal(terminal: int) -> bytes:
    """What is written to a terminal until everybody has closed it."""
    shown = b""
    while True:
        try:
            block = os.read(terminal, 65536)
        except OSError:  # how Linux reports the end
            block = b""
        if not block:
            os.close(terminal)
            return shown
        shown += block


def run_on_terminal(cli: Cli, *arguments: str, typed: bytes = b"") -> tuple[int, bytes, bytes]:
    """With stdin and stderr on a terminal: exit code, stdout, and what the terminal shows."""
    terminal, terminal_end = os.openpty()
    os.write(terminal, typed)
    process = cli.start(*arguments, stdin=terminal_end, stderr=terminal_end)
    os.close(terminal_end)
    shown = read_terminal(terminal)
    stdout, _ = process.communicate(timeout=30)
    return process.returncode, stdout, shown


def rows_of(shown: str) -> dict[str, str]:
    """A table of names and values, without its heading."""
    rows = (re.split(r" {2,}", line.strip()) for line in shown.splitlines()[1:])
    return {row[0]: row[-1] for row in rows}


def digests(data_dir: Path) -> dict[str, str]:
    """Of every file of a store: equal when nothing was changed."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in data_dir.iterdir()}


def change_store(data_dir: Path, family: Family, value: bytes | None) -> bytes:
    """Replace or delete the first entry of a family behind the engine's back; returns its key."""
    with RocksStore(data_dir) as store:
        key = store.scan(family, b"", b"\xff" * 64, 1)[0][0]
        batch = store.batch()
        if value is None:
            batch.delete(family, key)
        else:
            batch.put(family, key, value)
        store.write(batch)
        store.sync()
    return key


@pytest.fixture(scope="package", autouse=True)
def interrupts() -> Iterator[None]:
    """Let processes that we start hear SIGINT: a shell's background job would have it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="package")
def server() -> Iterator[ServerProcess]:
    with running_server("--item-bytes-max", str(ITEM_BYTES_MAX)) as started:
        yield started


@pytest.fixture(scope="package")
def cli(server: ServerProcess) -> Cli:
    return Cli(server.address)


@pytest.fixture(scope="package")
def client(server: ServerProcess) -> Iterator[queueber.Client]:
    with queueber.connect(server.address) as connected:
        yield connected


_numbers = itertools.count(1)


@pytest.fixture
def queue(client: queueber.Client) -> queueber.Queue:
    """A queue that no other test uses."""
    name = f"queue-{next(_numbers)}"
    client.create_queue(name)
    return client.queue(name)
