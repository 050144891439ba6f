"""Poll: lease ready items. Contents stay where they are; only small entries move.

Which ones, and how many may go together, is said in `choice.py`.
"""

from collections.abc import Sequence
from itertools import chain
from typing import cast

from queueber.db.families import Family
from queueber.db.records.items import decode_details, decode_items, unpack_attributes
from queueber.db.records.keys import TIME_BYTES, time_part
from queueber.db.records.leases import encode_lease
from queueber.db.records.marks import (
    mark_attempts,
    mark_batch,
    mark_has_details,
)
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.queue.holders import holder_keys
from queueber.engine.queue.selection import Choice, Company
from queueber.engine.records.batches import batch_name
from queueber.errors import invariant
from queueber.model import NO_DETAILS, NOTHING_POLLED, ItemDetails, Polled


def poll(
    engine: Engine,
    queue: QueueState,
    counts: Sequence[int],
    *,
    lease_ms: int,
    answer_bytes_max: int,
    now_ms: int,
    company: Company | None = None,
) -> list[Polled]:
    """Serve several polls in order, each under a lease of its own, until no item is ready.

    The contents of all of them together stay below `answer_bytes_max`, but the first item is always
    given: an item larger than the limit could not be had at all otherwise. `company` is what the
    caller holds already, when its leases end together.
    """
    if not queue.counters.ready or queue.is_paused(now_ms):
        return [NOTHING_POLLED] * len(counts)
    choice = Choice(
        engine, queue, sum(counts), room=answer_bytes_max, company=company, now_ms=now_ms
    )
    groups = []
    for count in counts:
        group = choice.take(count)
        if not group:
            break
        groups.append(group)
    if not groups:
        return [NOTHING_POLLED] * len(counts)

    change = Change(engine, queue)
    counters = change.counters
    expires_at_ms = now_ms + lease_ms
    lease_ids = engine.ids.mint(len(groups), now_ms)
    ids_of = [[due[TIME_BYTES:] for due, _ in group] for group in groups]
    marks_of = [[mark for _, mark in group] for group in groups]
    _hold(queue, change, lease_ids, ids_of, marks_of, expires_at_ms)
    ids = list(chain.from_iterable(ids_of))
    contents, records = _read(engine, queue, ids)
    answers: list[Polled] = []
    start = 0
    for lease_id, of_lease, marks in zip(lease_ids, ids_of, marks_of, strict=True):
        end = start + len(of_lease)
        details = NO_DETAILS
        if not choice.is_plain:
            details = _details(engine, queue, of_lease, marks, records)
        answers.append(Polled(lease_id, of_lease, contents[start:end], details))
        start = end
    for level, taken in choice.taken():
        change.draw_ready(level, taken)
    counters.leased += len(ids)
    counters.leases += len(lease_ids)
    counters.leases_total += len(lease_ids)
    counters.polled_total += len(ids)
    counters.last_id = lease_ids[-1]
    counters.lease_due_ms = min(counters.lease_due_ms, expires_at_ms)
    change.look_at(expires_at_ms)
    change.commit()
    answers.extend([NOTHING_POLLED] * (len(counts) - len(answers)))
    return answers


def _hold(
    queue: QueueState,
    change: Change,
    lease_ids: Sequence[bytes],
    ids_of: Sequence[list[bytes]],
    marks_of: Sequence[list[bytes]],
    expires_at_ms: int,
) -> None:
    """Write the leases, and what each of them holds."""
    prefix = queue.prefix
    leases: list[tuple[bytes, bytes]] = []
    holders: list[bytes] = []
    for lease_id, ids, marks in zip(lease_ids, ids_of, marks_of, strict=True):
        held = b"".join(chain.from_iterable(zip(ids, marks, strict=True)))
        leases.append((prefix + lease_id, encode_lease(expires_at_ms, held)))
        holders += holder_keys(prefix, lease_id, ids)
    expiry = prefix + time_part(expires_at_ms)
    change.batch.put_many(Family.LEASES, leases)
    change.batch.put_many(Family.HOLDERS, [(key, b"") for key in holders])
    change.batch.put_many(Family.LEASE_EXPIRY, [(expiry + each, b"") for each in lease_ids])


def _read(
    engine: Engine, queue: QueueState, ids: Sequence[bytes]
) -> tuple[list[bytes], dict[bytes, bytes]]:
    """The contents of items, and the records of those that had to be read, by id."""
    fresh = engine.fresh.take(queue.queue_id, ids)
    if None not in fresh:
        return fresh, {}  # type: ignore[return-value]
    missing = [item_id for item_id, known in zip(ids, fresh, strict=True) if known is None]
    # Added one after the other, they lie side by side.
    stored = engine.store.get_neighbours(Family.ITEMS, [queue.prefix + each for each in missing])
    invariant(None not in stored, "I2", queue=queue.name, missing=stored.count(None))
    records = cast("list[bytes]", stored)
    decoded = iter(decode_items(records))
    contents = [next(decoded) if known is None else known for known in fresh]
    return contents, dict(zip(missing, records, strict=True))


def _details(
    engine: Engine,
    queue: QueueState,
    ids: list[bytes],
    marks: list[bytes],
    records: dict[bytes, bytes],
) -> ItemDetails:
    keys, attributes = [""] * len(marks), [_NO_ATTRIBUTES] * len(marks)
    for at, mark in enumerate(marks):
        if mark_has_details(mark):
            key, packed = decode_details(records[ids[at]])
            keys[at] = key.decode()
            attributes[at] = unpack_attributes(packed) if packed else _NO_ATTRIBUTES
    attempts = [mark_attempts(mark) + 1 for mark in marks]
    batches = [batch_name(engine, queue, mark_batch(mark)) for mark in marks]
    return ItemDetails(
        attempts=attempts if max(attempts) > 1 else (),
        keys=keys if any(keys) else (),
        batches=batches if any(batches) else (),
        attributes=attributes if any(attributes) else (),
    )


_NO_ATTRIBUTES: dict[str, str] = {}
