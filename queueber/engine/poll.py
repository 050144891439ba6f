"""Poll: lease ready items. Contents stay where they are; only small entries move.

Which ones, and how many may go together, is said in `choice.py`.
"""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.keys import TIME_BYTES, due_part
from queueber.db.marks import (
    mark_attempts,
    mark_batch,
    mark_has_details,
)
from queueber.db.records import decode_details, decode_item, encode_lease, unpack_attributes
from queueber.engine.batches import batch_name
from queueber.engine.change import Change
from queueber.engine.choice import Choice, Company
from queueber.engine.state import Engine, QueueState
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

    prefix = queue.prefix
    ids = [due[TIME_BYTES:] for group in groups for due, _ in group]
    stored = engine.store.get_many(Family.ITEMS, [prefix + item_id for item_id in ids])
    invariant(None not in stored, "I2", queue=queue.name, missing=stored.count(None))
    records = [value for value in stored if value is not None]

    change = Change(engine, queue)
    batch, counters = change.batch, change.counters
    expires_at_ms = now_ms + lease_ms
    lease_ids = engine.ids.mint(len(groups), now_ms)
    answers: list[Polled] = []
    start = 0
    for lease_id, group in zip(lease_ids, groups, strict=True):
        end = start + len(group)
        of_group, marks = ids[start:end], [mark for _, mark in group]
        held = [i + mark for i, mark in zip(of_group, marks, strict=True)]
        batch.put_many(
            Family.IN_PROGRESS,
            [(prefix + i, lease_id + mark) for i, mark in zip(of_group, marks, strict=True)],
        )
        batch.put(Family.LEASES, prefix + lease_id, encode_lease(expires_at_ms, b"".join(held)))
        batch.put(Family.LEASE_EXPIRY, prefix + due_part(expires_at_ms, lease_id), b"")
        contents = [decode_item(record) for record in records[start:end]]
        details = NO_DETAILS
        if not choice.is_plain:
            details = _details(engine, queue, marks, records[start:end])
        answers.append(Polled(lease_id, of_group, contents, details))
        start = end
    for level, taken in choice.taken():
        change.draw_ready(level, taken)
    counters.in_progress += len(ids)
    counters.leases += len(lease_ids)
    counters.leases_total += len(lease_ids)
    counters.polled_total += len(ids)
    counters.last_id = lease_ids[-1]
    counters.lease_due_ms = min(counters.lease_due_ms, expires_at_ms)
    change.look_at(expires_at_ms)
    change.commit()
    answers.extend([NOTHING_POLLED] * (len(counts) - len(answers)))
    return answers


def _details(
    engine: Engine, queue: QueueState, marks: list[bytes], records: list[bytes]
) -> ItemDetails:
    keys, attributes = [""] * len(marks), [_NO_ATTRIBUTES] * len(marks)
    for at, mark in enumerate(marks):
        if mark_has_details(mark):
            key, packed = decode_details(records[at])
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
