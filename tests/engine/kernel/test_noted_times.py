"""Times that the store notes, to within a slack."""

from collections.abc import Iterator
from random import Random

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS
from queueber.db.store.rocks import RocksStore
from queueber.engine.kernel.noted_times import NotedTime, NotedTimes
from queueber.engine.kernel.transaction import Kernel, Transaction
from queueber.ids import IdSource, QueueId
from queueber.limits import AGENDA_SLACK_MS
from tests.support.folders import quick_folder, remove_folder

NOW_MS = 1_000_000


class Noting:
    def __init__(self, store: RocksStore) -> None:
        self.store = store
        self.kernel = Kernel(store, IdSource(Random(1)))
        self.times = NotedTimes(store)

    def time_of(self, number: int) -> NotedTime:
        return NotedTime(self.times, self.store, QueueId(number), QueueId(7))

    def note(self, noted: NotedTime, at_ms: int, now_ms: int = NOW_MS) -> None:
        tx = Transaction(self.kernel, now_ms, None)
        noted.note(tx, at_ms)
        tx.commit()

    def entries(self) -> int:
        return len(self.store.scan(Family.AGENDA, b"", b"\xff", 100))


@pytest.fixture
def noting() -> Iterator[Noting]:
    folder = quick_folder()
    with RocksStore(folder / "data") as store:
        yield Noting(store)
    remove_folder(folder)


def test_a_time_is_noted_no_earlier_than_the_slack_allows(noting: Noting) -> None:
    soon, late = noting.time_of(1), noting.time_of(2)
    noting.note(soon, NOW_MS)
    noting.note(late, NOW_MS + 10 * AGENDA_SLACK_MS)

    assert soon.at_ms == NOW_MS + AGENDA_SLACK_MS
    assert late.at_ms == NOW_MS + 10 * AGENDA_SLACK_MS
    assert noting.times.next_ms(NOW_MS) == soon.at_ms


def test_only_an_earlier_time_is_written(noting: Noting) -> None:
    noted = noting.time_of(1)
    noting.note(noted, NOW_MS + 10 * AGENDA_SLACK_MS)
    before = noted.at_ms
    noting.note(noted, before + 1)
    assert noted.at_ms == before

    noting.note(noted, before - 1)

    assert noted.at_ms == before - 1
    assert noting.entries() == 2
    assert noting.time_of(1).at_ms == before - 1


def test_what_is_due_is_found_in_order_also_by_whoever_opens_the_store(noting: Noting) -> None:
    for number in (3, 1, 2):
        noting.note(noting.time_of(number), NOW_MS + (10 + number) * AGENDA_SLACK_MS)
    again = NotedTimes(noting.store)
    due_ms = NOW_MS + 12 * AGENDA_SLACK_MS

    for times in (noting.times, again):
        assert [number for _, number, _ in times.due(due_ms, 10)] == [1, 2]
        assert [number for _, number, _ in times.due(due_ms, 1)] == [1]
        assert {topic for _, _, topic in times.due(due_ms, 10)} == {7}


def test_nothing_is_due_once_all_is_cleared(noting: Noting) -> None:
    noted = [noting.time_of(number) for number in range(5)]
    for each in noted:
        noting.note(each, NOW_MS)
    tx = Transaction(noting.kernel, NOW_MS, None)
    for each in noted:
        each.clear(tx)
    tx.commit()

    assert noting.entries() == 0
    assert noting.times.next_ms(NOW_MS + 2 * AGENDA_SLACK_MS) == NEVER_MS
    noting.note(noted[0], NOW_MS + 5 * AGENDA_SLACK_MS)
    assert noting.times.next_ms(NOW_MS) == NOW_MS + 5 * AGENDA_SLACK_MS
