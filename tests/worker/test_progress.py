"""The failure log: the first failure is logged, then one a second with how many were skipped."""

import structlog
from structlog.testing import capture_logs

from queueber.client import Item
from queueber.clock import ManualClock
from queueber.worker.handlers.work_item import HeldLease, WorkItem
from queueber.worker.progress import FailureLog


def item(number: int) -> WorkItem:
    return WorkItem(Item(bytes([number]) * 16, b"x", attempt=number), HeldLease(bytes(16), 1, 0.0))


def test_one_line_a_second_with_the_head_of_the_error_and_how_many_were_left_out() -> None:
    clock = ManualClock(1000)
    with capture_logs() as logs:
        failures = FailureLog(structlog.get_logger(), "handler_failed", clock)
        failures.record(item(1), "ValueError: no\n  File ...")
        failures.record(item(2), "KeyError: 2")
        failures.record(item(3), "KeyError: 3")
        clock.advance(1000)
        failures.record(item(4), "KeyError: 4")

    assert {log["event"] for log in logs} == {"handler_failed"}
    assert [(log["id"], log["attempt"], log["error"]) for log in logs] == [
        ("01" * 16, 1, "ValueError: no"),
        ("04" * 16, 4, "KeyError: 4"),
    ]
    assert [log.get("skipped_since") for log in logs] == [None, 2]
