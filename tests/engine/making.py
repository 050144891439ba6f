"""Items brought into a state, and what the store says of them."""

from dataclasses import replace

from queueber.db.families import Family
from queueber.db.records.keys import MARK_BYTES, MarkFields, decode_mark
from queueber.model import FailOutcome, NewItems
from tests.support.ending import expire_together
from tests.support.operations import configure_queue
from tests.support.rig import QUEUE, Rig

PLACES = (Family.VISIBILITY_INDEX, Family.DELAYED, Family.DEAD)


def allow_attempts(rig: Rig, count: int) -> None:
    configure_queue(rig.engine, QUEUE, replace(rig.queue.settings, attempts_max=count), rig.now_ms)


def come_back_at_once(rig: Rig) -> None:
    """Items whose lease ran out, or that failed, are ready again without a delay."""
    configure_queue(rig.engine, QUEUE, replace(rig.queue.settings, backoff_ms=(0,)), rig.now_ms)


def make_dead(rig: Rig, items: NewItems, error: str = "it failed") -> list[bytes]:
    """Items that fail at their only attempt, alone in their queue but for the dead."""
    allowed = rig.queue.settings.attempts_max
    allow_attempts(rig, 1)
    ids = list(rig.add_items(items).ids)
    for polled in rig.poll_many([1] * len(ids)):
        assert rig.fail(polled.ids, polled.lease_id, error) == [FailOutcome.DIED]
    allow_attempts(rig, allowed)
    return ids


def make_quarantined(rig: Rig, count: int) -> list[bytes]:
    """Ready items, each of which may go together with half as many."""
    ids = rig.add(*[b"s"] * count)
    polled = rig.poll(count)
    assert polled.ids == ids
    expire_together(rig.engine, rig.queue, [polled.lease_id], rig.now_ms)
    return ids


def whereabouts(rig: Rig, item_id: bytes) -> tuple[Family, MarkFields]:
    """The one family that has the item, and its mark there."""
    entries = [
        (family, key[-16:], value)
        for family in PLACES
        for key, value in rig.dump()[family.family_name]
    ]
    entries += [(Family.LEASES, held_id, mark) for held_id, mark in rig.held()]
    ((family, value),) = [(family, value) for family, i, value in entries if i == item_id]
    return family, decode_mark(value[-MARK_BYTES:])


def mark_of(rig: Rig, item_id: bytes) -> MarkFields:
    return whereabouts(rig, item_id)[1]


def counters_aside(rig: Rig) -> dict[str, list[tuple[bytes, bytes]]]:
    """All that the store holds but the counters."""
    return {**rig.dump(), "counters": []}
