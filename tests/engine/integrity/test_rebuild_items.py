"""The rebuild of items: each that can be read is kept, in one state."""

from collections.abc import Callable

import pytest

from queueber.db.families import Family
from queueber.db.records.attempts import decode_attempts
from queueber.db.records.blocks import Block, decode_leftover, encode_block
from queueber.db.records.dead_letters import decode_dead, encode_dead
from queueber.db.records.runs import (
    MarkFields,
    decode_mark,
    encode_mark,
)
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.queue_entries import QueueEntries
from queueber.engine.integrity.rebuild_store import rebuild_store
from queueber.engine.integrity.records import HALF_COMMITTED
from queueber.engine.integrity.stored_blocks import BlockFinder
from queueber.model import NewItems
from tests.engine.damage import Case, Damage
from tests.engine.integrity import test_check_blocks, test_check_counts, test_check_items
from tests.engine.integrity.test_check_items import WITHOUT_BLOCK
from tests.support.entries import history_of
from tests.support.rig import QUEUE, START_MS, Rig

INDEX = Family.VISIBILITY_INDEX
MODULES = (test_check_blocks, test_check_counts, test_check_items)
CASES = [case for module in MODULES for case in module.CASES]
WITH_LOSS = {
    *[case.text for case in WITHOUT_BLOCK],
    "nothing is left of a block",
    "a key cannot be read",
}
"""Contents are gone, cannot be read, or are said to be gone."""
OTHER_CONTENTS = {"a block and its run are larger than was counted"}


def contents(rig: Rig) -> dict[bytes, bytes]:
    """The contents of every item that is left, by id."""
    finder = BlockFinder(QueueEntries(rig.store, rig.queue.prefix))
    found = {}
    for item_id in rig.stored_ids():
        block, position = finder.find(item_id) or pytest.fail("has no block")
        value = rig.store.get(Family.ITEMS, rig.queue.prefix + block.last) or b""
        [found[item_id]] = Block(value).contents(position, 1)
    return found


def write(d: Damage) -> None:
    d.rig.store.write(d.batch)


def rebuild(d: Damage) -> list[str]:
    """Write the damage and rebuild; what was lost, without what every rebuild here loses."""
    write(d)
    losses = list(rebuild_store(d.rig.store))
    assert check_store(d.rig.store) == []
    usual = ("leases ended", "records of loads")
    return [text.split(": ", 1)[1] for text in losses if not any(each in text for each in usual)]


def ready_runs(rig: Rig) -> list[tuple[int, int, MarkFields]]:
    """Number of items, bytes and mark of each ready run, in order."""
    return [(run.count, run.size, decode_mark(run.mark)) for run in rig.runs(INDEX)]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_damage_is_healed_and_no_item_that_can_be_read_is_lost(rig: Rig, case: Case) -> None:
    damage = Damage(rig)
    before = contents(rig)
    case.damage(damage)
    write(damage)

    list(rebuild_store(rig.store))

    left = [each for each in check_store(rig.store) if HALF_COMMITTED not in each.text]
    assert left == []
    after = contents(rig)
    if case.text not in WITH_LOSS:
        assert set(before) <= set(after)
    if case.text not in OTHER_CONTENTS:
        assert {key: after[key] for key in before if key in after}.items() <= before.items()


def test_items_of_a_lease_join_the_ready_ones_they_came_with(rig: Rig) -> None:
    ids = rig.add(b"a", b"bb", b"ccc")
    lease_id = rig.poll(2).lease_id
    batch = rig.store.batch()
    batch.delete(Family.HOLDERS, rig.keys(Family.HOLDERS)[0])
    rig.store.write(batch)

    losses = list(rebuild_store(rig.store))

    assert losses == [f"{QUEUE}: 1 leases ended: their items are ready again"]
    assert ready_runs(rig) == [(3, 6, MarkFields())]
    assert rig.keys(Family.LEASES) == rig.keys(Family.HOLDERS) == []
    rig.reopen()
    assert not rig.extend(lease_id, 1000)
    assert rig.poll(3).ids == ids


