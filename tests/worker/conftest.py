"""One server for all tests of workers; each test has a queue of its own."""

import contextlib
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

import queueber
from queueber.testing import ServerProcess, running_server
from queueber.worker.worker_settings import Until

WAIT_SECONDS = 30.0


@pytest.fixture(scope="package")
def server() -> Iterator[ServerProcess]:
    with running_server("--message-bytes-max", "65536", "--item-bytes-max", "10000") as running:
        yield running


@pytest.fixture(scope="package")
def client(server: ServerProcess) -> Iterator[queueber.Client]:
    with queueber.connect(server.address) as connected:
        yield connected


_numbers = itertools.count(1)


@pytest.fixture
def queue(client: queueber.Client) -> queueber.Queue:
    """A queue where what failed is a dead letter at once."""
    name = f"work-{next(_numbers)}"
    client.create_queue(name, attempts_max=1)
    return client.queue(name)


@pytest.fixture
def patient_queue(client: queueber.Client) -> queueber.Queue:
    """A queue where what failed is ready again at once."""
    name = f"work-{next(_numbers)}"
    client.create_queue(name, backoff=[0])
    return client.queue(name)


@contextlib.contextmanager
def running(
    worker: queueber.Worker, *, until: Until | None = None
) -> Iterator["Future[queueber.WorkerStats]"]:
    """The worker in a thread of its own, stopped at the end; the future has what it returned."""
    outcome: Future[queueber.WorkerStats] = Future()

    def run() -> None:
        try:
            outcome.set_result(worker.run(until=until))
        except BaseException as error:  # noqa: BLE001  whoever asks for the result gets it
            outcome.set_exception(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield outcome
    finally:
        worker.stop()
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()


def results_of(queue: queueber.Queue) -> dict[bytes, bytes]:
    """The result of each item that was completed."""
    return {result.id: result.result for result in queue.results()}


def left_in(queue: queueber.Queue) -> int:
    stats = queue.stats()
    return stats.ready + stats.delayed + stats.leased


def last_error_of(queue: queueber.Queue) -> str:
    """Of the only dead letter."""
    (dead,) = queue.peek(queueber.ItemState.DEAD).items
    return dead.last_error
