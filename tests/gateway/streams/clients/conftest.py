"""A server whose gateway serves streams: one for a file, and one to kill for each test."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.stream_server import StreamServer, running_stream_server

CONFORMANCE = Path(__file__).parents[4] / "conformance"
SECONDS_MAX = 28.0
"""Of a run of the TypeScript client."""

_numbers = count()


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamServer]:
    with running_stream_server(tmp_path_factory.mktemp("streams")) as running:
        yield running


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[StreamServer]:
    """A server of this test alone, which kills it."""
    with running_stream_server(tmp_path) as running:
        yield running


@pytest.fixture
def path() -> str:
    """The path of a stream that no other test has."""
    return f"clients/{next(_numbers)}"


@pytest.fixture
def node() -> Callable[..., "subprocess.Popen[str]"]:
    """Starts a command of `conformance/client.mjs`; skips where node or the client is missing."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("there is no node; install node 20 or later")
    if not (CONFORMANCE / "node_modules" / "@durable-streams" / "client").is_dir():
        pytest.skip("the TypeScript client is not installed; run: make conformance")

    def started(*arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [program, "client.mjs", *arguments],
            cwd=CONFORMANCE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    return started