def test_of_two_runs_with_an_item_the_first_found_keeps_it(rig: Rig) -> None:
    """Ready before delayed before leased before dead."""
    d = Damage(rig)
    d.put(Family.DEAD, d.ready[1], encode_dead(0, 1, d.run(d.ready[0], 2)))
    d.put(Family.DEAD, d.delayed[1], encode_dead(0, 1, d.run(d.delayed[0], 2)))
    d.put_ready(d.run(d.delayed[0]))

    assert rebuild(d) == []

    assert rig.ids(Family.DEAD) == [d.dead]
    assert rig.ids(Family.DELAYED) == [d.delayed[1]]
    assert set(d.ready) | {d.delayed[0]} <= set(rig.ready_ids())


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.change_run(INDEX, d.ready_key(), size=999),
        lambda d: d.change_run(INDEX, d.ready_key(), at=7, span=9),
        lambda d: d.change_run(INDEX, d.ready_key(), count=9999),
        lambda d: d.remark(d.ready_key(), flags=1),
        lambda d: d.remark(d.ready_key(), attempts=3),
    ],
    ids=["size", "place in the block", "number of items", "details", "attempts"],
)
def test_run_is_corrected_from_its_block(rig: Rig, damage: Callable[[Damage], None]) -> None:
    d = Damage(rig)
    damage(d)

    assert rebuild(d) == []

    assert [run for run in rig.runs(INDEX) if run.last == d.ready[1]] == [d.run(d.ready[0], 2)]


def test_run_loses_the_items_that_are_gone(rig: Rig) -> None:
    d = Damage(rig)
    for item_id in (d.partly[0], d.partly[3]):
        d.delete(INDEX, d.ready_at(0, item_id))
    run = d.run(d.partly[0], 4)
    d.put_ready(run)
    # What is gone from a rewritten block cannot come back; of others a run tells what is left.
    value = Block(d.get(Family.ITEMS, d.partly[3])).rewritten([0, 2, 3])
    d.put(Family.ITEMS, d.partly[3], value)
    d.change_leftover(d.partly[3], stored=len(value))

    assert rebuild(d) == []

    assert [each for each in rig.runs(INDEX) if each.block == run.block] == [
        d.run(d.partly[0]),
        d.run(d.partly[2], 2),
    ]


def test_run_with_too_many_items_brings_none_back_and_takes_none_of_others(rig: Rig) -> None:
    d = Damage(rig)
    d.delete(INDEX, d.ready_at(0, d.partly[0]))
    dead = d.run(d.partly[0])
    d.put(Family.DEAD, dead.last, encode_dead(0, 1, dead))
    d.change_run(INDEX, d.ready_at(0, d.partly[3]), count=2 + 256)

    assert rebuild(d) == []

    assert [run.ids for run in rig.runs(INDEX) if run.block == d.partly[3]] == [d.partly[2:]]
    assert sorted(rig.ids(Family.DEAD)) == sorted([d.dead, d.partly[0]])


def test_leftover_that_lost_a_bit_gets_it_back_from_the_run(rig: Rig) -> None:
    d = Damage(rig)
    before = d.get(Family.LEFTOVERS, d.partly[3])
    d.change_leftover(d.partly[3], bits=0b0001)

    assert rebuild(d) == []

    assert d.get(Family.LEFTOVERS, d.partly[3]) == before


def test_item_that_was_gone_is_ready_if_only_its_leftover_is_lost(rig: Rig) -> None:
    d = Damage(rig)
    d.delete(Family.LEFTOVERS, d.partly[3])

    assert rebuild(d) == ["1 items whose place was lost: they are ready"]

    assert contents(rig)[d.partly[1]] == b"p22"
    assert d.partly[1] in rig.ready_ids()


def test_block_that_cannot_be_read_is_lost_with_its_runs(rig: Rig) -> None:
    d = Damage(rig)
    d.put(Family.ITEMS, d.partly[3], b"no block")

    assert rebuild(d) == [
        "1 blocks of items that cannot be read",
        "2 entries of items that cannot be read, or are gone",
    ]

    assert not set(d.partly) & set(rig.stored_ids())
    assert d.get(Family.LEFTOVERS, d.partly[3]) == b""


