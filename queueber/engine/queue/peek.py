"""Peek: read items of a state, a page at a time. Leases nothing and changes nothing."""

from collections.abc import Callable

from queueber.db.families import Family
from queueber.db.records.dead_letters import decode_attempts, decode_dead
from queueber.db.records.items import decode_details, decode_item, unpack_attributes
from queueber.db.records.keys import (
    LEVEL_BYTES,
    PREFIX_BYTES,
    TIME_BYTES,
    level_part,
    prefix_end,
    split_due_part,
    time_part,
)
from queueber.db.records.leases import decode_lease, split_held
from queueber.db.records.marks import decode_mark, mark_attempts, mark_batch
from queueber.db.store.contract import Store
from queueber.engine.queue.lifecycle import DeathReason
from queueber.engine.queue.queue_state import QueueState, View, level_end, live_view
from queueber.ids import made_at_ms
from queueber.limits import ATTRIBUTE_WIRE_BYTES, ID_BYTES, ITEM_WIRE_BYTES, SCAN_LOOKED_AT_MAX
from queueber.model import ALL_COLUMNS, Column, ItemInfo, ItemState

Found = tuple[bytes, bytes]
"""A stored key without the queue's prefix, and its value: both depend on the state."""


def peek(
    store: Store, queue: QueueState, state: ItemState, after: bytes, limit: int, bytes_max: int
) -> tuple[list[ItemInfo], bytes]:
    """A page of the items of a state, and where the next one begins: empty when there is none."""
    return look(live_view(store, queue), state, after, limit, bytes_max)


def look(
    view: View,
    state: ItemState,
    after: bytes,
    limit: int,
    bytes_max: int,
    *,
    before: bytes = b"",
    batch: str = "",
    without: frozenset[Column] = ALL_COLUMNS,
) -> tuple[list[ItemInfo], bytes]:
    """A page of the items of a state, and where the next one begins: empty when there is none.

    Ready items come in the order of priority and age, delayed ones in that of their time, leased
    ones in that of their leases, dead ones in that of their ids. A page stays below `bytes_max`,
    but has at least one item, if there is one. A cursor points right after an item: `after` begins
    a range and `before` ends it, so of two ranges that share a cursor each item is in one. The
    first bytes of a cursor are enough.

    If `batch` is named, a page has only its items. Then one call reads at most `SCAN_LOOKED_AT_MAX`
    entries, and a page may be empty though there is a next one.
    """
    number = 0
    if batch:
        known = view.batches.number(batch)
        if known is None:
            return [], b""
        number = known
    looked_at_max = SCAN_LOOKED_AT_MAX if batch else limit
    found = _find(view, state, after, before, looked_at_max + 1)
    page: list[ItemInfo] = []
    bytes_left = bytes_max
    last = b""
    for key, value in found[:looked_at_max]:
        if not number or mark_batch(_mark_of(state, value)) == number:
            if len(page) == limit:
                return page, last
            seen = _READ[state](view, key, value, without)
            bytes_left -= _wire_bytes(seen)
            if bytes_left < 0 and page:
                return page, last
            page.append(seen)
        last = key
    return page, last if len(found) > looked_at_max else b""


def _wire_bytes(seen: ItemInfo) -> int:
    size = len(seen.contents) + ITEM_WIRE_BYTES + TIME_BYTES * len(seen.attempt_times_ms)
    size += len(seen.key.encode()) + len(seen.last_error.encode())
    for name, value in seen.attributes.items():
        size += ATTRIBUTE_WIRE_BYTES + len(name.encode()) + len(value.encode())
    return size


def _find(view: View, state: ItemState, after: bytes, before: bytes, limit: int) -> list[Found]:
    start = after + b"\0" if after else b""
    if state is ItemState.READY:
        found = _find_ready(view, start, before, limit)
    elif state is ItemState.DELAYED:
        low = time_part(view.counters.delayed_due_ms)
        found = _scan(view, Family.DELAYED, max(low, start), limit)
    elif state is ItemState.LEASED:
        found = _find_held(view, start, limit)
    else:
        found = _scan(view, Family.DEAD, max(view.dead_low, start), limit)
    return [each for each in found if each[0] <= before] if before else found


def _scan(view: View, family: Family, start: bytes, limit: int) -> list[Found]:
    found = view.reads.scan(family, view.prefix + start, prefix_end(view.prefix), limit)
    return [(key[PREFIX_BYTES:], value) for key, value in found]


