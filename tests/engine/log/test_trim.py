"""Trim: whole blocks go, oldest first, and the due time never promises what trim does not do."""

from collections.abc import Iterator

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS, prefix_end, queue_prefix
from queueber.db.records.log import LogHead, block_key
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksBatch, RocksStore
from queueber.engine import log as log_module
from queueber.engine.integrity.logs import check_log
from queueber.engine.log import Log, LogSlice, open_log, read, reader_offset
from queueber.errors import InvariantViolation
from tests.support.folders import quick_folder, remove_folder
from tests.support.log_model import LARGE, append_rows
from tests.support.operations import acknowledge, trim, trim_due_ms

BLOCK_BYTES = 2 * (6 + 4)
"""Two rows of six bytes, as `filled` appends them."""

log_numbers = iter(range(1, 1_000_000))


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    folder = quick_folder()
    with RocksStore(folder / "data") as opened:
        yield opened
    remove_folder(folder)


def filled(store: Store, blocks: int) -> Log:
    """Blocks of two rows each, appended at 0, 10, 20 and so on."""
    log = open_log(store, queue_prefix(next(log_numbers)))
    for number in range(blocks):
        append_rows(store, log, [b"%06d" % (2 * number), b"%06d" % (2 * number + 1)], 10 * number)
    return log


def age_of(blocks: int) -> int:
    """When the last of so many blocks was appended."""
    return 10 * (blocks - 1)


def blocks_left(store: Store, log: Log) -> int:
    return len(store.scan(Family.LOG_BLOCKS, log.prefix, prefix_end(log.prefix), LARGE))


# --- which blocks go ------------------------------------------------------------------------------


def test_trim_without_readers_and_limits_deletes_nothing(store: Store) -> None:
    log = filled(store, 3)

    assert trim(store, log, NEVER_MS - 1, age_ms=0, bytes_max=0) == 0
    assert trim_due_ms(log, now_ms=NEVER_MS - 1, age_ms=0, bytes_max=0) == NEVER_MS


def test_trim_waits_for_the_slowest_reader(store: Store) -> None:
    log = filled(store, 3)
    acknowledge(store, log, "fast", 6)
    acknowledge(store, log, "slow", 2)

    assert trim(store, log, 0, age_ms=0, bytes_max=0) == 2
    assert log.head.first_offset == 2


def test_trim_without_an_age_keeps_what_was_appended_at_time_zero(store: Store) -> None:
    log = open_log(store, queue_prefix(next(log_numbers)))
    append_rows(store, log, [b"a"], 0)
    append_rows(store, log, [b"b"], 0)
    acknowledge(store, log, "r", 1)

    assert trim(store, log, 0, age_ms=0, bytes_max=0) == 1


def test_trim_is_not_due_while_only_part_of_a_block_is_acknowledged(store: Store) -> None:
    """A due time that stays at now would make the sweeper spin."""
    log = filled(store, 3)
    acknowledge(store, log, "r", 3)
    assert trim(store, log, 7, age_ms=0, bytes_max=0) == 2

    assert trim_due_ms(log, now_ms=7, age_ms=0, bytes_max=0) == NEVER_MS
    assert trim(store, log, 7, age_ms=0, bytes_max=0) == 0

    acknowledge(store, log, "r", 4)
    assert trim_due_ms(log, now_ms=7, age_ms=0, bytes_max=0) == 7


def test_trim_by_age_is_due_to_the_millisecond(store: Store) -> None:
    log = filled(store, 3)

    for oldest_ms in (0, 10, 20):
        due_ms = trim_due_ms(log, now_ms=0, age_ms=100, bytes_max=0)
        assert due_ms == oldest_ms + 100
        assert trim(store, log, due_ms - 1, age_ms=100, bytes_max=0) == 0
        assert trim(store, log, due_ms, age_ms=100, bytes_max=0) == 2
    assert trim_due_ms(log, now_ms=0, age_ms=100, bytes_max=0) == NEVER_MS


@pytest.mark.parametrize(
    ("bytes_max", "left"),
    [
        (4 * BLOCK_BYTES, 4),
        (3 * BLOCK_BYTES, 3),
        (2 * BLOCK_BYTES + 1, 3),
        (2 * BLOCK_BYTES, 2),
        (2 * BLOCK_BYTES - 1, 2),
        (1, 1),
    ],
)
def test_trim_by_bytes_keeps_the_newest_and_the_block_in_which_they_begin(
    store: Store, bytes_max: int, left: int
) -> None:
    log = filled(store, 4)

    assert trim(store, log, 50, age_ms=0, bytes_max=bytes_max) == 2 * (4 - left)

    assert log.head.kept_bytes == left * BLOCK_BYTES
    assert trim_due_ms(log, now_ms=50, age_ms=0, bytes_max=bytes_max) == NEVER_MS


