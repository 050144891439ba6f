"""Peek: read items of a state, a page at a time. Leases nothing and changes nothing."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from queueber.db.families import Family
from queueber.db.records.attempts import decode_attempts
from queueber.db.records.blocks import unpack_attributes
from queueber.db.records.dead_letters import decode_dead
from queueber.db.records.item_options import StoredOptions, decode_options
from queueber.db.records.keys import (
    AWAITING_MS,
    DUE_BYTES,
    LEVEL_BYTES,
    PREFIX_BYTES,
    TIME_BYTES,
    level_part,
    prefix_end,
    split_due_part,
    time_part,
)
from queueber.db.records.leases import decode_lease
from queueber.db.records.runs import (
    Run,
    decode_entry,
    decode_held,
    decode_mark,
    mark_batch,
    mark_expires,
    mark_has_options,
)
from queueber.db.records.waits import decode_wait, split_what
from queueber.db.store.contract import Store
from queueber.engine.queue.blocks import BlockReader
from queueber.engine.queue.lifecycle import DeathReason
from queueber.engine.queue.options import NONE_STORED
from queueber.engine.queue.peek_filter import PeekFilter
from queueber.engine.queue.queue_state import QueueState, View, level_end, live_view
from queueber.ids import ItemId
from queueber.limits import ATTRIBUTE_WIRE_BYTES, ID_BYTES, ITEM_WIRE_BYTES, MIB, SCAN_LOOKED_AT_MAX
from queueber.model import ALL_COLUMNS, Column, ItemInfo, ItemState

_DETAILS = frozenset((Column.KEYS, Column.ATTRIBUTES))
_NO_CONTENTS = frozenset((Column.CONTENTS,))
_LOOKED_AT_BYTES_MAX = MIB
"""What a call with a filter reads at most: JSON contents of so many bytes take about 8 ms."""


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run of a state, with what its entry says of all its items."""

    run: Run
    at_ms: int
    """As in `ItemInfo`."""
    head: bytes
    """What the cursors of its items have before the item's id."""
    lease_id: bytes = b""
    reason: DeathReason | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """An item of a run."""

    of: FoundRun
    item_id: ItemId
    position: int
    """In the run's block."""

    @property
    def cursor(self) -> bytes:
        """Where the scan goes on after this item."""
        return self.of.head + self.item_id

    @property
    def lease_id(self) -> bytes:
        return self.of.lease_id


def peek(
    store: Store,
    queue: QueueState,
    state: ItemState,
    after: bytes,
    limit: int,
    bytes_max: int,
    where: PeekFilter | None = None,
) -> tuple[list[ItemInfo], bytes]:
    """A page of the items of a state, and where the next one begins: empty when there is none.

    With a filter a page has only the items that match. Then one call looks at no more than
    `SCAN_LOOKED_AT_MAX` items and `_LOOKED_AT_BYTES_MAX`, and a page may be empty though there is a
    next one.
    """
    view = live_view(store, queue)
    if where is None:
        return look(view, state, after, limit, bytes_max, with_options=True)
    return _look_for(view, state, after, limit, bytes_max, where)


def _look_for(
    view: View, state: ItemState, after: bytes, limit: int, bytes_max: int, where: PeekFilter
) -> tuple[list[ItemInfo], bytes]:
    found = _find(view, state, after, b"", SCAN_LOOKED_AT_MAX + 1)
    looked_at = found[:SCAN_LOOKED_AT_MAX]
    # Contents are read for what matches alone, unless the filter asks for them.
    without = ALL_COLUMNS if where.needs_contents else _NO_CONTENTS
    page: list[ItemInfo] = []
    bytes_left, looked_at_left = bytes_max, _LOOKED_AT_BYTES_MAX
    last = b""
    blocks = view.blocks.reader_of(view.reads)
    for each in looked_at:
        if looked_at_left < 0 or len(page) == limit:
            return page, last
        if not blocks.loses or blocks.has(each.of.run, each.item_id):
            seen = read_item(view, blocks, each, without)
            looked_at_left -= _wire_bytes(seen)
            if where.matches(seen, state):
                if without:
                    seen = read_item(view, blocks, each)
                bytes_left -= _wire_bytes(seen)
                if bytes_left < 0 and page:
                    return page, last
                page.append(seen)
        last = each.cursor
    return page, last if len(found) > len(looked_at) else b""


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
    with_options: bool = False,
) -> tuple[list[ItemInfo], bytes]:
    """A page of the items of a state, and where the next one begins: empty when there is none.

    Ready items come in the order of priority and age, delayed ones in that of their time, leased
    ones in that of their leases, dead ones in that of their ids. A page stays below `bytes_max`,
    but has at least one item, if there is one. A cursor points right after an item: `after` begins
    a range and `before` ends it, so of two ranges that share a cursor each item is in one. The
    first bytes of a cursor are enough.

    What items have of their own is told if it is asked for; a snapshot does not hold it.

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
    blocks = view.blocks.reader_of(view.reads)
    for each in found[:looked_at_max]:
        if blocks.loses and not blocks.has(each.of.run, each.item_id):
            pass
        elif not number or mark_batch(each.of.run.mark) == number:
            if len(page) == limit:
                return page, last
            seen = read_item(view, blocks, each, without, with_options=with_options)
            bytes_left -= _wire_bytes(seen)
            if bytes_left < 0 and page:
                return page, last
            page.append(seen)
        last = each.cursor
    return page, last if len(found) > looked_at_max else b""


def ids_of_batch(
    view: View, state: ItemState, number: int, after: bytes, limit: int
) -> tuple[list[ItemId], bytes]:
    """Those of the next `limit` items of a state that belong to a batch, and where a scan goes on:
    empty when there are no further ones."""
    found = _find(view, state, after, b"", limit + 1)
    looked_at = found[:limit]
    ids = [each.item_id for each in looked_at if mark_batch(each.of.run.mark) == number]
    return ids, looked_at[-1].cursor if len(found) > limit else b""


def _wire_bytes(seen: ItemInfo) -> int:
    size = len(seen.contents) + ITEM_WIRE_BYTES
    size += TIME_BYTES * (len(seen.attempt_times_ms) + len(seen.backoff_ms))
    size += len(seen.after) * (ID_BYTES + TIME_BYTES) + len(seen.after_batch.encode())
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
    """The first items after one cursor and up to another."""
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
                stored = view.reads.walk(span.family, first, span.end)
                runs = (_decode(state, key[PREFIX_BYTES:], value) for key, value in stored)
                found += _items(runs, start, limit - len(found))
    return [each for each in found if each.cursor <= before] if before else found


def _decode(state: ItemState, key: bytes, value: bytes) -> FoundRun:
    """`key` is without the queue's prefix."""
    if state is ItemState.DEAD:
        at_ms, reason, run = decode_dead(key, value)
        return FoundRun(run, at_ms, b"", reason=DeathReason(reason))
    due = key[LEVEL_BYTES:] if state is ItemState.READY else key
    _, run = decode_entry(due, value)
    return FoundRun(run, split_due_part(due)[0], key[:-ID_BYTES])


