"""The failure log: one line a second for each type of error, with how many were skipped."""

import structlog
from structlog.testing import capture_logs

from queueber.client import Item
from queueber.clock import ManualClock
from queueber.worker.handlers.work_item import HeldLease, WorkItem
from queueber.worker.pool.failure_log import FailureLog


def item(number: int) -> WorkItem:
    return WorkItem(Item(bytes([number]) * 16, b"x", attempt=number), HeldLease(bytes(16), 1, 0.0))


def test_one_line_a_second_of_each_type_of_error_and_how_many_were_left_out() -> None:
    clock = ManualClock(1000)
    with capture_logs() as logs:
        failures = FailureLog(structlog.get_logger(), "handler_failed", clock)
        failures.record(item(1), "ValueError: no\n  File ...")
        failures.record(item(2), "KeyError: 2")
        failures.record(item(3), "KeyError: 3")
        failures.record(item(4), "KeyError: 4")
        clock.advance(1000)
        failures.record(item(5), "KeyError: 5")
        failures.record(item(6), "ValueError: no")

    assert {log["event"] for log in logs} == {"handler_failed"}
    assert [(log["id"], log["attempt"], log["error"]) for log in logs] == [
        ("01" * 16, 1, "ValueError: no"),
        ("02" * 16, 2, "KeyError: 2"),
        ("05" * 16, 5, "KeyError: 5"),
        ("06" * 16, 6, "ValueError: no"),
    ]
    assert [log.get("skipped_since") for log in logs] == [None, None, 2, None]
    assert logs[0]["exception"] == "ValueError: no\n  File ..."


def test_the_last_of_a_burst_is_logged_when_its_second_is_over_or_at_the_end() -> None:
    clock = ManualClock(1000)
    with capture_logs() as logs:
        failures = FailureLog(structlog.get_logger(), "handler_failed", clock)
        for number in range(1, 5):
            failures.record(item(number), f"KeyError: {number}")
        failures.flush()
        assert len(logs) == 1
        clock.advance(1000)
        failures.flush()
        failures.flush()
        failures.record(item(5), "KeyError: 5")
        failures.flush(is_end=True)

    assert [(log["error"], log.get("skipped_since")) for log in logs] == [
        ("KeyError: 1", None),
        ("KeyError: 4", 2),
        ("KeyError: 5", None),
    ]


def test_what_would_move_the_cursor_is_escaped_and_long_lines_are_cut() -> None:
    with capture_logs() as logs:
        failures = FailureLog(structlog.get_logger(), "handler_failed", ManualClock(1000))
        failures.record(item(1), "ValueError: \x1b[31m\r\x85\udc80é\n  File\x1b[0m")
        failures.record(item(2), "KeyError: " + "x" * 10_000)

    assert logs[0]["error"] == r"ValueError: \x1b[31m\r\x85\udc80é"
    assert logs[0]["exception"] == logs[0]["error"] + "\n  File\\x1b[0m"
    assert len(logs[1]["error"]) == 400


def test_types_of_errors_that_are_told_apart_are_bounded() -> None:
    with capture_logs() as logs:
        failures = FailureLog(structlog.get_logger(), "handler_failed", ManualClock(1000))
        for number in range(300):
            failures.record(item(1), f"Error{number}: no")

    assert len(logs) == 101
