"""The checker: sound stores pass, and damage of every kind is reported under its rule."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from queueber.db.families import QUEUE_FAMILIES, Family
from queueber.db.keys import NEVER_MS, due_part, queue_prefix
from queueber.db.records import (
    Counters,
    decode_counters,
    decode_lease,
    encode_counters,
    encode_in_progress,
    encode_item,
    encode_lease,
    encode_queue,
    encode_size,
)
from queueber.db.store import Batch
from queueber.engine.invariants import _KEY_BYTES, Violation, check_store
from queueber.engine.lifecycle import INVARIANTS
from queueber.engine.queues import create_queue, delete_queue
from queueber.errors import QueueberError
from queueber.model import QueueSettings
from tests.support.rig import QUEUE, Rig


class Damage:
    """A store with two ready, two delayed and three held items, to be damaged by hand."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.prefix = rig.queue.prefix
        self.held = rig.add(b"h1", b"h2", b"h3")
        self.ready = rig.add(b"r1", b"r22")
        self.delayed = rig.add(b"d1", b"d2", delays_ms=[100, 200])
        self.lease, self.other_lease = (
            polled.lease_id for polled in rig.poll_many([2, 1], lease_ms=1000)
        )
        self.batch: Batch = rig.store.batch()

    def put(self, family: Family, tail: bytes, value: bytes) -> None:
        self.batch.put(family, self.prefix + tail, value)

    def delete(self, family: Family, tail: bytes) -> None:
        self.batch.delete(family, self.prefix + tail)

    def ready_key(self, at: int) -> bytes:
        return due_part(self.rig.now_ms, self.ready[at])

    def delayed_key(self, at: int) -> bytes:
        return due_part(self.rig.now_ms + 100 * (at + 1), self.delayed[at])

    def expiry_key(self) -> bytes:
        return due_part(self.rig.now_ms + 1000, self.lease)

    def change_counters(self, change: Callable[[Counters], None]) -> None:
        counters = decode_counters(self.rig.store.get(Family.COUNTERS, self.prefix) or b"")
        change(counters)
        self.put(Family.COUNTERS, b"", encode_counters(counters))

    def change_lease(self, change: Callable[[bytes], bytes], later_ms: int = 0) -> None:
        entry = self.rig.store.get(Family.LEASES, self.prefix + self.lease) or b""
        expires_at_ms, held = decode_lease(entry)
        self.put(Family.LEASES, self.lease, encode_lease(expires_at_ms + later_ms, change(held)))

    def set(self, **values: int | bytes) -> None:
        def change(counters: Counters) -> None:
            for name, value in values.items():
                setattr(counters, name, value)

        self.change_counters(change)


@dataclass(frozen=True)
class Case:
    rule: str
    text: str
    damage: Callable[[Damage], None]


def _both(*steps: Callable[[Damage], None]) -> Callable[[Damage], None]:
    def damage(d: Damage) -> None:
        for step in steps:
            step(d)

    return damage


def _unreadable(family: Family) -> Callable[[Damage], None]:
    def damage(d: Damage) -> None:
        tails = {Family.ITEMS: d.ready[0], Family.LEASES: d.lease}
        d.put(family, tails.get(family, b""), b"\xff" * 40)

    return damage


SIZE_2 = encode_size(2)
STRANGER = b"\0" * 15 + b"\1"

READABLE = {
    Family.QUEUES: encode_queue("x", 0, QueueSettings()),
    Family.ITEMS: encode_item(b""),
    Family.LEASES: encode_lease(0, b""),
}