def test_trim_of_everything_keeps_where_the_log_ends(store: Store) -> None:
    log = filled(store, 3)
    acknowledge(store, log, "r", 6)

    assert trim(store, log, 5, age_ms=0, bytes_max=0) == 6

    end = 3 * BLOCK_BYTES
    assert log.head == LogHead(6, 6, end, end, 0, 20, 6, end) == open_log(store, log.prefix).head
    assert trim_due_ms(log, now_ms=5, age_ms=1, bytes_max=1) == NEVER_MS
    append_rows(store, log, [b"next"], 5)
    assert read(store, log, 6, rows_max=9, bytes_max=99) == LogSlice(6, [b"next"], [20], 7, 0)
    assert trim_due_ms(log, now_ms=5, age_ms=100, bytes_max=0) == 120
    assert list(check_log(store, log.prefix)) == []


def test_reader_behind_the_oldest_row_is_told_what_it_missed(store: Store) -> None:
    log = filled(store, 3)
    acknowledge(store, log, "r", 1)

    trim(store, log, 110, age_ms=100, bytes_max=0)

    assert reader_offset(log, "r") == 1
    found = read(store, log, 1, rows_max=1, bytes_max=0)
    assert (found.first_offset, found.missed, found.rows) == (4, 3, [b"000004"])
    assert reader_offset(log, "new") == 4


def test_trim_meets_no_block_of_the_next_log(store: Store) -> None:
    log, other = filled(store, 2), filled(store, 2)

    assert trim(store, log, 1000, age_ms=1, bytes_max=0) == 4

    assert blocks_left(store, other) == 2
    assert list(check_log(store, other.prefix)) == []


# --- what it costs --------------------------------------------------------------------------------


class Seeks:
    """Counts the seeks of a store, which go on as they are."""

    def __init__(self, store: Store, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._walk = store.walk
        patch.setattr(store, "walk", self._counted)

    def _counted(self, family: Family, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        self.count += 1
        return self._walk(family, start, stop)


@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 100, 999, 1000])
def test_trim_seeks_grow_with_the_logarithm_of_what_goes(
    store: Store, monkeypatch: pytest.MonkeyPatch, blocks: int
) -> None:
    log = filled(store, 1001)
    seeks = Seeks(store, monkeypatch)

    assert trim(store, log, age_of(blocks) + 1, age_ms=1, bytes_max=0) == 2 * blocks

    # Out from the front, back by halves, and once to read what is deleted.
    assert seeks.count <= 2 * (2 * blocks).bit_length() + 2
    assert blocks_left(store, log) == 1001 - blocks
    assert list(check_log(store, log.prefix)) == []


def test_trim_that_is_not_due_or_takes_all_does_not_search(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(store, 500)
    monkeypatch.setattr(log_module, "_SINGLE_DELETES_BYTES_MAX", 0)
    seeks = Seeks(store, monkeypatch)

    assert trim(store, log, 99, age_ms=100, bytes_max=0) == 0
    assert trim(store, log, 10_000, age_ms=100, bytes_max=0) == 1000

    assert seeks.count == 0


@pytest.mark.parametrize(
    ("blocks", "ranges"), [(1, 0), (2, 0), (256, 0), (257, 1), (290, 1), (300, 1)]
)
def test_trim_deletes_few_blocks_singly_and_many_by_one_range(
    store: Store, monkeypatch: pytest.MonkeyPatch, blocks: int, ranges: int
) -> None:
    log = filled(store, 300)
    deleted = []
    delete_range = RocksBatch.delete_range

    def counted(batch: RocksBatch, family: Family, start: bytes, stop: bytes) -> None:
        deleted.append((start, stop))
        delete_range(batch, family, start, stop)

    monkeypatch.setattr(RocksBatch, "delete_range", counted)

    assert trim(store, log, age_of(blocks) + 1, age_ms=1, bytes_max=0) == 2 * blocks

    assert len(deleted) == ranges
    assert blocks_left(store, log) == 300 - blocks
    assert list(check_log(store, log.prefix)) == []


@pytest.mark.parametrize("gone", [2, 3])
def test_trim_that_finds_a_block_missing_stops_and_deletes_nothing(store: Store, gone: int) -> None:
    log = filled(store, 4)
    head = log.head
    batch = store.batch()
    batch.delete(Family.LOG_BLOCKS, block_key(log.prefix, 2 * gone - 1))
    store.write(batch)

    with pytest.raises(InvariantViolation, match="I12"):
        trim(store, log, age_of(gone) + 1, age_ms=1, bytes_max=0)

    assert log.head == head == open_log(store, log.prefix).head
    assert blocks_left(store, log) == 3
