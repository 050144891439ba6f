"""A server for the tests of Celery, and workers."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("celery")

from queueber.testing import ServerProcess, running_server

ROOT = Path(__file__).parent.parent.parent
STOP_SECONDS_MAX = 30.0


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server() as started:
        yield started


@pytest.fixture(scope="module")
def project(server: ServerProcess) -> Iterator[Any]:
    """The project of `tasks.py`, as a program that calls its tasks has it."""
    from tests.celery import tasks

    url = f"queueber://{server.address}"
    tasks.app.conf.update(broker_url=url, result_backend=url)
    yield tasks
    tasks.app.close()
    tasks.app.backend.close()


Worker = subprocess.Popen[bytes]
StartWorker = Callable[..., Worker]


def end(worker: Worker, number: int) -> int:
    """Send a signal to a worker and its pool, and wait for it."""
    if number == signal.SIGKILL:
        os.killpg(worker.pid, number)
    else:
        worker.send_signal(number)
    return worker.wait(STOP_SECONDS_MAX)


@contextmanager
def a_worker(
    server: ServerProcess,
    log: Path,
    *options: str,
    project: str = "tests.celery.tasks",
    folder: Path = ROOT,
) -> Iterator[Worker]:
    command = [sys.executable, "-m", "celery", "-A", project, "worker"]
    with log.open("ab") as output:
        worker = subprocess.Popen(
            [*command, "-l", "INFO", *options],
            cwd=folder,
            env={**os.environ, "TASKS_ADDRESS": server.address},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # so that it can be killed with its pool
        )
    try:
        yield worker
    finally:
        if worker.poll() is None:
            end(worker, signal.SIGKILL)


@pytest.fixture
def start_worker(server: ServerProcess, tmp_path: Path) -> Iterator[StartWorker]:
    with ExitStack() as stack:
        yield lambda *options: stack.enter_context(
            a_worker(server, tmp_path / "worker.log", *options)
        )
