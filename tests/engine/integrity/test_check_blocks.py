"""The check of blocks: damage of every kind is reported under its rule, and under no other."""

import pytest

from queueber.db.families import Family
from queueber.db.records.blocks import Block, Leftover, encode_block, encode_leftover
from queueber.db.records.remembered import DIGEST_MODULUS, ids_digest
from queueber.engine.integrity.check_blocks import BlocksCheck
from tests.engine.damage import PLAIN, STRANGER, Case, Damage, steps
from tests.engine.integrity.test_queue_entries import checked_queue
from tests.support.rig import Rig

ITEMS, LEFTOVERS, INDEX = Family.ITEMS, Family.LEFTOVERS, Family.VISIBILITY_INDEX


def whole(d: Damage, block: bytes, bits: int) -> bytes:
    """A leftover that fits a block of which nothing was rewritten."""
    value = d.get(ITEMS, block)
    found = Block(value)
    size = sum(found.size(at, at + 1) for at in range(found.span) if bits >> at & 1)
    return encode_leftover(Leftover(len(value), size, bits))


def put_wasteful(d: Damage) -> None:
    value = encode_block([b"l" * 400, b"s2"])
    d.put(ITEMS, d.sparse, value)
    d.put(LEFTOVERS, d.sparse, encode_leftover(Leftover(len(value), 2, 0b10)))


def put_overlapping(d: Damage) -> None:
    """A block with one ready item, and an id that another block has."""
    last, value = d.after_ready(), encode_block([b"again", b"new"])
    d.put(ITEMS, last, value)
    d.put(LEFTOVERS, last, encode_leftover(Leftover(len(value), 3, 0b10)))
    d.put_ready(d.run(d.ready[1])._replace(last=last, size=3, mark=PLAIN))
    d.count(ready=1, contents_bytes=3, added_total=1)


def put_unreadable_key(d: Damage) -> None:
    value = d.get(ITEMS, d.special)
    d.put(ITEMS, d.special, value.replace(b"k", b"\xff"))


BLOCKS = [
    Case("I14", "two blocks have an id in common", put_overlapping),
    Case("I14", "a block is wasteful", put_wasteful),
    Case("I7", "a key cannot be read", put_unreadable_key),
]

GONE_OR_NOT = [
    Case(
        "I1",
        "a block lost its leftover, so that an item that was gone is back",
        lambda d: d.delete(LEFTOVERS, d.partly[3]),
        also={"I5"},
    ),
    Case(
        "I14",
        "a block that was rewritten lost its leftover",
        lambda d: d.delete(LEFTOVERS, d.sparse),
    ),
    Case(
        "I14",
        "a block has a leftover, but all its items are left",
        lambda d: d.put(LEFTOVERS, d.ready[1], whole(d, d.ready[1], 0b11)),
    ),
    Case(
        "I14",
        "nothing is left of a block",
        steps(
            lambda d: d.put(LEFTOVERS, d.ready[1], whole(d, d.ready[1], 0)),
            lambda d: d.delete(INDEX, d.ready_key()),
            lambda d: d.count(ready=-2, contents_bytes=-5, removed_total=2),
        ),
    ),
    Case(
        "I14",
        "a leftover has no block",
        lambda d: d.put(LEFTOVERS, STRANGER, encode_leftover(Leftover(9, 2, 1))),
    ),
    Case(
        "I14",
        "a leftover after the last block has no block",
        lambda d: d.put(LEFTOVERS, b"\xff" * 16, encode_leftover(Leftover(9, 2, 1))),
    ),
]

NUMBERS = [
    Case(
        "I14",
        "a leftover has the bit of another item",
        lambda d: d.change_leftover(d.partly[3], bits=0b1110),
        also={"I1", "I2", "I5"},
    ),
    Case(
        "I14",
        "a leftover misses a bit",
        lambda d: d.change_leftover(d.partly[3], bits=0b1001),
        also={"I1", "I2", "I5"},
    ),
    Case(
        "I14",
        "a leftover has the bit of an item that the block has not got",
        lambda d: d.change_leftover(d.sparse, bits=0b11),
    ),
    Case(
        "I14",
        "a leftover has a bit after the last id",
        lambda d: d.change_leftover(d.partly[3], bits=0b11101),
    ),
    Case(
        "I14",
        "a leftover has another size of items",
        lambda d: d.change_leftover(d.partly[3], size=7),
    ),
    Case(
        "I14",
        "a leftover has another size of the block",
        lambda d: d.change_leftover(d.partly[3], stored=30),
    ),
]

RUNS = [
    Case(
        "I14",
        "two ready runs have an item in common",
        steps(lambda d: d.put_ready(d.run(d.partly[2])), lambda d: d.count(ready=1)),
        also={"I1"},
    ),
    Case(
        "I14",
        "a run has all that two others have",
        steps(
            lambda d: d.delete(INDEX, d.ready_at(0, d.partly[3])),
            lambda d: d.put_ready(d.run(d.partly[0], 4)),
            lambda d: d.count(ready=2),
        ),
        also={"I1", "I2"},
    ),
]

CASES = [*BLOCKS, *GONE_OR_NOT, *NUMBERS, *RUNS]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_damage_of_blocks_is_reported_under_its_rule_and_no_other(rig: Rig, case: Case) -> None:
    assert case.rules_found(rig) == case.rules


def test_check_of_sound_blocks_finds_nothing_and_sums_up_what_is_left(rig: Rig) -> None:
    first, second, third = rig.add(b"1", b"22", b"333")
    polled = rig.poll(3)
    assert rig.remove([second], polled.lease_id) == [True]
    (other,) = rig.add(b"4444")
    check = BlocksCheck(checked_queue(rig))

    assert list(check.run()) == []

    assert (check.items, check.contents_bytes) == (3, 8)
    expected = sum(ids_digest(item_id, 1) for item_id in (first, third, other))
    assert (check.digest - expected) % DIGEST_MODULUS == 0
