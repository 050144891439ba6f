"""Rebuild: whatever is missing or broken, every rule holds afterwards, and what is whole stays."""

import os
from random import Random

import pytest

from queueber.db.families import QUEUE_FAMILIES, Family
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.rebuild_store import broken_queues, rebuild_store
from queueber.engine.integrity.records import HALF_COMMITTED
from queueber.engine.open import open_engine
from queueber.errors import StorageCorrupt
from queueber.ids import IdSource
from queueber.limits import ATTEMPTS_CEILING
from queueber.model import NewItems, QueueSettings
from tests.engine.damage import Damage
from tests.engine.making import allow_attempts, come_back_at_once, mark_of
from tests.support.dumps import dump
from tests.support.operations import create_queue, fail
from tests.support.random_damage import damage_some
from tests.support.rig import QUEUE, Rig

SEEDS = int(os.environ.get("QUEUEBER_TEST_REBUILD_SEEDS", "60"))


def test_sound_store_stays_as_it_is(rig: Rig) -> None:
    Damage(rig)
    before = dump(rig.store)

    assert list(rebuild_store(rig.store)) == []

    assert dump(rig.store) == before


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_rule_holds_after_any_damage(rig: Rig, seed: int) -> None:
    Damage(rig)
    random = Random(seed)
    damage_some(rig.store, QUEUE_FAMILIES, random)
    was_broken = bool(broken_queues(rig.store))

    losses = list(rebuild_store(rig.store))

    left = [each for each in check_store(rig.store) if HALF_COMMITTED not in each.text]
    assert left == []
    # A loss that is not told would be a silent one; an entry may also have been of no use.
    assert was_broken or losses == []
    # And a server can go on with it.
    engine = open_engine(rig.store, IdSource(random))
    create_queue(engine, "another", QueueSettings(), rig.now_ms)
    assert check_store(rig.store) == []


def test_items_that_lost_their_place_are_ready_and_leases_end(rig: Rig) -> None:
    held, lost = rig.add(b"held", b"lost")
    rig.poll(1)
    assert rig.stats().leased == 1
    batch = rig.store.batch()
    batch.delete_range(Family.VISIBILITY_INDEX, rig.queue.prefix, b"\xff" * 4)
    rig.store.write(batch)

    losses = list(rebuild_store(rig.store))

    assert losses == [
        f"{QUEUE}: 1 leases ended: their items are ready again",
        f"{QUEUE}: 1 items whose place was lost: they are ready",
    ]
    rig.reopen()
    assert rig.ready_ids() == [held, lost]
    assert rig.stats().added_total == 2


def test_lost_items_of_a_batch_count_as_dead(rig: Rig) -> None:
    (lost,) = rig.add_items(NewItems([b"a"], batch="fan-out")).ids
    rig.add_items(NewItems([b"b", b"c"], batch="fan-out"))
    batch = rig.store.batch()
    batch.delete(Family.ITEMS, rig.queue.prefix + lost)
    rig.store.write(batch)

    losses = list(rebuild_store(rig.store))

    assert f"{QUEUE}: 1 items of batches that are lost: they count as dead" in losses
    assert broken_queues(rig.store) == set()
    rig.reopen()
    assert rig.stats().ready == 2


def test_item_that_failed_more_often_than_is_kept_has_all_its_attempts(rig: Rig) -> None:
    """Without a limit of attempts an item may fail more often than the times that are stored."""
    allow_attempts(rig, 0)
    come_back_at_once(rig)
    (item_id,) = rig.add(b"a")
    for _ in range(ATTEMPTS_CEILING + 3):
        polled = rig.poll()
        fail(rig.engine, rig.queue, polled.ids, [polled.lease_id], ["no"], [None], rig.now_ms)
    batch = rig.store.batch()
    batch.delete(Family.COUNTERS, rig.queue.prefix)
    rig.store.write(batch)

    assert check_store(rig.store) != []

    assert list(rebuild_store(rig.store)) == []

    assert check_store(rig.store) == []
    assert mark_of(rig, item_id).attempts == ATTEMPTS_CEILING + 3


def test_queue_without_a_record_is_kept_under_another_name(rig: Rig) -> None:
    ids = rig.add(b"a", b"b")
    batch = rig.store.batch()
    batch.delete(Family.QUEUES, rig.queue.prefix)
    batch.delete(Family.DEFAULT, b"next_queue")
    rig.store.write(batch)

    losses = list(rebuild_store(rig.store))

    assert losses == ["recovered-1: the record of queue number 1 was lost, with name and settings"]
    rig.reopen()
    assert rig.engine.queues.get("recovered-1").counters.ready == len(ids)
    assert rig.engine.kernel.numbers.next == 2


def test_results_before_a_lost_block_go_and_offsets_go_on(rig: Rig) -> None:
    for number in range(3):
        (item_id,) = rig.add(b"%d" % number)
        rig.complete([item_id], rig.poll(1).lease_id)
    second = rig.keys(Family.LOG_BLOCKS)[1]
    batch = rig.store.batch()
    batch.delete(Family.LOG_BLOCKS, rig.queue.prefix + second[-8:])
    rig.store.write(batch)

    losses = list(rebuild_store(rig.store))

    assert f"{QUEUE}: 1 results before such a block" in losses
    rig.reopen()
    head = rig.queue.results.head
    assert (head.first_offset, head.next_offset, rig.stats().completed_total) == (2, 3, 3)


def test_only_the_damaged_queue_is_touched(rig: Rig) -> None:
    rig.add(b"a")
    rig.poll(1)
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    other = rig.engine.queues.get("other").prefix
    batch = rig.store.batch()
    batch.delete(Family.COUNTERS, other)
    rig.store.write(batch)

    assert list(rebuild_store(rig.store)) == []

    assert broken_queues(rig.store) == set()
    rig.reopen()
    assert rig.stats().leased == 1


def test_store_of_another_format_is_refused(rig: Rig) -> None:
    batch = rig.store.batch()
    batch.put(Family.DEFAULT, b"format", (99).to_bytes(4))
    rig.store.write(batch)

    with pytest.raises(StorageCorrupt, match="format 99"):
        list(rebuild_store(rig.store))
