"""Peek: read items of a state, a page at a time. Leases nothing and changes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from queueber.db.families import Family
from queueber.db.records.items import (
    decode_details,
    decode_item,
    decode_lease,
    split_held,
    unpack_attributes,
)
from queueber.db.records.keys import (
    DUE_BYTES,
    LEVEL_BYTES,
    PREFIX_BYTES,
    TIME_BYTES,
    decode_attempts,
    decode_dead,
    decode_mark,
    level_part,
    mark_batch,
    prefix_end,
    split_due_part,
    time_part,
)
from queueber.db.store.contract import Store
from queueber.engine.queue.lifecycle import DeathReason
from queueber.engine.queue.queue_state import QueueState, View, level_end, live_view
from queueber.ids import made_at_ms
from queueber.limits import ATTRIBUTE_WIRE_BYTES, ID_BYTES, ITEM_WIRE_BYTES, SCAN_LOOKED_AT_MAX
from queueber.model import ALL_COLUMNS, Column, ItemInfo, ItemState

Found = tuple[bytes, bytes]
"""A stored key without the queue's prefix, and its value: both depend on the state."""

_DETAILS = frozenset((Column.KEYS, Column.ATTRIBUTES))


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
    number = view.batches.number(batch) if batch else 0
    if number is None:
        return [], b""
    looked_at_max = SCAN_LOOKED_AT_MAX if batch else limit
    found = _find(view, state, after, before, looked_at_max + 1)
    page: list[ItemInfo] = []
    bytes_left = bytes_max
    last = b""
    for key, value in found[:looked_at_max]:
        if not number or mark_batch(_mark_of(state, value)) == number:
            if len(page) == limit:
                return page, last
            seen = _read(view, state, key, value, without)
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


@dataclass(frozen=True, slots=True)
class Span:
    """A range of keys that has items of one state, in order."""

    family: Family
    head: bytes
    """What all keys of the span begin with, after the queue's prefix."""
    low: bytes
    """What follows the head is not lower, and of this length. Before it are only deleted entries,
    perhaps very many."""
    end: bytes
    """The first key after the span, with the queue's prefix."""
    count: int
    """How many items the span has."""


def spans(view: View, state: ItemState) -> Iterator[Span]:
    """The spans of a state that has items, in order."""
    counters, end = view.counters, prefix_end(view.prefix)
    if state is ItemState.READY:
        for level, (count, low) in sorted(counters.levels.items()):
            level_stop = level_end(view.prefix, level)
            yield Span(Family.VISIBILITY_INDEX, level_part(level), low, level_stop, count)
    elif state is ItemState.DELAYED and counters.delayed:
        first_due = time_part(counters.delayed_due_ms).ljust(DUE_BYTES, b"\0")
        yield Span(Family.DELAYED, b"", first_due, end, counters.delayed)
    elif state is ItemState.LEASED and counters.leased:
        # By lease: the items of one lease are a single entry.
        yield Span(Family.LEASES, b"", bytes(ID_BYTES), end, counters.leased)
    elif state is ItemState.DEAD and counters.dead:
        first_id = view.dead_low.ljust(ID_BYTES, b"\0")
        yield Span(Family.DEAD, b"", first_id, end, counters.dead)


def _find(view: View, state: ItemState, after: bytes, before: bytes, limit: int) -> list[Found]:
    start = after + b"\0" if after else b""
    if state is ItemState.LEASED:
        found = find_held(view, start, limit)
    else:
        found = []
        for span in spans(view, state):
            if len(found) >= limit or (before and span.head >= before):
                break
            first = view.prefix + max(span.head + span.low, start)
            if first < span.end:
                stored = view.reads.scan(span.family, first, span.end, limit - len(found))
                found += [(key[PREFIX_BYTES:], value) for key, value in stored]
    return [each for each in found if each[0] <= before] if before else found


def find_held(view: View, start: bytes, limit: int) -> list[Found]:
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


def _read(
    view: View, state: ItemState, key: bytes, value: bytes, without: frozenset[Column]
) -> ItemInfo:
    lease_id, item_id, reason = b"", key, ""
    mark = decode_mark(_mark_of(state, value))
    if state is ItemState.READY:
        at_ms, item_id = split_due_part(key[LEVEL_BYTES:])
    elif state is ItemState.DELAYED:
        at_ms, item_id = split_due_part(key)
    elif state is ItemState.LEASED:
        lease_id, item_id = key[:ID_BYTES], key[ID_BYTES:]
        at_ms = int.from_bytes(value[:TIME_BYTES])
    else:
        at_ms, number, _ = decode_dead(value)
        reason = DeathReason(number).text(mark.attempts)
    contents = item_key = packed = b""
    # An item's record may be long, so it is read only if some column of it is wanted.
    wants_details = mark.has_details and not without >= _DETAILS
    if Column.CONTENTS not in without or wants_details:
        record = view.reads.get(Family.ITEMS, view.prefix + item_id) or b""
        if Column.CONTENTS not in without:
            contents = decode_item(record)
        if wants_details:
            item_key, packed = decode_details(record)
    times_ms: list[int] = []
    last_error = ""
    if mark.attempts:
        history = view.reads.get(Family.ATTEMPTS, view.prefix + item_id)
        times_ms, last_error = decode_attempts(history or bytes(2))
    return ItemInfo(
        id=item_id,
        contents=contents,
        added_at_ms=made_at_ms(item_id),
        key="" if Column.KEYS in without else item_key.decode(),
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
