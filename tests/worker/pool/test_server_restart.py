"""A server that goes away and comes back: workers go on, and nothing is lost."""

import threading
import time

import pytest
import structlog

import queueber
from queueber.testing import ServerProcess, running_server
from tests.worker.conftest import WAIT_SECONDS, results_of, running

ITEMS = 3000
LEASE_SECONDS = 2.0
"""What was on its way to a worker as the server died comes back so soon."""


class Crash:
    """Kills the server once a handler has seen `after` items, and starts it again."""

    def __init__(self, server: ServerProcess, after: int) -> None:
        self._server = server
        self._left = after
        self._lock = threading.Lock()
        self.is_due = threading.Event()

    def count(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self.is_due.set()

    def happen(self) -> None:
        assert self.is_due.wait(WAIT_SECONDS)
        self._server.kill()
        self._server.start()


@pytest.mark.recovery
def test_a_crash_of_the_server_in_the_middle_loses_nothing() -> None:
    with running_server() as server, queueber.connect(server.address, retry_timeout=60) as client:
        queue = client.queue("restart")
        ids = queue.add([b"%d" % number for number in range(ITEMS)])
        crashes = [Crash(server, ITEMS // 4), Crash(server, ITEMS // 2)]

        def handle(item: queueber.WorkItem) -> bytes:
            for crash in crashes:
                crash.count()
            return item.contents

        worker = queueber.Worker(
            server.address, queue=queue.name, handler=handle, lease=LEASE_SECONDS, progress=False
        )
        with running(worker) as outcome:
            for crash in crashes:
                crash.happen()
            while queue.stats().completed_total < ITEMS:
                time.sleep(0.01)
            worker.stop()
            stats = outcome.result(WAIT_SECONDS)

        assert results_of(queue) == {ids[n]: b"%d" % n for n in range(ITEMS)}
        assert stats.done + stats.unknown + stats.refused >= ITEMS
        assert stats.failed == 0


@pytest.mark.recovery
def test_a_handler_that_outlives_a_restart_of_the_server_completes_its_item() -> None:
    with running_server() as server, queueber.connect(server.address, retry_timeout=60) as client:
        queue = client.queue("restart")
        (item_id,) = queue.add(b"long")
        began, go = threading.Event(), threading.Event()

        def handle(_: queueber.WorkItem) -> bytes:
            began.set()
            go.wait(WAIT_SECONDS)
            return b"done"

        worker = queueber.Worker(server.address, queue=queue.name, handler=handle, progress=False)
        with structlog.testing.capture_logs() as logs, running(worker) as outcome:
            assert began.wait(WAIT_SECONDS)
            server.kill()
            while worker.stats().disconnected == 0:
                time.sleep(0.01)
            server.start()
            while worker.stats().disconnected == 1:
                time.sleep(0.01)
            go.set()
            while queue.stats().completed_total == 0:
                time.sleep(0.01)
            worker.stop()
            stats = outcome.result(WAIT_SECONDS)

        assert results_of(queue) == {item_id: b"done"}
        assert (stats.done, stats.refused) == (1, 0)
        assert [log["event"] for log in logs] == ["server_unreachable", "server_reachable"]


def test_a_server_that_is_not_there_at_the_start_is_an_error() -> None:
    worker = queueber.Worker(
        "127.0.0.1:1", handler=lambda _: None, connect_timeout=0, progress=False
    )

    with pytest.raises(queueber.Unavailable, match="queueber serve"):
        worker.run()


def test_stop_is_heard_while_the_server_is_not_there() -> None:
    worker = queueber.Worker(
        "127.0.0.1:1", handler=lambda _: None, connect_timeout=60, progress=False
    )

    with running(worker) as outcome:
        worker.stop()
        assert outcome.result(WAIT_SECONDS).done == 0
