"""The log: rows go in once and come out in order; readers go forward only."""

from collections.abc import Iterator
from random import Random

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import queue_prefix
from queueber.db.records.log import LogHead, block_key
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from queueber.engine import log as log_module
from queueber.engine.kernel.transaction import Kernel, Transaction
from queueber.engine.log import Log, LogSlice, open_log, read, reader_offset
from queueber.errors import (
    InvalidArgument,
    InvariantViolation,
    ResourceExhausted,
    StorageCorrupt,
)
from queueber.ids import IdSource
from queueber.limits import LOG_READERS_MAX
from tests.support.folders import quick_folder, remove_folder
from tests.support.log_model import LARGE, append_rows
from tests.support.operations import acknowledge, drop_reader

log_numbers = iter(range(1, 1_000_000))


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    folder = quick_folder()
    with RocksStore(folder / "data") as opened:
        yield opened
    remove_folder(folder)


@pytest.fixture
def log(store: Store) -> Log:
    return open_log(store, queue_prefix(next(log_numbers)))


def every_row(store: Store, log: Log) -> list[bytes]:
    return read(store, log, 0, rows_max=LARGE, bytes_max=LARGE).rows


# --- rows -----------------------------------------------------------------------------------------


def test_log_that_was_never_written_is_empty_and_has_no_record(store: Store, log: Log) -> None:
    assert (log.head, log.readers) == (LogHead(), {})
    assert read(store, log, 0, rows_max=1, bytes_max=1) == LogSlice(0, [], [], 0, 0)
    assert store.get(Family.LOGS, log.prefix) is None


def test_append_of_no_rows_writes_nothing(store: Store, log: Log) -> None:
    append_rows(store, log, [], 5)

    assert log.head == LogHead()
    assert store.get(Family.LOGS, log.prefix) is None


def test_append_is_one_block_under_the_offset_of_its_last_row(store: Store, log: Log) -> None:
    append_rows(store, log, [b"a", b"bb", b""], 5)

    assert store.get(Family.LOG_BLOCKS, block_key(log.prefix, 2)) is not None
    assert log.head == LogHead(0, 3, 0, 3 + 3 * 4, 5, 5, 3, 3 + 3 * 4)


def test_append_changes_nothing_before_its_batch_is_written(store: Store, log: Log) -> None:
    tx = Transaction(Kernel(store, IdSource(Random(0))), 5, None)

    log_module.append(tx, log, [b"a"])

    assert (log.head, open_log(store, log.prefix).head) == (LogHead(), LogHead())
    assert log.head_in(tx).next_offset == 1


@pytest.mark.parametrize("offset", [-1, 3, 1 << 63])
def test_read_and_acknowledge_beyond_the_end_are_refused(
    store: Store, log: Log, offset: int
) -> None:
    append_rows(store, log, [b"a", b"b"])

    with pytest.raises(InvalidArgument, match=f"offset is {offset}; the limit is 2"):
        read(store, log, offset, rows_max=1, bytes_max=1)
    with pytest.raises(InvalidArgument, match=f"offset is {offset}; the limit is 2"):
        acknowledge(store, log, "r", offset)

    assert log.readers == {} == open_log(store, log.prefix).readers


def test_read_gives_a_first_row_of_any_size_and_no_other_beyond_the_limit(
    store: Store, log: Log
) -> None:
    append_rows(store, log, [b"small", b"x" * 100])
    append_rows(store, log, [b"y" * 100, b"small"])

    sizes = [
        [len(row) for row in read(store, log, offset, rows_max=9, bytes_max=20).rows]
        for offset in range(5)
    ]

    assert sizes == [[5], [100], [100], [5], []]
    at_the_limit = read(store, log, 0, rows_max=9, bytes_max=9 + 104 + 104)
    assert at_the_limit.next_offset == 3


def test_read_looks_at_no_more_blocks_than_it_needs(
    store: Store, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(50):
        append_rows(store, log, [b"1234", b"5678"])
    looked_at = []
    walk = store.walk

    def counted(family: Family, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        for entry in walk(family, start, stop):
            looked_at.append(entry)
            yield entry

    monkeypatch.setattr(store, "walk", counted)

    assert len(read(store, log, 1, rows_max=3, bytes_max=LARGE).rows) == 3
    assert len(looked_at) == 2
    assert len(read(store, log, 10, rows_max=LARGE, bytes_max=16).rows) == 2
    assert len(looked_at) == 3


def test_read_meets_no_row_of_the_next_log(store: Store, log: Log) -> None:
    other = open_log(store, queue_prefix(next(log_numbers)))
    append_rows(store, log, [b"mine"])
    append_rows(store, other, [b"other"])

    assert every_row(store, log) == [b"mine"]


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_read_where_a_block_is_missing_stops(store: Store, log: Log, gone: int) -> None:
    for _ in range(3):
        append_rows(store, log, [b"x"])
    batch = store.batch()
    batch.delete(Family.LOG_BLOCKS, block_key(log.prefix, gone))
    store.write(batch)

    with pytest.raises(InvariantViolation, match=f"I12.*missing={gone}"):
        every_row(store, log)


# --- readers --------------------------------------------------------------------------------------


def test_acknowledge_never_goes_back(store: Store, log: Log) -> None:
    append_rows(store, log, [b"a", b"b", b"c"])
    acknowledge(store, log, "r", 2)

    acknowledge(store, log, "r", 1)

    assert reader_offset(log, "r") == 2 == open_log(store, log.prefix).readers["r"]


def test_acknowledge_by_one_reader_too_many_is_refused_until_one_is_dropped(
    store: Store, log: Log
) -> None:
    append_rows(store, log, [b"a"])
    for number in range(LOG_READERS_MAX):
        acknowledge(store, log, f"r{number}", 0)
    acknowledge(store, log, "r99", 1)

    with pytest.raises(ResourceExhausted, match=f"limit of {LOG_READERS_MAX}"):
        acknowledge(store, log, "more", 0)
    assert "more" not in log.readers
    assert open_log(store, log.prefix) == log

    assert drop_reader(store, log, "r7")
    acknowledge(store, log, "more", 0)
    assert open_log(store, log.prefix) == log


def test_acknowledge_without_a_name_does_not_overwrite_the_head(store: Store, log: Log) -> None:
    append_rows(store, log, [b"a"])

    with pytest.raises(InvariantViolation, match="I12"):
        acknowledge(store, log, "", 1)

    assert open_log(store, log.prefix) == log


def test_open_of_a_log_with_too_many_readers_stops(store: Store, log: Log) -> None:
    batch = store.batch()
    for number in range(LOG_READERS_MAX + 1):
        batch.put(Family.LOGS, log.prefix + b"%d" % number, bytes(8))
    store.write(batch)

    with pytest.raises(InvariantViolation, match=f"I12.*readers={LOG_READERS_MAX + 1}"):
        open_log(store, log.prefix)


@pytest.mark.parametrize(("tail", "value"), [(b"", b"x"), (b"r", b"x"), (b"\xff", bytes(8))])
def test_open_of_a_log_that_cannot_be_read_is_refused(
    store: Store, log: Log, tail: bytes, value: bytes
) -> None:
    batch = store.batch()
    batch.put(Family.LOGS, log.prefix + tail, value)
    store.write(batch)

    with pytest.raises(StorageCorrupt, match=f"log {log.prefix.hex()} cannot be read"):
        open_log(store, log.prefix)
