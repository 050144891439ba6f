"""Blocks as they are stored: bits, sizes, and how the block of an item is found."""

from collections.abc import Iterator

import pytest

from queueber.db.families import Family
from queueber.db.records.blocks import Block, Leftover, bits_of, encode_block, encode_leftover
from queueber.db.records.keys import queue_prefix
from queueber.db.records.runs import MarkFields, encode_mark, make_run
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.queue_entries import QueueEntries
from queueber.engine.integrity.stored_blocks import (
    BlockCache,
    BlockFinder,
    StoredBlock,
    block_from,
    read_block,
    stretches,
    unreadable_details,
)
from queueber.ids import ItemId
from tests.support.folders import quick_folder, remove_folder

PLAIN = encode_mark(MarkFields())
VALUE = encode_block([b"a", b"bb", b"ccc", b"dddd"])
SPARSE = Block(VALUE).rewritten([1, 3])


def an_id(number: int) -> ItemId:
    return ItemId(bytes(8) + number.to_bytes(8))


def stored(value: bytes, leftover: Leftover | None = None, last: int = 103) -> StoredBlock:
    return read_block(an_id(last), Block(value), leftover)


@pytest.fixture
def entries() -> Iterator[QueueEntries]:
    folder = quick_folder()
    with RocksStore(folder / "data") as store:
        yield QueueEntries(store, queue_prefix(1))
    remove_folder(folder)


def put(entries: QueueEntries, family: Family, last: int, value: bytes) -> None:
    batch = entries.store.batch()
    batch.put(family, entries.prefix + an_id(last), value)
    entries.store.write(batch)


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (0, []),
        (1, [(0, 1)]),
        (0b1000, [(3, 4)]),
        (0b1101101, [(0, 1), (2, 4), (5, 7)]),
        (bits_of(0, 512), [(0, 512)]),
        (bits_of(100, 400), [(100, 500)]),
    ],
)
def test_stretches_are_the_set_bits_that_follow_each_other(
    bits: int, expected: list[tuple[int, int]]
) -> None:
    assert list(stretches(bits)) == expected


def test_block_without_a_leftover_has_all_its_items_left() -> None:
    block = stored(VALUE)

    assert (block.first, block.last, block.span) == (an_id(100), an_id(103), 4)
    assert (block.present, block.left, block.has_details) == (0b1111, 0b1111, False)
    assert [block.size(at, 4) for at in range(4)] == [10, 9, 7, 4]
    assert block.size_of(0b1011) == 7
    assert block.run(1, 3, PLAIN) == make_run(an_id(102), 2, 1, 4, 5, PLAIN)


def test_block_with_a_leftover_has_left_what_that_says() -> None:
    block = stored(SPARSE, Leftover(len(SPARSE), 4, 0b1000))

    assert (block.present, block.left) == (0b1010, 0b1000)
    assert (block.size(0, 4), block.size_of(block.left)) == (6, 4)


def test_sizes_count_keys_and_attributes() -> None:
    block = stored(encode_block([b"a", b"b"], [b"k", b""], [b"", b"\0\1n\0\1v"]), last=1)

    assert block.has_details
    assert [block.size(0, 1), block.size(1, 2)] == [2, 7]


def test_position_of_an_id_is_known_for_those_of_the_block_only() -> None:
    block = stored(VALUE)

    found = [block.position_of(an_id(number)) for number in (99, 100, 103, 104)]

    assert found == [None, 0, 3, None]


def test_block_whose_ids_would_begin_before_the_first_is_refused() -> None:
    with pytest.raises(ValueError, match="4 ids do not fit"):
        stored(VALUE, last=2)
    assert stored(VALUE, last=3).first == an_id(0)


def test_details_that_cannot_be_read_are_told_by_position() -> None:
    keys, attributes = [b"k", b"\xff", b"k", b"k"], [b"", b"", b"\0\1n", b"\0\1n\0\1v"]
    value = encode_block([b""] * 4, keys, attributes)
    block = Block(value)

    assert unreadable_details(block, stored(value)) == 0b0110
    sparse = Block(block.rewritten([0, 2]))
    assert unreadable_details(sparse, stored(sparse.value)) == 0b0100
    assert unreadable_details(Block(VALUE), stored(VALUE)) == 0


def test_block_from_a_position_has_the_ids_from_there_on() -> None:
    assert block_from(Block(VALUE), stored(VALUE), 1).value == encode_block(
        [b"bb", b"ccc", b"dddd"]
    )
    assert block_from(Block(SPARSE), stored(SPARSE), 2).value == encode_block([b"", b"dddd"])
    value = encode_block([b"a", b"b"], [b"k", b"l"], [b"", b""])
    expected = encode_block([b"b"], [b"l"], [b""])
    assert block_from(Block(value), stored(value), 1).value == expected


def test_cache_has_the_blocks_that_were_fetched(entries: QueueEntries) -> None:
    put(entries, Family.ITEMS, 103, VALUE)
    put(entries, Family.ITEMS, 203, SPARSE)
    put(entries, Family.LEFTOVERS, 203, encode_leftover(Leftover(1, 2, 0b10)))
    cache = BlockCache(entries)

    cache.fetch([an_id(103), an_id(203), an_id(104), an_id(103)])
    cache.fetch([an_id(number) for number in range(300, 1290)])
    kept = cache[an_id(103)]
    cache.fetch([an_id(number) for number in range(2000, 3000)] + [an_id(203)])

    assert kept == stored(VALUE)
    assert cache[an_id(203)] == stored(SPARSE, Leftover(1, 2, 0b10), last=203)
    assert cache[an_id(2000)] is None
    with pytest.raises(KeyError):
        cache[an_id(103)]


def test_finder_finds_the_block_of_an_item(entries: QueueEntries) -> None:
    put(entries, Family.ITEMS, 103, VALUE)
    put(entries, Family.ITEMS, 203, SPARSE)
    put(entries, Family.LEFTOVERS, 203, encode_leftover(Leftover(1, 2, 0b10)))
    put(entries, Family.ITEMS, 300, b"no block")
    finder = BlockFinder(entries)
    expected = {103: stored(VALUE), 203: stored(SPARSE, Leftover(1, 2, 0b10), last=203)}

    for number in (0, 99, 100, 103, 104, 150, 203, 200, 201, 101, 300, 999, 2000, 0, 500, 102):
        found = finder.find(an_id(number))

        last = {100: 103, 101: 103, 102: 103, 103: 103, 200: 203, 201: 203, 203: 203}.get(number)
        assert found == (last and (expected[last], number - last + 3)), number
