"""The check of leases and counters: damage is reported under its rule, and under no other."""

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS, due_part
from tests.engine.damage import (
    LEVEL,
    STRANGE_RUN,
    STRANGER,
    Case,
    steps,
)
from tests.support.rig import START_MS, Rig

LEASES = [
    Case(
        "I3",
        "a lease is not found by a block of its items",
        lambda d: d.delete(Family.HOLDERS, d.held[2] + d.lease),
    ),
    Case(
        "I3",
        "a lease is found by a block of which it holds nothing",
        lambda d: d.put(Family.HOLDERS, STRANGER + d.lease, b""),
    ),
    Case(
        "I3",
        "a lease that does not exist is found by a block",
        lambda d: d.put(Family.HOLDERS, d.held[2] + STRANGER, b""),
    ),
    Case(
        "I3",
        "a lease is found by another block than that of its items",
        steps(
            lambda d: d.delete(Family.HOLDERS, d.held[2] + d.lease),
            lambda d: d.put(Family.HOLDERS, STRANGER + d.lease, b""),
        ),
    ),
    Case(
        "I3",
        "a lease holds nothing",
        steps(
            lambda d: d.change_lease(lambda runs: []),
            lambda d: d.delete(Family.HOLDERS, d.held[2] + d.lease),
            lambda d: d.count(leased=-2),
        ),
        also={"I1"},
    ),
    Case(
        "I1",
        "a lease forgot an item",
        steps(
            lambda d: d.change_lease(lambda runs: [d.run(d.held[1])]),
            lambda d: d.count(leased=-1),
        ),
    ),
    Case(
        "I1",
        "a lease holds an item that is ready",
        steps(
            lambda d: d.change_lease(lambda runs: [*runs, d.run(d.ready[0])]),
            lambda d: d.put(Family.HOLDERS, d.ready[1] + d.lease, b""),
            lambda d: d.count(leased=1),
        ),
    ),
    Case(
        "I1",
        "a lease holds an item of another lease",
        steps(
            lambda d: d.change_lease(lambda runs: [*runs, d.run(d.held[2])]),
            lambda d: d.put(Family.HOLDERS, d.held[2] + d.lease, b""),
            lambda d: d.count(leased=1),
        ),
    ),
    Case(
        "I2",
        "a lease holds an item that never was",
        steps(
            lambda d: d.change_lease(lambda runs: [*runs, STRANGE_RUN]),
            lambda d: d.put(Family.HOLDERS, STRANGER + d.lease, b""),
            lambda d: d.count(leased=1),
        ),
        also={"I1"},
    ),
    Case(
        "I3",
        "a lease holds an item twice",
        steps(
            lambda d: d.change_lease(lambda runs: [*runs, d.run(d.held[0])]),
            lambda d: d.count(leased=1),
        ),
        also={"I1", "I14"},
    ),
    Case(
        "I4", "a lease has no expiry entry", lambda d: d.delete(Family.LEASE_EXPIRY, d.expiry_key())
    ),
    Case(
        "I4",
        "a lease has a second expiry entry",
        lambda d: d.put(Family.LEASE_EXPIRY, due_part(START_MS + 2000, d.lease), b""),
    ),
    Case(
        "I4",
        "an expiry entry has no lease",
        lambda d: d.put(Family.LEASE_EXPIRY, due_part(START_MS + 2000, STRANGER), b""),
    ),
    Case(
        "I4",
        "a lease expires at another time than its entry says",
        lambda d: d.change_lease(lambda runs: runs, later_ms=1),
    ),
]

COUNTED = ("ready", "delayed", "leased", "dead", "leases", "contents_bytes")
TOTALS = ("added_total", "removed_total", "cancelled_total")

COUNTERS = [
    *[
        Case(
            "I5",
            f"{name} is off by {by}",
            lambda d, name=name, by=by: d.set(**{name: getattr(d.counters, name) + by}),  # type: ignore[misc]
        )
        for name in (*COUNTED, *TOTALS)
        for by in (1, -1)
        if name in COUNTED or by == 1 or name == "added_total"
    ],
    Case("I5", "quarantined is off by 1", lambda d: d.count(quarantined=1)),
    Case(
        "I5",
        "a suspect is not counted",
        lambda d: d.remark(d.ready_key(), group_max=3),
        also={"I2"},  # It is in the level of those that are none.
    ),
    Case(
        "I5",
        "completed_total is off by 1",
        lambda d: d.count(completed_total=1),
        also={"I12"},  # There is a result for each.
    ),
    Case(
        "I5",
        "a level has another number than it should",
        lambda d: d.set(
            levels={**d.counters.levels, LEVEL: (99, d.counters.levels[LEVEL][1])},
        ),
    ),
    Case(
        "I5",
        "a level is kept that has no items",
        lambda d: d.set(levels={**d.counters.levels, 7: (1, bytes(24))}),
    ),
    Case(
        "I5",
        "a level with items is not kept",
        lambda d: d.set(levels={LEVEL: d.counters.levels[LEVEL]}),
    ),
    Case(
        "I6",
        "a ready item lies before the mark of its level",
        lambda d: d.set(
            levels={
                **d.counters.levels,
                LEVEL: (d.counters.levels[LEVEL][0], due_part(START_MS, d.after_ready())),
            }
        ),
    ),
    Case("I6", "a lease lies before its mark", lambda d: d.set(lease_due_ms=NEVER_MS)),
    Case(
        "I6", "a delayed item lies before its mark", lambda d: d.set(delayed_due_ms=START_MS + 101)
    ),
    Case("I8", "a block is newer than the newest", lambda d: d.set(last_id=d.delayed[1])),
    Case(
        "I8",
        "a lease is newer than the newest",
        steps(
            lambda d: d.put(Family.LEASES, b"\xff" * 16, d.get(Family.LEASES, d.lease)),
            lambda d: d.put(Family.LEASE_EXPIRY, due_part(START_MS + 1000, b"\xff" * 16), b""),
            lambda d: d.delete(Family.LEASES, d.lease),
            lambda d: d.delete(Family.LEASE_EXPIRY, d.expiry_key()),
            lambda d: d.put(Family.HOLDERS, d.held[2] + b"\xff" * 16, b""),
            lambda d: d.delete(Family.HOLDERS, d.held[2] + d.lease),
        ),
    ),
]

CASES = [*LEASES, *COUNTERS]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_damage_of_leases_and_counters_is_reported_under_its_rule_and_no_other(
    rig: Rig, case: Case
) -> None:
    assert case.rules_found(rig) == case.rules
