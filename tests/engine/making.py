"""Items brought into a state, and what the store says of them."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from queueber.db.families import Family
from queueber.db.records.runs import MarkFields, Run, decode_mark, encode_mark, make_run
from queueber.ids import ItemId
from queueber.limits import HOUR_MS
from queueber.model import Callback, FailOutcome, ItemOptions, NewItems, Schedule
from tests.support.callbacks import when_complete
from tests.support.ending import expire_together
from tests.support.operations import configure_queue
from tests.support.rig import QUEUE, Rig
from tests.support.schedules import put_schedule

STATES = (Family.VISIBILITY_INDEX, Family.DELAYED, Family.DEAD, Family.LEASES)


PLAIN = MarkFields()


def run_of(
    ids: Sequence[bytes], size: int, mark: MarkFields = PLAIN, *, at: int = 0, span: int = 0
) -> Run:
    """The run of consecutive items; without a span it ends its block."""
    count = len(ids)
    return make_run(ItemId(ids[-1]), count, at, span or at + count, size, encode_mark(mark))


def parts_of(
    ids: Sequence[bytes],
    contents: Sequence[bytes],
    positions: Sequence[int],
    mark: MarkFields = PLAIN,
) -> list[Run]:
    """The runs of the items at some positions of a block that has these ids and contents."""
    runs = []
    # Neighbours differ by as much as their places in the list do.
    for _, group in groupby(enumerate(positions), lambda each: each[1] - each[0]):
        of_run = [position for _, position in group]
        start, stop = of_run[0], of_run[-1] + 1
        size = sum(len(contents[at]) for at in of_run)
        runs.append(run_of(ids[start:stop], size, mark, at=start, span=len(ids)))
    return runs


def allow_attempts(rig: Rig, count: int) -> None:
    configure_queue(rig.engine, QUEUE, replace(rig.queue.settings, attempts_max=count), rig.now_ms)


def come_back_at_once(rig: Rig) -> None:
    """Items whose lease ran out, or that failed, are ready again without a delay."""
    configure_queue(rig.engine, QUEUE, replace(rig.queue.settings, backoff_ms=(0,)), rig.now_ms)


def add_runs(rig: Rig, contents: Sequence[bytes]) -> list[bytes]:
    """Ready items in their order, each a run of its own, though their blocks have many.

    Neighbours became ready at different times.
    """
    delays_ms = [1 + n % 2 for n in range(len(contents))]
    ids = rig.add(*contents, delays_ms=delays_ms)
    rig.now_ms += 2
    rig.sweep_all()
    assert [run.count for run in rig.runs(Family.VISIBILITY_INDEX)] == [1] * len(ids)
    return ids[::2] + ids[1::2]


def make_dead(rig: Rig, items: NewItems, error: str = "it failed") -> list[bytes]:
    """Items that fail at their only attempt, alone in their queue but for the dead."""
    allowed = rig.queue.settings.attempts_max
    allow_attempts(rig, 1)
    ids = list(rig.add_items(items).ids)
    for polled in rig.poll_many([1] * len(ids)):
        assert rig.fail(polled.ids, polled.lease_id, error) == [FailOutcome.DIED]
    allow_attempts(rig, allowed)
    return ids


def make_dead_run(rig: Rig, items: NewItems, error: str = "it failed") -> list[bytes]:
    """As `make_dead`, but they fail in one call, so those of a block die as one run."""
    allowed = rig.queue.settings.attempts_max
    allow_attempts(rig, 1)
    ids = list(rig.add_items(items).ids)
    polled = rig.poll(len(ids), bytes_max=1 << 30)
    assert rig.fail(polled.ids, polled.lease_id, error) == [FailOutcome.DIED] * len(ids)
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
    ((family, run),) = [
        (family, run) for family in STATES for run in rig.runs(family) if item_id in run.ids
    ]
    return family, decode_mark(run.mark)


def mark_of(rig: Rig, item_id: bytes) -> MarkFields:
    return whereabouts(rig, item_id)[1]


def counters_aside(rig: Rig) -> dict[str, list[tuple[bytes, bytes]]]:
    """All that the store holds but the counters."""
    return {**rig.dump(), "counters": []}


def park_one(rig: Rig) -> None:
    """Cap the queue by an attribute: an item of a key is leased, and another one is parked, and is
    let go after a second."""
    settings = replace(rig.queue.settings, cap_by="who", cap_by_rate_items=1, cap_by_rate_ms=1000)
    configure_queue(rig.engine, QUEUE, settings, rig.now_ms)
    rig.add_items(NewItems([b"x", b"y"], priorities=[9, 9], attributes=[{"who": "a"}] * 2))
    rig.poll(2, lease_ms=900)
    assert rig.queue.counters.parked == 1


def expire_one(rig: Rig) -> None:
    """An item with options of its own, which expires in two hours."""
    own = ItemOptions(attempts_max=2, expires_ms=2 * HOUR_MS)
    rig.add_items(NewItems([b"expires"], priorities=[0], options=[own]))


def wait_for_one(rig: Rig) -> None:
    """An item that waits for another."""
    (awaited,) = rig.add(b"awaited")
    rig.add_items(NewItems([b"later"], after=[awaited]))


def schedule_one(rig: Rig) -> None:
    put_schedule(rig.engine, Schedule("hourly", "@hourly", QUEUE), rig.now_ms)


def own_options_and_callback(rig: Rig) -> None:
    """An item with options of its own, in a batch with a callback."""
    options = [ItemOptions(attempts_max=5)]
    rig.add_items(NewItems([b"o"], options=options, batch="called back"))
    when_complete(rig.engine, rig.queue, "called back", Callback(QUEUE, b"c"), rig.now_ms)
