"""The check of items: damage of every kind is reported under its rule, and under no other."""

import pytest

from queueber.db.families import Family
from queueber.db.records.blocks import encode_block
from queueber.db.records.dead_letters import decode_dead, encode_dead
from queueber.db.records.keys import due_part, level_part
from queueber.db.records.runs import (
    Run,
    encode_run,
    new_mark,
)
from queueber.engine.integrity.check_items import ItemsCheck
from tests.engine.damage import (
    FAILED_ONCE,
    LEVEL,
    STRANGER,
    Case,
    Damage,
    steps,
)
from tests.engine.integrity.test_queue_entries import checked_queue
from tests.support.entries import history_of
from tests.support.rig import START_MS, Rig

INDEX = Family.VISIBILITY_INDEX

NOWHERE_OR_TWICE = [
    Case(
        "I1",
        "items are nowhere",
        steps(lambda d: d.delete(INDEX, d.ready_key()), lambda d: d.count(ready=-2)),
    ),
    Case(
        "I1",
        "an item of a run is nowhere",
        steps(
            lambda d: d.delete(INDEX, d.ready_key()),
            lambda d: d.put_ready(d.run(d.ready[0])),
            lambda d: d.count(ready=-1),
        ),
    ),
    Case(
        "I1",
        "an item is ready and in progress",
        steps(lambda d: d.put_ready(d.run(d.held[0])), lambda d: d.count(ready=1)),
        also={"I14"},
    ),
    Case(
        "I1",
        "an item is ready and dead",
        steps(
            lambda d: d.put_ready(d.run(d.dead, mark=FAILED_ONCE)),
            lambda d: d.count(ready=1),
        ),
        also={"I11"},  # Its one history serves two entries.
    ),
    Case(
        "I1",
        "an item is in progress and dead",
        steps(
            lambda d: d.put(Family.DEAD, d.held[0], encode_dead(0, 1, d.run(d.held[0]))),
            lambda d: d.count(dead=1),
        ),
        also={"I14"},
    ),
    Case(
        "I1",
        "an item is ready and delayed",
        steps(
            lambda d: d.put(
                Family.DELAYED,
                due_part(START_MS + 100, d.ready[0]),
                encode_run(d.run(d.ready[0])),
            ),
            lambda d: d.place(100, d.ready[0]),
            lambda d: d.count(delayed=1),
        ),
    ),
    Case(
        "I1",
        "items are ready twice",
        steps(lambda d: d.put_ready(d.run(d.ready[0], 2), 9), lambda d: d.count(ready=2)),
        also={"I9"},  # A run can have one place only.
    ),
    Case(
        "I1",
        "an item is ready and in progress, and another nowhere, so that the numbers agree",
        steps(
            lambda d: d.delete(INDEX, d.ready_key()),
            lambda d: d.put_ready(d.run(d.ready[1])),
            lambda d: d.put_ready(d.run(d.held[0])),
            lambda d: d.count(),
        ),
        also={"I14"},
    ),
    Case(
        "I1",
        "an item is dead too, and another nowhere, so that the numbers agree",
        steps(
            lambda d: d.delete(INDEX, d.ready_key()),
            lambda d: d.put_ready(d.run(d.ready[1])),
            lambda d: d.put(Family.DEAD, d.special, encode_dead(0, 1, special_run(d))),
            lambda d: d.count(ready=-1, dead=1),
        ),
    ),
]

WITHOUT_BLOCK = [
    Case(
        "I2",
        f"runs of {family.family_name} have no block",
        lambda d, last=last, items=items, size=size: (  # type: ignore[misc]
            d.delete(Family.ITEMS, last(d)),
            d.count(contents_bytes=-size, added_total=-items),
        ),
        also={"I1"},
    )
    for family, last, items, size in (
        (INDEX, lambda d: d.ready[1], 2, 5),
        (Family.DELAYED, lambda d: d.delayed[1], 2, 4),
        (Family.LEASES, lambda d: d.held[2], 3, 6),
        (Family.DEAD, lambda d: d.dead, 1, 2),
    )
]

