"""Reports about the items of a lease."""

from queueber.client.leased import Item
from queueber.limits import ERROR_BYTES_MAX
from queueber.worker.pool.lease_reports import Completion, Failure, LeaseReport, Release
from queueber.worker.work_item import HeldLease, WorkItem

LEASE = HeldLease(b"l" * 16, 3, 0.0)
ITEMS = [WorkItem(Item(bytes([number]) * 16, b"x"), LEASE) for number in range(3)]


def test_an_error_is_truncated_whoever_wrote_it() -> None:
    report = Failure(LEASE, None)

    report.add(ITEMS[0], "ü" * ERROR_BYTES_MAX)

    assert ERROR_BYTES_MAX - 1 <= len(report.errors[0].encode()) <= ERROR_BYTES_MAX


def test_the_halves_of_a_report_have_all_that_it_has() -> None:
    completion, failure, release = Completion(LEASE), Failure(LEASE, 5.0), Release(LEASE)
    for number, item in enumerate(ITEMS):
        completion.add(item, b"%d" % number)
        failure.add(item, str(number))
        release.add(item)
    reports: list[LeaseReport] = [completion, failure, release]

    for report in reports:
        report.is_repeated = True
        halves = report.halves()
        assert [half.items for half in halves] == [[ITEMS[0], ITEMS[2]], [ITEMS[1]]]
        assert all(half.is_repeated and half.lease is LEASE for half in halves)
    assert [half.results for half in map(as_completion, completion.halves())] == [
        [b"0", b"2"],
        [b"1"],
    ]
    assert [(half.errors, half.delay) for half in map(as_failure, failure.halves())] == [
        (["0", "2"], 5.0),
        (["1"], 5.0),
    ]


def as_completion(report: LeaseReport) -> Completion:
    assert isinstance(report, Completion)
    return report


def as_failure(report: LeaseReport) -> Failure:
    assert isinstance(report, Failure)
    return report
