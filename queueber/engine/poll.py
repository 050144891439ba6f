"""Poll: lease the oldest ready items. Contents stay where they are; only small entries move."""

from collections.abc import Sequence
from itertools import islice

from queueber.db.families import Family
from queueber.db.keys import TIME_BYTES, due_part
from queueber.db.records import decode_item, encode_lease, encode_size
from queueber.engine.state import Engine, QueueState
from queueber.errors import invariant
from queueber.limits import ITEM_WIRE_BYTES
from queueber.model import NOTHING_POLLED, Polled


def poll(
    engine: Engine,
    queue: QueueState,
    counts: Sequence[int],
    *,
    lease_ms: int,
    answer_bytes_max: int,
    now_ms: int,
) -> list[Polled]:
    """Serve several polls in order, each under a lease of its own, until no item is ready.

    The contents of all of them together stay below `answer_bytes_max`, but the first item is always
    given: an item larger than the limit could not be had at all otherwise.
    """
    taken = _choose(engine, queue, sum(counts), answer_bytes_max)
    if not taken:
        return [NOTHING_POLLED] * len(counts)

    prefix = queue.prefix
    ids = [due[TIME_BYTES:] for due, _ in taken]
    stored = engine.store.get_many(Family.ITEMS, [prefix + item_id for item_id in ids])
    invariant(None not in stored, "I2", queue=queue.name, missing=stored.count(None))
    contents = [decode_item(value) for value in stored if value is not None]
    sizes = [encode_size(size) for _, size in taken]

    change = engine.change(queue)
    batch, counters = change.batch, change.counters
    expires_at_ms = now_ms + lease_ms
    lease_ids = engine.ids.mint(_polls_served(counts, len(ids)), now_ms)
    answers: list[Polled] = []
    start = 0
    for lease_id, count in zip(lease_ids, counts, strict=False):
        end = min(start + count, len(ids))
        held = list(zip(ids[start:end], sizes[start:end], strict=True))
        batch.put_many(Family.IN_PROGRESS, [(prefix + i, lease_id + s) for i, s in held])
        batch.put(
            Family.LEASES,
            prefix + lease_id,
            encode_lease(expires_at_ms, b"".join([i + s for i, s in held])),
        )
        batch.put(Family.LEASE_EXPIRY, prefix + due_part(expires_at_ms, lease_id), b"")
        answers.append(Polled(lease_id, ids[start:end], contents[start:end]))
        start = end
    batch.delete_many(Family.VISIBILITY_INDEX, [prefix + due for due, _ in taken])
    counters.ready -= len(ids)
    counters.in_progress += len(ids)
    counters.leases += len(lease_ids)
    counters.polled_total += len(ids)
    counters.ready_low = taken[-1][0]
    counters.last_id = lease_ids[-1]
    counters.lease_due_ms = min(counters.lease_due_ms, expires_at_ms)
    change.commit()

    queue.window.drop_first(len(ids))
    engine.agenda.schedule(queue.queue_id, expires_at_ms)
    answers.extend([NOTHING_POLLED] * (len(counts) - len(answers)))
    return answers


def _choose(
    engine: Engine, queue: QueueState, count: int, answer_bytes_max: int
) -> list[tuple[bytes, int]]:
    window = queue.window
    window.fill(engine.store, queue.prefix, queue.counters.ready_low, count)
    chosen = list(islice(window.entries, count))
    room = answer_bytes_max
    for at, (_, size) in enumerate(chosen):
        room -= size + ITEM_WIRE_BYTES
        if room < 0 and at > 0:
            return chosen[:at]
    return chosen


def _polls_served(counts: Sequence[int], items: int) -> int:
    """How many of the polls get at least one item."""
    served = 0
    for count in counts:
        if items <= 0:
            break
        items -= count
        served += 1
    return served