def test_completed_item_that_came_back_is_dropped_from_its_block(rig: Rig) -> None:
    done, *others = rig.add(b"a", b"b", b"c")
    polled = rig.poll(3)
    assert rig.complete([done], polled.lease_id) == [True]
    batch = rig.store.batch()
    batch.delete(Family.LEFTOVERS, rig.queue.prefix + others[-1])
    rig.store.write(batch)

    losses = list(rebuild_store(rig.store))

    assert losses == [
        f"{QUEUE}: 1 leases ended: their items are ready again",
        f"{QUEUE}: 1 items that were completed, and had come back",
    ]
    assert check_store(rig.store) == []
    assert rig.ready_ids() == rig.stored_ids() == others
    [(_, leftover)] = rig.dump()["leftovers"]
    assert decode_leftover(leftover).bits == 0b110


def test_run_is_cut_where_the_numbers_of_failures_differ(rig: Rig) -> None:
    ids = rig.add(*[b"x"] * 6)
    batch = rig.store.batch()
    for at, times in {1: [1], 2: [1, 2], 3: [3, 4], 5: []}.items():
        key = rig.queue.prefix + ids[at]
        batch.put(Family.ATTEMPTS, key, history_of(times, "why"))
    rig.store.write(batch)

    assert list(rebuild_store(rig.store)) == []

    assert check_store(rig.store) == []
    marks = [(count, mark.attempts) for count, _, mark in ready_runs(rig)]
    assert marks == [(1, 0), (1, 1), (2, 2), (2, 0)]
    histories = [(key[4:], decode_attempts(value)[0]) for key, value in rig.dump()["attempts"]]
    assert histories == [(ids[1], [1]), (ids[2], [1, 2]), (ids[3], [3, 4])]


def test_history_of_no_item_goes(rig: Rig) -> None:
    d = Damage(rig)
    for item_id in (bytes(16), d.partly[1], d.after_ready(), b"\xff" * 16):
        d.put(Family.ATTEMPTS, item_id, history_of([1], ""))

    assert rebuild(d) == []

    assert [key[4:] for key in rig.keys(Family.ATTEMPTS)] == sorted([d.dead, d.failed])


def test_marks_keep_what_is_the_items_own(rig: Rig) -> None:
    items = NewItems([b"a", b"b"], batch="known", priorities=[7, 7])
    ids = list(rig.add_items(items).ids)
    [run] = rig.runs(INDEX)
    mark = encode_mark(MarkFields(batch=77, attempts=9, group_max=5, priority=7))
    batch = rig.store.batch()
    batch.delete(INDEX, rig.keys(INDEX)[0])
    value = encode_dead(START_MS, 2, run._replace(mark=mark))
    batch.put(Family.DEAD, rig.queue.prefix + run.last, value)
    rig.store.write(batch)

    losses = list(rebuild_store(rig.store))

    assert f"{QUEUE}: 2 items of a batch that cannot be read: they belong to none" in losses
    assert check_store(rig.store) == []
    [dead] = rig.runs(Family.DEAD)
    assert dead.ids == ids
    assert decode_mark(dead.mark) == MarkFields(group_max=5, priority=7)
    died = decode_dead(run.last, rig.dump()["dead"][0][1])[:2]
    assert died == (START_MS, 2)


def test_dead_letter_with_a_reason_that_there_is_not_is_told_and_made_ready(rig: Rig) -> None:
    """Every peek that met it would fail."""
    d = Damage(rig)
    d.put(Family.DEAD, d.dead, encode_dead(START_MS, 0, d.run(d.dead)))
    write(d)

    assert {each.rule for each in check_store(rig.store)} >= {"I7"}
    list(rebuild_store(rig.store))

    assert check_store(rig.store) == []
    assert d.dead in rig.ready_ids()


def test_items_of_a_block_that_appeared_are_ready(rig: Rig) -> None:
    d = Damage(rig)
    value = encode_block([b"1", b"2"], [b"k", b"l"], [b"", b""])
    d.put(Family.ITEMS, b"\xee" * 16, value)

    assert rebuild(d) == ["2 items whose place was lost: they are ready"]

    [run] = [run for run in rig.runs(INDEX) if run.last == b"\xee" * 16]
    assert (run.count, run.size, decode_mark(run.mark).has_details) == (2, 4, True)
    rig.reopen()
    assert rig.queue.counters.last_id == b"\xee" * 16
