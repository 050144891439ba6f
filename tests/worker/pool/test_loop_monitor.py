"""A loop that a coroutine blocks: it is named, and so is its end."""

import time

import pytest
import structlog

import queueber
from queueber.testing import ServerProcess
from queueber.worker.pool import loop_monitor


def test_a_loop_that_is_blocked_is_named_with_the_line_that_blocks_it(
    server: ServerProcess, queue: queueber.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_monitor, "BLOCKED_SECONDS", 0.05)
    monkeypatch.setattr(loop_monitor, "_CHECK_SECONDS", 0.01)
    queue.add(b"x")

    async def blocks(_: queueber.WorkItem) -> None:
        time.sleep(1)  # noqa: ASYNC251  it is what the test is about

    with structlog.testing.capture_logs() as logs:
        queueber.Worker(server.address, queue=queue.name, handler=blocks, progress=False).run(
            until="empty"
        )

    (blocked,) = [log for log in logs if log["event"] == "event_loop_blocked"]
    assert blocked["where"].startswith(f"{__file__}:")
    assert blocked["where"].partition(" < ")[0].endswith(" in blocks")
    assert "plain function" in blocked["action"]
    (free,) = [log for log in logs if log["event"] == "event_loop_free"]
    assert free["seconds"] >= blocked["seconds"]
