"""The checker as a whole: sound stores pass, and what cannot even be read is reported.

What each rule reports is in `test_check_blocks`, `test_check_items`, `test_check_counts`,
`test_records` and `test_check_loads`.
"""

from functools import partial

import pytest

from queueber.db.families import QUEUE_FAMILIES, Family
from queueber.db.records.blocks import encode_block
from queueber.db.records.keys import queue_prefix
from queueber.db.records.leases import encode_lease
from queueber.db.records.queues import Counters, encode_counters, encode_queue
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.owners import KEY_WIDTHS
from queueber.engine.queue.lifecycle import INVARIANTS
from queueber.limits import DAY_MS
from queueber.model import QueueSettings
from tests.engine.damage import LIVE_BATCH, PRODUCER, Case, Damage
from tests.engine.integrity import (
    test_check_agenda,
    test_check_blocks,
    test_check_callbacks,
    test_check_caps,
    test_check_counts,
    test_check_groups,
    test_check_items,
    test_check_loads,
    test_check_options,
    test_check_routes,
    test_check_schedules,
    test_check_topics,
    test_check_waits,
    test_message_logs,
    test_owners,
    test_records,
)
from tests.support.operations import cancel, create_queue, delete_queue, redrive
from tests.support.rig import QUEUE, Rig

VARIABLE_WIDTH = (
    Family.PRODUCERS,
    Family.LOADS,
    Family.LOGS,
    Family.GROUPS,
    Family.SCHEDULES,
    Family.WAITED_FOR,
)
NAMED = {Family.LOGS, Family.SCHEDULES}
"""Their keys end with the name of a reader or a schedule, which may be short."""

READABLE = {
    Family.QUEUES: encode_queue("x", 0, QueueSettings()),
    Family.ITEMS: encode_block([b""]),
    Family.LEASES: encode_lease(0, b""),
}


def put_short(d: Damage, family: Family) -> None:
    d.put(family, b"\1\2\3", READABLE.get(family, bytes(20)))


def put_unreadable(d: Damage, family: Family) -> None:
    tails = {
        Family.ITEMS: d.ready[1],
        Family.LEFTOVERS: d.partly[3],
        Family.VISIBILITY_INDEX: d.ready_key(),
        Family.DELAYED: d.delayed_key(0),
        Family.DEAD: d.dead,
        Family.LEASES: d.lease,
        Family.ATTEMPTS: d.failed,
        Family.PRODUCERS: PRODUCER,
        Family.BATCHES: LIVE_BATCH,
    }
    d.put(family, tails.get(family, b""), b"\xff" * 7)


def put_stranger(d: Damage, family: Family) -> None:
    d.batch.put(family, queue_prefix(99) + bytes(KEY_WIDTHS[family][-1]), b"")


CASES = [
    *[
        Case(
            "I7",
            f"a value of {family.family_name} cannot be read",
            partial(put_unreadable, family=family),
        )
        for family in (
            Family.QUEUES,
            Family.COUNTERS,
            Family.ITEMS,
            Family.LEFTOVERS,
            Family.VISIBILITY_INDEX,
            Family.DELAYED,
            Family.DEAD,
            Family.LEASES,
            Family.ATTEMPTS,
            Family.PRODUCERS,
            Family.BATCHES,
        )
    ],
    Case(
        "I7",
        "a producer's answer cannot be read",
        lambda d: d.put(Family.PRODUCERS, PRODUCER + (2).to_bytes(8), b"\0\0\0\5"),
    ),
    *[
        Case(
            "I7",
            f"{family.family_name} has a key of no queue",
            partial(put_stranger, family=family),
        )
        for family in QUEUE_FAMILIES
        if family is not Family.QUEUES
    ],
    Case("I5", "a queue has no counters", lambda d: d.delete(Family.COUNTERS, b"")),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_check_store_reports_damage_under_its_rule_and_no_other(rig: Rig, case: Case) -> None:
    assert case.rules_found(rig) == case.rules


@pytest.mark.parametrize(
    "family", [f for f in QUEUE_FAMILIES if f not in NAMED], ids=lambda f: f.family_name
)
def test_check_store_reports_a_key_of_another_width(rig: Rig, family: Family) -> None:
    """What else is wrong then depends on what the key is taken for."""
    damage = Damage(rig)
    put_short(damage, family)
    rig.store.write(damage.batch)

    texts = [violation.text for violation in check_store(rig.store) if violation.rule == "I7"]

    key = (rig.queue.prefix + b"\1\2\3").hex()
    assert f"{family.family_name} has the key {key}" in texts


def test_every_family_of_a_queue_has_a_width() -> None:
    assert set(KEY_WIDTHS) >= set(QUEUE_FAMILIES)
    variable = {family for family, widths in KEY_WIDTHS.items() if len(widths) > 1}
    assert variable == set(VARIABLE_WIDTH)


def test_every_rule_has_a_case() -> None:
    modules = (
        test_check_blocks,
        test_check_items,
        test_check_counts,
        test_records,
        test_check_loads,
    )
    of_topics = (
        test_check_agenda,
        test_check_callbacks,
        test_check_caps,
        test_check_groups,
        test_check_options,
        test_check_routes,
        test_check_schedules,
        test_check_topics,
        test_check_waits,
        test_message_logs,
        test_owners,
    )
    topic_cases = [case for module in of_topics for case in module.CASES]
    cases = [*CASES, *(case for module in modules for case in module.CASES)]

    assert {case.rule for case in [*cases, *topic_cases]} == set(INVARIANTS)


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
    assert redrive(rig.engine, rig.queue, [damage.dead], rig.now_ms) == 1
    assert check_store(rig.store) == []
    assert cancel(rig.engine, rig.queue, [damage.special, damage.dead], rig.now_ms) == [True, True]
    assert check_store(rig.store) == []
    rig.now_ms += 30 * DAY_MS
    rig.sweep_all()
    assert check_store(rig.store) == []
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    delete_queue(rig.engine, QUEUE)
    assert check_store(rig.store) == []


def test_check_store_names_the_queue_at_fault_and_spares_the_others(rig: Rig) -> None:
    create_queue(rig.engine, "innocent", QueueSettings(), rig.now_ms)
    damage = Damage(rig)
    damage.set(ready=99)
    rig.store.write(damage.batch)

    found = check_store(rig.store)

    assert {violation.queue for violation in found} == {QUEUE}


def test_check_store_of_a_queue_that_cannot_be_read_goes_on_with_the_next(rig: Rig) -> None:
    create_queue(rig.engine, "next", QueueSettings(), rig.now_ms)
    damage = Damage(rig)
    damage.put(Family.COUNTERS, b"", b"")
    damage.batch.put(
        Family.COUNTERS, rig.engine.queues.get("next").prefix, encode_counters(Counters(ready=5))
    )
    rig.store.write(damage.batch)

    found = check_store(rig.store)

    assert {(violation.rule, violation.queue) for violation in found} == {
        ("I7", QUEUE),
        ("I5", "next"),
    }


def test_check_store_stops_at_violations_max(rig: Rig) -> None:
    damage = Damage(rig)
    for last in (damage.ready[1], damage.delayed[1], damage.held[2], damage.partly[3]):
        damage.delete(Family.ITEMS, last)
    rig.store.write(damage.batch)

    everything = check_store(rig.store)

    assert len(everything) > 7
    assert check_store(rig.store, violations_max=3) == everything[:3]
    assert check_store(rig.store, violations_max=0) == []
