"""The rebuild of blocks: what can be read is kept, and said to be left."""

from collections import Counter
from collections.abc import Iterator

import pytest

from queueber.db.families import Family
from queueber.db.records.blocks import (
    Block,
    Leftover,
    bits_of,
    decode_leftover,
    encode_block,
    encode_leftover,
)
from queueber.db.records.keys import queue_prefix
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.queue_entries import QueueEntries, QueueWrites
from queueber.engine.integrity.rebuild_blocks import BlocksRebuild
from queueber.ids import ItemId
from tests.engine.integrity.test_stored_blocks import an_id
from tests.support.folders import quick_folder, remove_folder

VALUE = encode_block([b"a", b"bb", b"ccc", b"dddd"])
LAST = an_id(103)


class Bench:
    """A store with nothing but blocks."""

    def __init__(self, store: RocksStore) -> None:
        self.entries = QueueEntries(store, queue_prefix(1))
        self.lost: Counter[str] = Counter()
        self.completed: dict[ItemId, int] = {}

    def put(self, last: ItemId, value: bytes, leftover: bytes | None = None) -> None:
        batch = self.entries.store.batch()
        batch.put(Family.ITEMS, self.entries.prefix + last, value)
        if leftover is not None:
            batch.put(Family.LEFTOVERS, self.entries.prefix + last, leftover)
        self.entries.store.write(batch)

    def rebuild(self, claimed: int | None = None) -> dict[bytes, tuple[bytes, Leftover | None]]:
        """Keep what is left, given what runs claim of each; returns what is stored then."""
        writes = QueueWrites(self.entries)
        blocks = BlocksRebuild(self.entries, writes, self.completed, self.lost)
        for old in blocks.walk():
            bits = old.stored.left if claimed is None else claimed & old.stored.present
            blocks.keep(old, bits)
        writes.flush()
        leftovers = dict(self.entries.walk(Family.LEFTOVERS))
        stored = {
            last: (value, decode_leftover(leftovers.pop(last)) if last in leftovers else None)
            for last, value in self.entries.walk(Family.ITEMS)
        }
        assert leftovers == {}
        return stored


@pytest.fixture
def bench() -> Iterator[Bench]:
    folder = quick_folder()
    with RocksStore(folder / "data") as store:
        yield Bench(store)
    remove_folder(folder)


def test_sound_blocks_stay_as_they_are(bench: Bench) -> None:
    left = Leftover(len(VALUE), 4, 0b0101)
    bench.put(LAST, VALUE)
    bench.put(an_id(107), VALUE, encode_leftover(left))

    assert bench.rebuild() == {LAST: (VALUE, None), an_id(107): (VALUE, left)}
    assert bench.lost == {}


@pytest.mark.parametrize(
    "leftover",
    [
        None,
        b"short",
        encode_leftover(Leftover(1, 1, 0b1111)),
        encode_leftover(Leftover(1, 1, bits_of(0, 99))),
    ],
    ids=["none", "one that cannot be read", "one of all items", "one with too many bits"],
)
def test_whole_block_has_no_leftover(bench: Bench, leftover: bytes | None) -> None:
    bench.put(LAST, VALUE, leftover)

    assert bench.rebuild() == {LAST: (VALUE, None)}


@pytest.mark.parametrize("leftover", [None, b"short", encode_leftover(Leftover(1, 1, 0b111))])
def test_rewritten_block_has_left_the_items_that_it_has(
    bench: Bench, leftover: bytes | None
) -> None:
    sparse = Block(VALUE).rewritten([1, 2])
    bits = 0b0110
    bench.put(LAST, sparse, leftover)

    assert bench.rebuild(claimed=bits) == {LAST: (sparse, Leftover(len(sparse), 5, bits))}


@pytest.mark.parametrize(
    ("size", "bits", "claimed", "left"),
    [
        (4, 0b0101, 0b0101, 0b0101),
        (4, 0b0101, 0b0001, 0b0101),
        (4, 0b0101, 0b0011, 0b0111),
        (99, 0b0101, 0b0101, 0b0101),
        (4, 0b0001, 0b0101, 0b0101),
        (4, 0b1101, 0b0101, 0b0101),
        (4, 0b0001, 0b0000, 0b1111),
        (4, 0b0001, 0b1000, 0b1111),
    ],
    ids=[
        "both agree",
        "an item is in no run",
        "a run has an item that is gone",
        "another size, but both agree",
        "a bit was lost that a run has",
        "a bit was set that no run has",
        "bits were lost that no run has",
        "bits were lost, and runs are of no help",
    ],
)
def test_runs_and_size_tell_what_a_damaged_leftover_had(
    bench: Bench, size: int, bits: int, claimed: int, left: int
) -> None:
    bench.put(LAST, VALUE, encode_leftover(Leftover(len(VALUE), size, bits)))

    [(value, leftover)] = bench.rebuild(claimed=claimed).values()

    assert value == VALUE
    assert (leftover.bits if leftover else 0b1111) == left


