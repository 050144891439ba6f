"""The checker of logs: sound ones pass, and damage of every kind is reported."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import queue_prefix
from queueber.db.records.log import (
    LogHead,
    block_key,
    encode_block,
    encode_log_head,
    encode_rows,
)
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.logs import check_log
from queueber.engine.log import Log, open_log
from queueber.limits import LOG_READERS_MAX
from tests.support.folders import quick_folder, remove_folder
from tests.support.log_model import append_rows
from tests.support.operations import acknowledge, trim

log_numbers = iter(range(1, 1_000_000, 2))


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    folder = quick_folder()
    with RocksStore(folder / "data") as opened:
        yield opened
    remove_folder(folder)


class Damage:
    """A log of three blocks, the first of four trimmed, to be damaged by hand.

    Offsets 2-3, 4-5 and 6-7; positions 12, 24 and 36 to 48; appended at 20, 30 and 40.
    """

    def __init__(self, store: Store) -> None:
        self.log: Log = open_log(store, queue_prefix(next(log_numbers)))
        for number in range(1, 5):
            append_rows(store, self.log, [b"aa", b"bb"], 10 * number)
        acknowledge(store, self.log, "r", 3)
        assert trim(store, self.log, 0, age_ms=0, bytes_max=0) == 2
        assert list(check_log(store, self.log.prefix)) == []
        self.batch = store.batch()

    def put_head(self, **values: int) -> None:
        head = self.log.head._replace(**values)
        self.batch.put(Family.LOGS, self.log.prefix, encode_log_head(head))

    def put_reader(self, name: bytes, value: bytes) -> None:
        self.batch.put(Family.LOGS, self.log.prefix + name, value)

    def put_block(self, last_offset: int, first: int, at_ms: int, position: int) -> None:
        body = encode_rows([b"aa", b"bb"])
        value = encode_block(body, first_offset=first, appended_at_ms=at_ms, position=position)
        self.put_value(last_offset, value)

    def put_value(self, last_offset: int, value: bytes) -> None:
        self.batch.put(Family.LOG_BLOCKS, block_key(self.log.prefix, last_offset), value)

    def delete_block(self, last_offset: int) -> None:
        self.batch.delete(Family.LOG_BLOCKS, block_key(self.log.prefix, last_offset))


@dataclass(frozen=True)
class Case:
    text: str
    damage: Callable[[Damage], None]


HEAD = LogHead(2, 8, 12, 48, 20, 40, 4, 24)
FALLING_ENDS = bytes.fromhex(
    "0000000000000004 000000000000001e 0000000000000018 00000005 00000004 61616262"
)


def block_under_another_key(damage: Damage) -> None:
    damage.delete_block(5)
    damage.put_block(4, 4, 30, 24)


def block_that_overlaps(damage: Damage) -> None:
    rows = [b"", b"b", b""]
    damage.put_value(
        5, encode_block(encode_rows(rows), first_offset=3, appended_at_ms=30, position=24)
    )


def row_of_another_length(damage: Damage) -> None:
    rows = [b"aa", b"bbb"]
    damage.put_value(
        5, encode_block(encode_rows(rows), first_offset=4, appended_at_ms=30, position=24)
    )


def key_of_another_width(damage: Damage) -> None:
    damage.batch.put(Family.LOG_BLOCKS, block_key(damage.log.prefix, 5) + b"x", b"")


def head_gone(damage: Damage) -> None:
    damage.batch.delete(Family.LOGS, damage.log.prefix)


def too_many_readers(damage: Damage) -> None:
    for number in range(LOG_READERS_MAX):
        damage.put_reader(b"%d" % number, bytes(8))


CASES = {
    "block missing at the front": Case("make", lambda d: d.delete_block(3)),
    "block missing in the middle": Case("begins with offset 6, but", lambda d: d.delete_block(5)),
    "block missing at the end": Case("make", lambda d: d.delete_block(7)),
    "block that was trimmed": Case("make", lambda d: d.put_block(1, 0, 10, 0)),
    "block beyond the end": Case("make", lambda d: d.put_block(9, 8, 40, 48)),
    "block under another key": Case("cannot be read", block_under_another_key),
    "block that overlaps": Case("begins with offset 3, but", block_that_overlaps),
    "block at another position": Case("position 25, but", lambda d: d.put_block(5, 4, 30, 25)),
    "block that is too early": Case("before the one ahead", lambda d: d.put_block(5, 4, 19, 24)),
    "block cut short": Case("cannot be read", lambda d: d.put_value(5, FALLING_ENDS[:-1])),
    "block of no bytes": Case("cannot be read", lambda d: d.put_value(5, b"")),
    "row of another length": Case("position 36, but", row_of_another_length),
    "row that ends too early": Case("before it begins", lambda d: d.put_value(5, FALLING_ENDS)),
    "key of another width": Case("cannot be read", key_of_another_width),
    "head gone": Case("make", head_gone),
    "head cut short": Case("head cannot be read", lambda d: d.put_reader(b"", b"x")),
    "reader beyond the end": Case("'q' is at 9", lambda d: d.put_reader(b"q", (9).to_bytes(8))),
    "reader cut short": Case("cannot be read", lambda d: d.put_reader(b"q", b"x")),
    "reader not in UTF-8": Case("cannot be read", lambda d: d.put_reader(b"\xff", bytes(8))),
    "too many readers": Case(f"{LOG_READERS_MAX + 1} readers", too_many_readers),
}


@pytest.mark.parametrize("name", CASES)
def test_check_reports_damage(store: Store, name: str) -> None:
    damage = Damage(store)
    assert damage.log.head == HEAD

    CASES[name].damage(damage)
    store.write(damage.batch)

    found = list(check_log(store, damage.log.prefix))
    assert [text for text in found if CASES[name].text in text] != []


@pytest.mark.parametrize("field", LogHead._fields)
@pytest.mark.parametrize("by", [-1, 1])
def test_check_reports_a_head_that_is_off_by_one(store: Store, field: str, by: int) -> None:
    damage = Damage(store)

    damage.put_head(**{field: getattr(damage.log.head, field) + by})
    store.write(damage.batch)

    assert [text for text in check_log(store, damage.log.prefix) if "make" in text] != []


@pytest.mark.parametrize("field", sorted(set(LogHead._fields) - {"last_ms"}))
def test_check_reports_the_head_of_an_empty_log_that_is_off_by_one(
    store: Store, field: str
) -> None:
    """Of the last time nothing else is kept, so that one cannot be checked."""
    damage = Damage(store)
    acknowledge(store, damage.log, "r", 8)
    assert trim(store, damage.log, 0, age_ms=0, bytes_max=0) == 6
    assert list(check_log(store, damage.log.prefix)) == []

    damage.put_head(**{field: getattr(damage.log.head, field) + 1})
    store.write(damage.batch)

    assert list(check_log(store, damage.log.prefix)) != []


def test_check_sees_nothing_of_the_logs_beside(store: Store) -> None:
    damage = Damage(store)
    beside = open_log(store, queue_prefix(int.from_bytes(damage.log.prefix) + 1))

    damage.delete_block(5)
    store.write(damage.batch)

    assert list(check_log(store, beside.prefix)) == []
