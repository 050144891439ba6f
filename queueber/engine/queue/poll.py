"""Poll: lease ready items. Only small entries are rewritten, never the contents."""

from collections.abc import Sequence
from itertools import chain
from typing import cast

from queueber.db.families import Family
from queueber.db.records.items import decode_details, decode_items, unpack_attributes
from queueber.db.records.keys import (
    MARK_ATTEMPTS_MAX,
    TIME_BYTES,
    Mark,
    mark_attempts,
    mark_batch,
    mark_has_details,
)
from queueber.engine.queue.isolation import HeldTogether
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.queue.selection import Selection
from queueber.errors import invariant
from queueber.ids import ItemId, LeaseId
from queueber.model import NO_DETAILS, NOTHING_POLLED, ItemDetails, Polled


def poll(
    tx: QueueTx,
    counts: Sequence[int],
    *,
    lease_ms: int,
    answer_bytes_max: int,
    holder: HeldTogether | None = None,
) -> list[Polled]:
    """Serve several polls in order, each under a lease of its own, until no item is ready.

    The contents of all answers together stay below `answer_bytes_max`, but the first item is always
    among them: otherwise nobody could ever get an item larger than the limit. `holder` is what the
    caller holds already, if its leases end together.
    """
    queue, now_ms = tx.queue, tx.now_ms
    if not queue.counters.ready or queue.is_paused(now_ms):
        return [NOTHING_POLLED] * len(counts)
    selection = Selection(
        queue, sum(counts), bytes_max=answer_bytes_max, holder=holder, now_ms=now_ms
    )
    groups = []
    for count in counts:
        group = selection.take(count)
        if not group:
            break
        groups.append(group)
    if not groups:
        return [NOTHING_POLLED] * len(counts)

    lease_ids = cast("list[LeaseId]", tx.ids.mint(len(groups), now_ms))
    sliced = [[due[TIME_BYTES:] for due, _ in group] for group in groups]
    ids_of = cast("list[list[ItemId]]", sliced)
    marks_of = [[mark for _, mark in group] for group in groups]
    queue.leases.put(tx, lease_ids, ids_of, marks_of, now_ms + lease_ms)
    ids = list(chain.from_iterable(ids_of))
    contents, records = _read(tx, ids)
    answers: list[Polled] = []
    start = 0
    for lease_id, of_lease, marks in zip(lease_ids, ids_of, marks_of, strict=True):
        end = start + len(of_lease)
        details = NO_DETAILS if selection.is_plain else _details(tx, of_lease, marks, records)
        answers.append(Polled(lease_id, of_lease, contents[start:end], details))
        start = end
    for level, taken in selection.taken():
        queue.ready.take_first(tx, level, taken)
    tx.counters.polled_total += len(ids)
    tx.counters.last_id = lease_ids[-1]
    answers.extend([NOTHING_POLLED] * (len(counts) - len(answers)))
    return answers


def _read(tx: QueueTx, ids: Sequence[ItemId]) -> tuple[list[bytes], dict[ItemId, bytes]]:
    """The contents of items, and by id the records of those that were not cached."""
    cached = tx.queue.ready.take_contents(ids)
    if None not in cached:
        return cached, {}  # type: ignore[return-value]
    missing = [item_id for item_id, known in zip(ids, cached, strict=True) if known is None]
    # Items that were added one after the other are neighbours in the store.
    stored = tx.store.get_neighbours(Family.ITEMS, [tx.prefix + each for each in missing])
    invariant(None not in stored, "I2", queue=tx.queue.name, missing=stored.count(None))
    records = cast("list[bytes]", stored)
    decoded = iter(decode_items(records))
    contents = [next(decoded) if known is None else known for known in cached]
    return contents, dict(zip(missing, records, strict=True))


def _details(
    tx: QueueTx, ids: list[ItemId], marks: list[Mark], records: dict[ItemId, bytes]
) -> ItemDetails:
    keys, attributes = [""] * len(marks), [_NO_ATTRIBUTES] * len(marks)
    for at, mark in enumerate(marks):
        if mark_has_details(mark):
            key, packed = decode_details(records[ids[at]])
            keys[at] = key.decode()
            attributes[at] = unpack_attributes(packed) if packed else _NO_ATTRIBUTES
    attempts = [min(mark_attempts(mark) + 1, MARK_ATTEMPTS_MAX) for mark in marks]
    name = tx.queue.batches.names.name
    batches = [name(mark_batch(mark)) for mark in marks]
    return ItemDetails(
        attempts=attempts if max(attempts) > 1 else (),
        keys=keys if any(keys) else (),
        batches=batches if any(batches) else (),
        attributes=attributes if any(attributes) else (),
    )


_NO_ATTRIBUTES: dict[str, str] = {}