CASES = [
    Case("I1", "an item is nowhere", lambda d: d.delete(Family.VISIBILITY_INDEX, d.ready_key(0))),
    Case(
        "I1",
        "an item is ready and in progress",
        lambda d: d.put(Family.VISIBILITY_INDEX, due_part(d.rig.now_ms + 1, d.held[0]), SIZE_2),
    ),
    Case(
        "I1",
        "an item is delayed and in progress",
        lambda d: d.put(Family.DELAYED, due_part(d.rig.now_ms + 100, d.held[0]), SIZE_2),
    ),
    Case(
        "I1",
        "an item is ready and delayed",
        lambda d: d.put(Family.DELAYED, due_part(d.rig.now_ms + 100, d.ready[0]), SIZE_2),
    ),
    Case(
        "I1",
        "an item is ready twice",
        lambda d: d.put(Family.VISIBILITY_INDEX, due_part(d.rig.now_ms + 9, d.ready[0]), SIZE_2),
    ),
    Case(
        "I1",
        "an item is ready twice and another nowhere, so that the numbers agree",
        _both(
            lambda d: d.delete(Family.VISIBILITY_INDEX, d.ready_key(1)),
            lambda d: d.put(
                Family.VISIBILITY_INDEX, due_part(d.rig.now_ms + 9, d.ready[0]), SIZE_2
            ),
        ),
    ),
    Case(
        "I1",
        "an item is ready and delayed and another nowhere, so that the numbers agree",
        _both(
            lambda d: d.delete(Family.DELAYED, d.delayed_key(1)),
            lambda d: d.put(Family.DELAYED, due_part(d.rig.now_ms + 100, d.ready[0]), SIZE_2),
        ),
    ),
    Case("I2", "a ready entry has no item", lambda d: d.delete(Family.ITEMS, d.ready[0])),
    Case("I2", "a delayed entry has no item", lambda d: d.delete(Family.ITEMS, d.delayed[0])),
    Case("I2", "an in-progress entry has no item", lambda d: d.delete(Family.ITEMS, d.held[0])),
    Case(
        "I2",
        "a ready entry has the wrong size",
        lambda d: d.put(Family.VISIBILITY_INDEX, d.ready_key(0), encode_size(3)),
    ),
    Case(
        "I2",
        "a delayed entry has the wrong size",
        lambda d: d.put(Family.DELAYED, d.delayed_key(0), encode_size(3)),
    ),
    Case(
        "I2",
        "an in-progress entry has the wrong size",
        lambda d: d.put(Family.IN_PROGRESS, d.held[0], encode_in_progress(d.lease, 3)),
    ),
    Case(
        "I3",
        "a held item names a lease that does not exist",
        lambda d: d.put(Family.IN_PROGRESS, d.held[0], encode_in_progress(STRANGER, 2)),
    ),
    Case(
        "I3",
        "a held item names the lease of another",
        lambda d: d.put(Family.IN_PROGRESS, d.held[0], encode_in_progress(d.other_lease, 2)),
    ),
    Case("I3", "a lease holds nothing", lambda d: d.change_lease(lambda held: b"")),
    Case("I3", "a lease forgot an item", lambda d: d.change_lease(lambda held: held[20:])),
    Case(
        "I3",
        "a lease holds an item that is ready",
        lambda d: d.change_lease(lambda held: held + d.ready[0] + SIZE_2),
    ),
    Case(
        "I3",
        "a lease holds an item twice",
        lambda d: d.change_lease(lambda held: held + held[:20]),
    ),
    Case(
        "I3",
        "a lease has the wrong size for an item",
        lambda d: d.change_lease(lambda held: held[:16] + encode_size(9) + held[20:]),
    ),
    Case(
        "I4", "a lease has no expiry entry", lambda d: d.delete(Family.LEASE_EXPIRY, d.expiry_key())
    ),
    Case(
        "I4",
        "a lease has a second expiry entry",
        lambda d: d.put(Family.LEASE_EXPIRY, due_part(d.rig.now_ms + 2000, d.lease), b""),
    ),
    Case(
        "I4",
        "an expiry entry has no lease",
        lambda d: d.put(Family.LEASE_EXPIRY, due_part(d.rig.now_ms + 2000, STRANGER), b""),
    ),
    Case(
        "I4",
        "a lease expires at another time than its entry says",
        lambda d: d.change_lease(lambda held: held, later_ms=1),
    ),
    Case("I5", "a queue has no counters", lambda d: d.delete(Family.COUNTERS, b"")),
    Case("I5", "ready is wrong", lambda d: d.set(ready=3)),
    Case("I5", "delayed is wrong", lambda d: d.set(delayed=0)),
    Case("I5", "in_progress is wrong", lambda d: d.set(in_progress=2)),
    Case("I5", "leases is wrong", lambda d: d.set(leases=1)),
    Case("I5", "contents_bytes is wrong", lambda d: d.set(contents_bytes=14)),
    Case("I5", "added_total is wrong", lambda d: d.set(added_total=8)),
    Case("I5", "removed_total is wrong", lambda d: d.set(removed_total=1)),
    Case(
        "I5",
        "an item has other contents than were counted",
        lambda d: d.put(Family.ITEMS, d.ready[0], encode_item(b"longer")),
    ),
    Case(
        "I6",
        "a ready item lies before its mark",
        lambda d: d.set(ready_low=due_part(d.rig.now_ms, d.ready[1])),
    ),
    Case("I6", "a lease lies before its mark", lambda d: d.set(lease_due_ms=NEVER_MS)),
    Case(
        "I6",
        "a delayed item lies before its mark",
        lambda d: d.set(delayed_due_ms=d.rig.now_ms + 101),
    ),
    *[
        Case(
            "I7",
            f"{family.family_name} has a key of another width",
            lambda d, family=family: d.put(  # type: ignore[misc]
                family, b"\1\2\3", READABLE.get(family, SIZE_2 * 5)
            ),
        )
        for family in QUEUE_FAMILIES
    ],
    *[
        Case(
            "I7",
            f"{family.family_name} has a key of no queue",
            lambda d, family=family: d.batch.put(  # type: ignore[misc]
                family, queue_prefix(99) + bytes(_KEY_BYTES[family] - 4), SIZE_2
            ),
        )
        for family in QUEUE_FAMILIES
        if family is not Family.QUEUES
    ],
    *[
        Case("I7", f"a value of {family.family_name} cannot be read", _unreadable(family))
        for family in (Family.QUEUES, Family.COUNTERS, Family.ITEMS, Family.LEASES)
    ],
    Case("I8", "an item is newer than the newest", lambda d: d.set(last_id=d.delayed[0])),
    Case("I8", "a lease is newer than the newest", lambda d: d.set(last_id=d.delayed[1])),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.rule}: {case.text}" for case in CASES])