def _find_ready(view: View, start: bytes, before: bytes, limit: int) -> list[Found]:
    prefix, found = view.prefix, list[Found]()
    for level, (_, low) in sorted(view.counters.levels.items()):
        head, end = level_part(level), level_end(prefix, level)
        if prefix + start >= end:
            continue
        if len(found) >= limit or (before and head >= before):
            break
        # Before the low mark are only deleted entries, perhaps very many.
        first = prefix + max(head + low, start)
        of_level = view.reads.scan(Family.VISIBILITY_INDEX, first, end, limit - len(found))
        found += [(key[PREFIX_BYTES:], value) for key, value in of_level]
    return found


def _find_held(view: View, start: bytes, limit: int) -> list[Found]:
    """Leased items: the key is lease and item id, the value is the expiry and the mark."""
    prefix, found = view.prefix, list[Found]()
    first = prefix + start[:ID_BYTES]
    for key, value in view.reads.walk(Family.LEASES, first, prefix_end(prefix)):
        lease_id = key[PREFIX_BYTES:]
        expires_at_ms, held = decode_lease(value)
        end = time_part(expires_at_ms)
        items = [(lease_id + item_id, end + mark) for item_id, mark in sorted(split_held(held))]
        found += [item for item in items if item[0] >= start]
        if len(found) >= limit:
            break
    return found[:limit]


def _mark_of(state: ItemState, value: bytes) -> bytes:
    if state is ItemState.LEASED:
        return value[TIME_BYTES:]
    return decode_dead(value)[2] if state is ItemState.DEAD else value


def _ready(view: View, key: bytes, mark: bytes, without: frozenset[Column]) -> ItemInfo:
    at_ms, item_id = split_due_part(key[LEVEL_BYTES:])
    return _seen(view, item_id, mark, at_ms, without)


def _delayed(view: View, key: bytes, mark: bytes, without: frozenset[Column]) -> ItemInfo:
    at_ms, item_id = split_due_part(key)
    return _seen(view, item_id, mark, at_ms, without)


def _leased(view: View, key: bytes, value: bytes, without: frozenset[Column]) -> ItemInfo:
    lease_id, item_id = key[:ID_BYTES], key[ID_BYTES:]
    expires_at_ms, mark = int.from_bytes(value[:TIME_BYTES]), value[TIME_BYTES:]
    return _seen(view, item_id, mark, expires_at_ms, without, lease_id=lease_id)


def _dead(view: View, item_id: bytes, value: bytes, without: frozenset[Column]) -> ItemInfo:
    died_at_ms, reason, mark = decode_dead(value)
    text = DeathReason(reason).text(mark_attempts(mark))
    return _seen(view, item_id, mark, died_at_ms, without, reason=text)


def _seen(
    view: View,
    item_id: bytes,
    raw_mark: bytes,
    at_ms: int,
    without: frozenset[Column],
    *,
    lease_id: bytes = b"",
    reason: str = "",
) -> ItemInfo:
    mark = decode_mark(raw_mark)
    contents = key = packed = b""
    # An item's record may be long, so it is read only if some column of it is wanted.
    wants_details = mark.has_details and not without >= _DETAILS
    if Column.CONTENTS not in without or wants_details:
        record = view.reads.get(Family.ITEMS, view.prefix + item_id) or b""
        if Column.CONTENTS not in without:
            contents = decode_item(record)
        if wants_details:
            key, packed = decode_details(record)
    times_ms: list[int] = []
    last_error = ""
    if mark.attempts:
        history = view.reads.get(Family.ATTEMPTS, view.prefix + item_id)
        times_ms, last_error = decode_attempts(history or bytes(2))
    return ItemInfo(
        id=item_id,
        contents=contents,
        added_at_ms=made_at_ms(item_id),
        key="" if Column.KEYS in without else key.decode(),
        attributes={} if Column.ATTRIBUTES in without else unpack_attributes(packed),
        batch="" if Column.BATCHES in without else view.batches.name(mark.batch),
        priority=mark.priority,
        attempts=mark.attempts,
        group_max=mark.group_max,
        at_ms=at_ms,
        lease_id=lease_id,
        reason=reason,
        last_error=last_error,
        attempt_times_ms=times_ms,
    )


_DETAILS = frozenset((Column.KEYS, Column.ATTRIBUTES))

_READ: dict[ItemState, Callable[[View, bytes, bytes, frozenset[Column]], ItemInfo]] = {
    ItemState.READY: _ready,
    ItemState.DELAYED: _delayed,
    ItemState.LEASED: _leased,
    ItemState.DEAD: _dead,
}