def test_numbers_of_a_leftover_are_corrected(bench: Bench) -> None:
    bench.put(LAST, VALUE, encode_leftover(Leftover(1, 1, 0b0101)))

    assert bench.rebuild() == {LAST: (VALUE, Leftover(len(VALUE), 4, 0b0101))}


def test_leftover_without_a_block_goes(bench: Bench) -> None:
    batch = bench.entries.store.batch()
    for number in (1, 999):
        batch.put(Family.LEFTOVERS, bench.entries.prefix + an_id(number), b"any")
    bench.entries.store.write(batch)
    bench.put(LAST, VALUE)

    assert bench.rebuild() == {LAST: (VALUE, None)}


def test_block_of_which_nothing_is_left_goes(bench: Bench) -> None:
    bench.put(LAST, VALUE, encode_leftover(Leftover(1, 1, 0)))

    assert bench.rebuild() == {}


def test_block_that_cannot_be_read_is_dropped_and_counted(bench: Bench) -> None:
    bench.put(LAST, VALUE[:-1], encode_leftover(Leftover(1, 1, 1)))
    bench.put(an_id(2), VALUE)
    bench.put(an_id(203), VALUE)

    assert bench.rebuild() == {an_id(203): (VALUE, None)}
    assert bench.lost == {"blocks of items that cannot be read": 2}


def test_item_whose_details_cannot_be_read_is_dropped_alone(bench: Bench) -> None:
    value = encode_block([b"a", b"b"], [b"k", b"\xff"], [b"", b""])
    bench.put(LAST, value)

    assert bench.rebuild(claimed=0b11) == {LAST: (value, Leftover(len(value), 2, 0b01))}
    assert bench.lost == {"items whose contents cannot be read": 1}


def test_wasteful_block_is_rewritten(bench: Bench) -> None:
    value = encode_block([b"x" * 1000, b"b"])
    bench.put(LAST, value, encode_leftover(Leftover(len(value), 1, 0b10)))

    rewritten = Block(value).rewritten([1])
    assert bench.rebuild() == {LAST: (rewritten, Leftover(len(rewritten), 1, 0b10))}


def test_completed_items_that_came_back_go(bench: Bench) -> None:
    bench.put(LAST, VALUE)
    bench.put(an_id(107), VALUE, encode_leftover(Leftover(len(VALUE), 7, 0b1100)))
    bench.completed = {LAST: 0b0011, an_id(107): 0b0111}

    assert bench.rebuild(claimed=0b1111) == {
        LAST: (VALUE, Leftover(len(VALUE), 7, 0b1100)),
        an_id(107): (VALUE, Leftover(len(VALUE), 4, 0b1000)),
    }
    assert bench.lost == {"items that were completed, and had come back": 5}


def test_of_blocks_with_ids_in_common_the_later_one_keeps_the_others(bench: Bench) -> None:
    bench.put(LAST, VALUE)
    bench.put(an_id(105), VALUE)
    bench.put(an_id(106), Block(VALUE).rewritten([0, 3]), encode_leftover(Leftover(1, 1, 0b1001)))

    assert bench.rebuild() == {
        LAST: (VALUE, None),
        an_id(105): (encode_block([b"ccc", b"dddd"]), None),
        an_id(106): (encode_block([b"dddd"]), None),
    }
    assert bench.lost == {"items of a block that has ids of another": 3}


def test_item_that_was_gone_stays_gone_in_a_block_that_loses_ids(bench: Bench) -> None:
    sparse = Block(VALUE).rewritten([1, 3])
    bench.put(LAST, VALUE)
    bench.put(an_id(105), sparse, encode_leftover(Leftover(len(sparse), 6, 0b1010)))

    cut = encode_block([b"", b"dddd"])
    assert bench.rebuild(claimed=0b11) == {
        LAST: (VALUE, None),
        an_id(105): (cut, Leftover(len(cut), 4, 0b10)),
    }


def test_block_that_has_only_ids_of_another_goes(bench: Bench) -> None:
    bench.put(LAST, VALUE)
    bench.put(an_id(104), Block(VALUE).rewritten([1, 2]), encode_leftover(Leftover(1, 1, 0b0110)))

    assert bench.rebuild() == {LAST: (VALUE, None)}
    assert bench.lost == {"items of a block that has ids of another": 2}