RUNS = [
    Case(
        "I2", "a ready run has another size", lambda d: d.change_run(INDEX, d.ready_key(), size=3)
    ),
    Case(
        "I2",
        "a delayed run has another size",
        lambda d: d.change_run(Family.DELAYED, d.delayed_key(0), size=3),
    ),
    Case(
        "I2",
        "a dead run has another size",
        lambda d: d.put(Family.DEAD, d.dead, encode_dead(0, 1, dead_run(d)._replace(size=3))),
    ),
    Case(
        "I2",
        "a run in a lease has another size",
        lambda d: d.change_lease(lambda runs: [run._replace(size=3) for run in runs]),
    ),
    Case(
        "I2",
        "a run is at another position of its block",
        lambda d: d.change_run(Family.DELAYED, d.delayed_key(0), at=1, span=3),
    ),
    Case(
        "I2",
        "a run is in a block of another number of ids",
        lambda d: d.change_run(INDEX, d.ready_key(), at=1, span=3),
    ),
    Case(
        "I2",
        "a run is at no position of its block",
        lambda d: d.change_run(INDEX, d.ready_key(), at=1),
    ),
    Case(
        "I2",
        "a run has more items than its block",
        steps(
            lambda d: d.change_run(INDEX, d.ready_key(), count=3),
            lambda d: d.count(ready=1),
        ),
        also={"I1"},
    ),
    Case(
        "I2",
        "a run has no items",
        steps(
            lambda d: d.change_run(INDEX, d.ready_key(), count=0),
            lambda d: d.count(ready=-2),
        ),
        also={"I1"},
    ),
    Case(
        "I2",
        "a run has an item that is gone",
        steps(
            lambda d: d.delete(INDEX, d.ready_at(0, d.partly[0])),
            lambda d: d.put_ready(d.run(d.partly[0], 2)),
            lambda d: d.count(ready=1),
        ),
        also={"I1"},
    ),
    Case("I2", "a mark denies the details", lambda d: d.remark(special_key(d), flags=0)),
    Case("I2", "a mark claims details", lambda d: d.remark(d.ready_key(), flags=1)),
    Case("I2", "a mark has another priority", lambda d: d.remark(d.ready_key(), priority=6)),
    Case(
        "I2",
        "items are ready in the level of another priority",
        steps(
            lambda d: d.delete(INDEX, d.ready_key()),
            lambda d: d.put(
                INDEX, level_part(0) + d.ready_key()[1:], encode_run(d.run(d.ready[0], 2))
            ),
            lambda d: d.set(
                levels={
                    0: (3, due_part(START_MS, d.ready[0])),
                    LEVEL: (d.counters.levels[LEVEL][0] - 2, d.counters.levels[LEVEL][1]),
                }
            ),
        ),
    ),
    Case(
        "I5",
        "a block and its run are larger than was counted",
        steps(
            lambda d: d.put(Family.ITEMS, d.ready[1], encode_block([b"longer", b"r22"])),
            lambda d: d.change_run(INDEX, d.ready_key(), size=9),
        ),
    ),
]

PLACES = [
    Case("I9", "a delayed run has no place", lambda d: d.delete(Family.PLACES, d.delayed[0])),
    Case("I9", "a moved run has no place", lambda d: d.delete(Family.PLACES, d.moved)),
    Case("I9", "a place has another time", lambda d: d.place(11, d.moved)),
    Case("I9", "a run has a place without need", lambda d: d.place(0, d.ready[1])),
    Case("I9", "an item inside a run has a place", lambda d: d.place(5, d.ready[0])),
    Case("I9", "a held run has a place", lambda d: d.place(5, d.held[1])),
    Case("I9", "a dead item has a place", lambda d: d.place(5, d.dead)),
    Case("I9", "an item that never was has a place", lambda d: d.place(5, STRANGER)),
]

ATTEMPTS = [
    Case("I11", "a failed item has no history", lambda d: d.delete(Family.ATTEMPTS, d.failed)),
    Case("I11", "a dead item has no history", lambda d: d.delete(Family.ATTEMPTS, d.dead)),
    Case(
        "I11",
        "a history has one time too many",
        lambda d: d.put(Family.ATTEMPTS, d.failed, history_of([1, 2], "")),
    ),
    Case(
        "I11",
        "an item that never failed has a history",
        lambda d: d.put(Family.ATTEMPTS, d.ready[0], history_of([1], "")),
    ),
    Case(
        "I11",
        "an item that never was has a history",
        lambda d: d.put(Family.ATTEMPTS, STRANGER, history_of([1], "")),
    ),
    Case(
        "I11",
        "an item inside a run has no history",
        steps(
            lambda d: d.remark(d.ready_key(), attempts=1),
            lambda d: d.put(Family.ATTEMPTS, d.ready[1], history_of([1], "")),
            lambda d: d.put(Family.ATTEMPTS, STRANGER, history_of([1], "")),
        ),
    ),
    Case(
        "I11",
        "a mark lost its attempts",
        lambda d: d.remark(d.ready_at(0, d.failed), attempts=0),
    ),
]

CASES = [*NOWHERE_OR_TWICE, *WITHOUT_BLOCK, *RUNS, *PLACES, *ATTEMPTS]


def special_key(d: Damage) -> bytes:
    return level_part(0) + due_part(START_MS, d.special)


def special_run(d: Damage) -> Run:
    return d.run(d.special, mark=new_mark(1, 9, has_details=True))


def dead_run(d: Damage) -> Run:
    return decode_dead(d.dead, d.get(Family.DEAD, d.dead))[2]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_damage_of_items_is_reported_under_its_rule_and_no_other(rig: Rig, case: Case) -> None:
    assert case.rules_found(rig) == case.rules


def test_check_of_sound_items_finds_nothing_and_sums_up_live_batches(rig: Rig) -> None:
    Damage(rig)
    check = ItemsCheck(checked_queue(rig))

    assert list(check.run()) == []

    assert {number: live.items for number, live in check.batches.items()} == {1: 1}