def _items(runs: Iterable[FoundRun], start: bytes, limit: int) -> list[Found]:
    """The items of runs that are not before a cursor."""
    found: list[Found] = []
    for of in runs:
        ids, head = of.run.ids, of.head
        first = bisect_left(ids, start, key=lambda item_id: head + item_id) if start else 0
        wanted = ids[first : first + limit - len(found)]
        found += [Found(of, item_id, at) for at, item_id in enumerate(wanted, of.run.at + first)]
        if len(found) >= limit:
            break
    return found


def find_held(view: View, start: bytes, limit: int) -> list[Found]:
    """Leased items: a cursor is lease and item id, and `start` is one or the first bytes of one."""
    prefix, found = view.prefix, list[Found]()
    first = prefix + start[:ID_BYTES]
    for key, value in view.reads.walk(Family.LEASES, first, prefix_end(prefix)):
        lease_id = key[PREFIX_BYTES:]
        expires_at_ms, held = decode_lease(value)
        runs = [FoundRun(r, expires_at_ms, lease_id, lease_id) for r in sorted(decode_held(held))]
        found += _items(runs, start, limit - len(found))
        if len(found) >= limit:
            break
    return found


def read_item(
    view: View,
    blocks: BlockReader,
    found: Found,
    without: frozenset[Column] = ALL_COLUMNS,
    *,
    with_options: bool = True,
) -> ItemInfo:
    """What the store has of an item."""
    of, item_id = found.of, found.item_id
    mark = decode_mark(of.run.mark)
    contents = item_key = packed = b""
    # A block may be long, so it is read only if some column of it is wanted.
    if Column.CONTENTS not in without:
        (contents,) = blocks[of.run].contents(found.position, 1)
    if mark.has_details and not without >= _DETAILS:
        (item_key,), (packed,) = blocks[of.run].details(found.position, 1)
    times_ms: list[int] = []
    last_error = ""
    if mark.attempts:
        history = view.reads.get(Family.ATTEMPTS, view.prefix + item_id)
        if history is not None:
            times_ms, _ = past = decode_attempts(history)
            last_error = past.last_error
    after: list[bytes] = []
    after_batch = ""
    if of.at_ms == AWAITING_MS and (waits := view.reads.get(Family.WAITS, view.prefix + item_id)):
        for awaited_id, number in map(split_what, decode_wait(waits).whats):
            if awaited_id is None:
                after_batch = view.batches.name(number)
            else:
                after.append(awaited_id)
    options = NONE_STORED
    if with_options and mark_has_options(of.run.mark):
        options = _options(view, item_id)
    return ItemInfo(
        id=item_id,
        contents=contents,
        added_at_ms=blocks.added_at_ms(of.run, item_id),
        key="" if Column.KEYS in without else item_key.decode(),
        attributes={} if Column.ATTRIBUTES in without else unpack_attributes(packed),
        batch="" if Column.BATCHES in without else view.batches.name(mark.batch),
        priority=mark.priority,
        attempts=mark.attempts,
        group_max=mark.group_max,
        at_ms=of.at_ms,
        lease_id=of.lease_id,
        reason="" if of.reason is None else of.reason.text(mark.attempts),
        last_error=last_error,
        attempt_times_ms=times_ms,
        deliveries=mark.leases_ended + bool(of.lease_id),
        after=tuple(after),
        after_batch=after_batch,
        attempts_max=options.attempts_max,
        backoff_ms=options.backoff_ms,
        timeout_ms=options.timeout_ms,
        # From its first lease on it does not expire, whatever is stored.
        expires_at_ms=options.expires_at_ms if mark_expires(of.run.mark) else 0,
    )


def _options(view: View, item_id: bytes) -> StoredOptions:
    stored = view.reads.get(Family.ITEM_OPTIONS, view.prefix + item_id)
    return NONE_STORED if stored is None else decode_options(stored)
