"""Reports about the items of a lease."""

from queueber.client import Item
from queueber.limits import ERROR_BYTES_MAX
from queueber.worker.handlers.work_item import Failed, HeldLease, Unfinished, WorkItem
from queueber.worker.pool.reporter import reports_of

LEASE, OTHER = HeldLease(b"l" * 16, 3, 0.0), HeldLease(b"m" * 16, 3, 0.0)
ITEMS = [WorkItem(Item(bytes([number]) * 16, b"x"), LEASE) for number in range(5)]
OTHER_ITEM = WorkItem(Item(b"o" * 16, b"x"), OTHER)


def test_outcomes_of_one_lease_that_ended_alike_are_one_report() -> None:
    reports = reports_of(
        [
            (ITEMS[0], b"first"),
            (ITEMS[1], Failed("no", 5.0)),
            (OTHER_ITEM, b"other"),
            (ITEMS[2], b"second"),
            (ITEMS[3], Failed("no")),
            (ITEMS[4], Unfinished.CANCELLED),
        ]
    )

    assert [(each.lease, each.ending, each.delay, each.items) for each in reports] == [
        (LEASE, "completed", None, [ITEMS[0], ITEMS[2]]),
        (OTHER, "completed", None, [OTHER_ITEM]),
        (LEASE, "failed", 5.0, [ITEMS[1]]),
        (LEASE, "failed", None, [ITEMS[3]]),
        (LEASE, "released", None, [ITEMS[4]]),
    ]


def test_an_error_is_truncated_whoever_wrote_it() -> None:
    (report,) = reports_of([(ITEMS[0], Failed("ü" * ERROR_BYTES_MAX))])

    (error,) = report.payloads
    assert ERROR_BYTES_MAX - 1 <= len(error.encode()) <= ERROR_BYTES_MAX


def test_the_halves_of_a_report_have_all_that_it_has() -> None:
    (report,) = reports_of((item, Failed(str(at), 5.0)) for at, item in enumerate(ITEMS))
    report.is_repeated = True

    halves = report.halves()

    assert [half.items for half in halves] == [ITEMS[::2], ITEMS[1::2]]
    assert [half.payloads for half in halves] == [["0", "2", "4"], ["1", "3"]]
    for half in halves:
        assert (half.lease, half.ending, half.delay) == (LEASE, "failed", 5.0)
        assert half.is_repeated