def test_check_store_reports_damage_under_its_rule(rig: Rig, case: Case) -> None:
    damage = Damage(rig)
    rig.assert_sound()

    case.damage(damage)
    rig.store.write(damage.batch)

    found = check_store(rig.store)
    assert case.rule in {violation.rule for violation in found}


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} == set(INVARIANTS)


def test_check_store_of_a_sound_store_reports_nothing_at_any_step(rig: Rig) -> None:
    assert check_store(rig.store) == []
    damage = Damage(rig)
    assert check_store(rig.store) == []

    rig.extend(damage.lease, 50)
    assert check_store(rig.store) == []
    rig.now_ms += 500
    rig.sweep_all(items_max=1)
    assert check_store(rig.store) == []
    rig.remove(damage.held[2:], damage.other_lease)
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    delete_queue(rig.engine, QUEUE)
    assert check_store(rig.store) == []


def test_check_store_names_the_queue_at_fault_and_spares_the_others(rig: Rig) -> None:
    create_queue(rig.engine, "innocent", QueueSettings(), rig.now_ms)
    damage = Damage(rig)
    damage.set(ready=9)
    rig.store.write(damage.batch)

    found = check_store(rig.store)

    assert {violation.queue for violation in found} == {QUEUE}


def test_check_store_of_a_queue_that_cannot_be_read_goes_on_with_the_next(rig: Rig) -> None:
    create_queue(rig.engine, "next", QueueSettings(), rig.now_ms)
    damage = Damage(rig)
    damage.put(Family.COUNTERS, b"", b"")
    damage.batch.put(
        Family.COUNTERS, rig.engine.queue("next").prefix, encode_counters(Counters(ready=5))
    )
    rig.store.write(damage.batch)

    found = check_store(rig.store)

    assert {(violation.rule, violation.queue) for violation in found} == {
        ("I7", QUEUE),
        ("I5", "next"),
    }


def test_check_store_stops_at_violations_max(rig: Rig) -> None:
    damage = Damage(rig)
    for item_id in (*damage.ready, *damage.delayed, *damage.held):
        damage.delete(Family.ITEMS, item_id)
    rig.store.write(damage.batch)

    everything = check_store(rig.store)

    assert len(everything) > 7
    assert check_store(rig.store, violations_max=3) == everything[:3]
    assert check_store(rig.store, violations_max=0) == []


def test_check_store_reads_across_more_than_a_chunk(rig: Rig) -> None:
    ids = rig.add(*[b"x"] * 2500)
    assert check_store(rig.store) == []
    batch = rig.store.batch()
    batch.delete(Family.ITEMS, rig.queue.prefix + ids[2400])
    rig.store.write(batch)

    assert "I2" in {violation.rule for violation in check_store(rig.store)}


def test_violation_reads_as_a_line() -> None:
    assert str(Violation("I4", "orders", "has no expiry entry")) == "I4 orders: has no expiry entry"
    assert not issubclass(Violation, QueueberError)
