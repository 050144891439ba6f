"""Peek: items as they stand, a page at a time. Leases nothing and changes nothing."""

from collections.abc import Callable

from queueber.db.bookkeeping import decode_attempts, decode_dead
from queueber.db.families import Family
from queueber.db.keys import (
    LEVEL_BYTES,
    PREFIX_BYTES,
    TIME_BYTES,
    level_part,
    prefix_end,
    split_due_part,
    time_part,
)
from queueber.db.marks import decode_mark, mark_size
from queueber.db.records import (
    decode_details,
    decode_in_progress,
    decode_item,
    decode_lease,
    unpack_attributes,
)
from queueber.engine.batches import batch_name
from queueber.engine.lifecycle import DeathReason
from queueber.engine.state import Engine, QueueState
from queueber.ids import made_at_ms
from queueber.limits import ITEM_WIRE_BYTES
from queueber.model import ItemState, Peeked

Found = tuple[bytes, bytes]
"""A key without the queue's prefix, and its value."""

_FAMILIES = {
    ItemState.READY: Family.VISIBILITY_INDEX,
    ItemState.DELAYED: Family.DELAYED,
    ItemState.IN_PROGRESS: Family.IN_PROGRESS,
    ItemState.DEAD: Family.DEAD,
}


def peek(
    engine: Engine, queue: QueueState, state: ItemState, after: bytes, limit: int, bytes_max: int
) -> tuple[list[Peeked], bytes]:
    """A page of the items of a state, and where the next one begins: empty when there is none.

    Ready items come in the order of priority and age, delayed ones in that of their time, others in
    that of their ids. A page holds at least one item, if there is one, and else stays below
    `bytes_max`.
    """
    found = _find(engine, queue, state, after, limit + 1)
    page: list[Peeked] = []
    room = bytes_max
    for key, value in found[:limit]:
        seen = _READ[state](engine, queue, key, value)
        room -= mark_size(_mark_of(state, value)) + ITEM_WIRE_BYTES
        room -= len(seen.last_error.encode()) + TIME_BYTES * len(seen.attempt_times_ms)
        if room < 0 and page:
            break
        page.append(seen)
    more = found[len(page) - 1][0] if page and len(page) < len(found) else b""
    return page, more


def _find(
    engine: Engine, queue: QueueState, state: ItemState, after: bytes, limit: int
) -> list[Found]:
    prefix, family = queue.prefix, _FAMILIES[state]
    if state is ItemState.READY:
        found: list[tuple[bytes, bytes]] = []
        for level, (_, low) in sorted(queue.counters.levels.items()):
            head = level_part(level)
            if after >= head + b"\xff" * 8:
                continue
            # Before the low mark lie only deleted entries, perhaps a great many.
            start = max(head + low, after + b"\0" if after else b"")
            end = prefix + level_part(level) + b"\xff"
            found += engine.store.scan(family, prefix + start, end, limit - len(found))
            if len(found) >= limit:
                break
    else:
        low = b""
        if state is ItemState.DELAYED:
            low = time_part(queue.counters.delayed_due_ms)
        elif state is ItemState.DEAD:
            low = queue.dead_low
        start = max(low, after + b"\0" if after else b"")
        found = engine.store.scan(family, prefix + start, prefix_end(prefix), limit)
    return [(key[PREFIX_BYTES:], value) for key, value in found]


def _mark_of(state: ItemState, value: bytes) -> bytes:
    if state is ItemState.IN_PROGRESS:
        return decode_in_progress(value)[1]
    return decode_dead(value)[2] if state is ItemState.DEAD else value


def _ready(engine: Engine, queue: QueueState, key: bytes, mark: bytes) -> Peeked:
    at_ms, item_id = split_due_part(key[LEVEL_BYTES:])
    return _seen(engine, queue, item_id, mark, at_ms)


def _delayed(engine: Engine, queue: QueueState, key: bytes, mark: bytes) -> Peeked:
    at_ms, item_id = split_due_part(key)
    return _seen(engine, queue, item_id, mark, at_ms)


def _in_progress(engine: Engine, queue: QueueState, item_id: bytes, value: bytes) -> Peeked:
    lease_id, mark = decode_in_progress(value)
    lease = engine.store.get(Family.LEASES, queue.prefix + lease_id)
    expires_at_ms = decode_lease(lease or b"")[0]
    return _seen(engine, queue, item_id, mark, expires_at_ms, lease_id=lease_id)


def _dead(engine: Engine, queue: QueueState, item_id: bytes, value: bytes) -> Peeked:
    died_at_ms, reason, mark = decode_dead(value)
    return _seen(engine, queue, item_id, mark, died_at_ms, reason=DeathReason(reason).text)


def _seen(
    engine: Engine,
    queue: QueueState,
    item_id: bytes,
    raw_mark: bytes,
    at_ms: int,
    *,
    lease_id: bytes = b"",
    reason: str = "",
) -> Peeked:
    record = engine.store.get(Family.ITEMS, queue.prefix + item_id) or b""
    mark = decode_mark(raw_mark)
    key, packed = decode_details(record) if mark.has_details else (b"", b"")
    times_ms: list[int] = []
    last_error = ""
    if mark.attempts:
        history = engine.store.get(Family.ATTEMPTS, queue.prefix + item_id)
        times_ms, last_error = decode_attempts(history or bytes(2))
    return Peeked(
        id=item_id,
        contents=decode_item(record),
        added_at_ms=made_at_ms(item_id),
        key=key.decode(),
        attributes=unpack_attributes(packed),
        batch=batch_name(engine, queue, mark.batch),
        priority=mark.priority,
        attempts=mark.attempts,
        group_max=mark.group_max,
        at_ms=at_ms,
        lease_id=lease_id,
        reason=reason,
        last_error=last_error,
        attempt_times_ms=times_ms,
    )


_READ: dict[ItemState, Callable[[Engine, QueueState, bytes, bytes], Peeked]] = {
    ItemState.READY: _ready,
    ItemState.DELAYED: _delayed,
    ItemState.IN_PROGRESS: _in_progress,
    ItemState.DEAD: _dead,
}
