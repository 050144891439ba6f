"""Complaints: the first failure is told, and then one a second, with how many were not."""

import structlog
from structlog.testing import capture_logs

from queueber.client import Item
from queueber.clock import ManualClock
from queueber.worker.complaints import Complaints
from queueber.worker.holding import HeldLease, WorkItem


def item(number: int) -> WorkItem:
    return WorkItem(Item(bytes([number]) * 16, b"x", attempt=number), HeldLease(bytes(16), 1, 0.0))


def test_one_line_a_second_with_the_head_of_the_error_and_how_many_were_left_out() -> None:
    clock = ManualClock(1000)
    with capture_logs() as logs:
        complaints = Complaints(structlog.get_logger(), clock)
        complaints.note(item(1), "ValueError: no\n  File ...")
        complaints.note(item(2), "KeyError: 2")
        complaints.note(item(3), "KeyError: 3")
        clock.advance(1000)
        complaints.note(item(4), "KeyError: 4")

    assert [(log["id"], log["attempt"], log["error"]) for log in logs] == [
        ("01" * 16, 1, "ValueError: no"),
        ("04" * 16, 4, "KeyError: 4"),
    ]
    assert [log.get("others_since") for log in logs] == [None, 2]
