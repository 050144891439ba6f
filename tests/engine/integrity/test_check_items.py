"""The check of items: damage of every kind is reported under its rule, and under no other."""

import pytest

from queueber.db.families import Family
from queueber.db.records.items import HELD_BYTES, encode_item
from queueber.db.records.keys import (
    MarkFields,
    due_part,
    encode_attempts,
    encode_dead,
    encode_mark,
    level_part,
)
from queueber.engine.integrity.check_items import ItemsCheck
from tests.engine.damage import (
    LEVEL,
    MARK_2,
    STRANGER,
    Case,
    Damage,
    steps,
)
from tests.engine.integrity.test_queue_entries import checked_queue
from tests.support.entries import plain_mark
from tests.support.rig import START_MS, Rig

INDEX = Family.VISIBILITY_INDEX

NOWHERE_OR_TWICE = [
    Case(
        "I1",
        "an item is nowhere",
        steps(lambda d: d.delete(INDEX, d.ready_key(0)), lambda d: d.count(ready=-1)),
    ),
    Case(
        "I1",
        "an item is ready and in progress",
        steps(lambda d: d.put(INDEX, d.ready_at(0, d.held[0]), MARK_2), lambda d: d.count(ready=1)),
    ),
    Case(
        "I1",
        "an item is ready and dead",
        steps(
            lambda d: d.put(INDEX, d.ready_at(0, d.dead), encode_mark(MarkFields(2, attempts=1))),
            lambda d: d.count(ready=1),
        ),
        also={"I11"},  # Its one history serves two entries.
    ),
    Case(
        "I1",
        "an item is in progress and dead",
        steps(
            lambda d: d.put(Family.DEAD, d.held[0], encode_dead(0, 1, MARK_2)),
            lambda d: d.count(dead=1),
        ),
    ),
    Case(
        "I1",
        "an item is ready and delayed",
        steps(
            lambda d: d.put(Family.DELAYED, due_part(START_MS + 100, d.ready[0]), MARK_2),
            lambda d: d.count(delayed=1),
        ),
        also={"I9"},  # It can have one place only.
    ),
    Case(
        "I1",
        "an item is ready twice",
        steps(
            lambda d: d.put(INDEX, d.ready_at(9, d.ready[0]), MARK_2), lambda d: d.count(ready=1)
        ),
        also={"I9"},
    ),
    Case(
        "I1",
        "an item is ready and in progress, and another nowhere, so that the numbers agree",
        steps(
            lambda d: d.delete(INDEX, d.ready_key(0)),
            lambda d: d.put(INDEX, d.ready_at(0, d.held[0]), MARK_2),
            lambda d: d.count(),
        ),
    ),
    Case(
        "I1",
        "an item is dead too, and another nowhere, so that the numbers agree",
        steps(
            lambda d: d.delete(INDEX, d.ready_key(0)),
            lambda d: d.put(Family.DEAD, d.held[0], encode_dead(0, 1, MARK_2)),
            lambda d: d.count(ready=-1, dead=1),
        ),
    ),
]

WITHOUT_ITEM = [
    Case(
        "I2",
        f"an entry of {family.family_name} has no item",
        lambda d, item=item: (  # type: ignore[misc]
            d.delete(Family.ITEMS, item(d)),
            d.count(contents_bytes=-2, added_total=-1),
        ),
        also={"I1"},
    )
    for family, item in {
        INDEX: lambda d: d.ready[0],
        Family.DELAYED: lambda d: d.delayed[0],
        Family.LEASES: lambda d: d.held[0],
        Family.DEAD: lambda d: d.dead,
    }.items()
]

MARKS = [
    Case("I2", "a ready mark has another size", lambda d: d.remark(d.ready_key(0), size=3)),
    Case("I2", "a mark denies the details", lambda d: d.remark(special_key(d), flags=0)),
    Case("I2", "a mark claims details", lambda d: d.remark(d.ready_key(0), flags=1)),
    Case("I2", "a mark has another priority", lambda d: d.remark(d.ready_key(0), priority=6)),
    Case(
        "I2",
        "an item is ready in the level of another priority",
        steps(
            lambda d: d.delete(INDEX, d.ready_key(0)),
            lambda d: d.put(INDEX, level_part(0) + d.ready_key(0)[1:], MARK_2),
            lambda d: d.set(
                levels={
                    0: (2, due_part(START_MS, d.ready[0])),
                    LEVEL: (d.counters.levels[LEVEL][0] - 1, d.counters.levels[LEVEL][1]),
                }
            ),
        ),
    ),
    Case(
        "I2",
        "a delayed mark has another size",
        lambda d: d.put(Family.DELAYED, d.delayed_key(0), plain_mark(3)),
    ),
    Case(
        "I2",
        "a dead mark has another size",
        lambda d: d.put(
            Family.DEAD, d.dead, encode_dead(0, 1, encode_mark(MarkFields(3, 1, attempts=1)))
        ),
    ),
    Case(
        "I2",
        "a mark in a lease has another size",
        lambda d: d.change_lease(lambda held: held[:16] + plain_mark(3) + held[HELD_BYTES:]),
    ),
    Case(
        "I5",
        "an item and its mark are larger than was counted",
        steps(
            lambda d: d.put(Family.ITEMS, d.ready[0], encode_item(b"longer")),
            lambda d: d.remark(d.ready_key(0), size=6),
        ),
    ),
]

PLACES = [
    Case("I9", "a delayed item has no place", lambda d: d.delete(Family.PLACES, d.delayed[0])),
    Case("I9", "a moved item has no place", lambda d: d.delete(Family.PLACES, d.moved)),
    Case("I9", "a place has another time", lambda d: d.place(11, d.moved)),
    Case("I9", "an item has a place without need", lambda d: d.place(0, d.ready[0])),
    Case("I9", "a held item has a place", lambda d: d.place(5, d.held[0])),
    Case("I9", "a dead item has a place", lambda d: d.place(5, d.dead)),
    Case("I9", "an item that never was has a place", lambda d: d.place(5, STRANGER)),
]

ATTEMPTS = [
    Case("I11", "a failed item has no history", lambda d: d.delete(Family.ATTEMPTS, d.failed)),
    Case("I11", "a dead item has no history", lambda d: d.delete(Family.ATTEMPTS, d.dead)),
    Case(
        "I11",
        "a history has one time too many",
        lambda d: d.put(Family.ATTEMPTS, d.failed, encode_attempts([1, 2], "")),
    ),
    Case(
        "I11",
        "an item that never failed has a history",
        lambda d: d.put(Family.ATTEMPTS, d.ready[0], encode_attempts([1], "")),
    ),
    Case(
        "I11",
        "an item that never was has a history",
        lambda d: d.put(Family.ATTEMPTS, STRANGER, encode_attempts([1], "")),
    ),
    Case(
        "I11",
        "a mark lost its attempts",
        lambda d: d.remark(d.ready_at(0, d.failed), attempts=0),
    ),
]

CASES = [*NOWHERE_OR_TWICE, *WITHOUT_ITEM, *MARKS, *PLACES, *ATTEMPTS]


def special_key(d: Damage) -> bytes:
    return level_part(0) + due_part(START_MS, d.special)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_damage_of_items_is_reported_under_its_rule_and_no_other(rig: Rig, case: Case) -> None:
    assert case.rules_found(rig) == case.rules


def test_check_of_sound_items_finds_nothing_and_sums_up_live_batches(rig: Rig) -> None:
    Damage(rig)
    check = ItemsCheck(checked_queue(rig))

    assert list(check.run()) == []

    assert {number: live.items for number, live in check.batches.items()} == {1: 1}
