"""Format 4 to 5: items become blocks, and the entries of their states become runs.

A queue is read twice, as a stream. First its items, in the order of their ids: those with
consecutive ids are written as blocks. Then the entries of their states, each family in its own
order. The block of an entry is looked up in the new store, and entries that follow each other join
into one run if their items do so in the block and have the same time and mark. So the order among
ready items stays as it was.

What format 5 left as it was is read with the codecs of today. Whoever changes one of them freezes
it for this step, see `db/store/format.py`.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from queueber.db.families import Family
from queueber.db.records.blocks import encode_block
from queueber.db.records.cutting import join
from queueber.db.records.dead_letters import encode_dead
from queueber.db.records.keys import TIME_BYTES, is_where_its_id_says
from queueber.db.records.leases import encode_lease
from queueber.db.records.queues import Counters, decode_counters, decode_queue, encode_counters
from queueber.db.records.runs import Mark, Run, encode_held, encode_run, make_run
from queueber.db.upgrade import format_4
from queueber.db.upgrade.records_4_to_5 import Digests, RecordsUpgrade, refuse_half_committed
from queueber.db.upgrade.stores import Cursor, NewStore, OldStore, Work
from queueber.ids import ItemId
from queueber.limits import BLOCK_BYTES_MAX, BLOCK_ITEMS_MAX

FAMILIES = tuple(family.family_name for family in Family)
"""Those of format 5."""

_COPIED = ("queues", "lease_expiry", "attempts", "keys", "producers", "logs", "log_blocks")
"""Families that stay as they were. The others are written queue by queue."""

_SHOWN_EVERY = 1000

_State = tuple[Any, Run]
"""An item or several, and what they must have in common to be one run, beside their mark."""


def convert(old: OldStore, new: NewStore, work: Work) -> None:
    queues = [(prefix, decode_queue(value)[0]) for prefix, value in old.walk("queues")]
    refuse_half_committed(old, queues)
    for family in _COPIED:
        for key, value in old.walk(family):
            new.put(family, key, value)
    for key, value in old.walk("default"):
        if key not in (b"format", b"synced"):  # the latter is about the old store's own log
            new.put("default", key, value)
    counters = {prefix: decode_counters(value) for prefix, value in old.walk("counters")}
    count = _counting(work, sum([each.items for each in counters.values()]))
    for prefix, name in queues:
        try:
            _convert_queue(old, new, work, prefix, name, counters[prefix], count)
        except (ValueError, LookupError, struct.error) as error:
            raise old.damaged(f"queue {name!r} cannot be read ({error})") from error
    new.put("default", b"format", (5).to_bytes(4))


def _counting(work: Work, total: int) -> Callable[[], None]:
    """Counts every item twice: when it is in a block, and when it is in a run."""
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1
        if steps % _SHOWN_EVERY == 0 or steps == 2 * total:
            work.show(steps // 2, total)

    return count


def _convert_queue(
    old: OldStore,
    new: NewStore,
    work: Work,
    prefix: bytes,
    name: str,
    counters: Counters,
    count: Callable[[], None],
) -> None:
    items = 0
    for last, block, span in _blocks(old.walk("items", prefix), len(prefix), count):
        new.put("items", prefix + last, block)
        items += span
    new.write()
    states = _States(old, new, prefix, count)
    states.convert()
    if states.items != items:
        raise ValueError(f"it has {items} items, but {states.items} entries of states")
    records = RecordsUpgrade(old, new, prefix, name, counters)
    records.convert(states.digests, work)
    new.put("counters", prefix, encode_counters(counters))


# --- blocks ---------------------------------------------------------------------------------------


def _blocks(
    entries: Iterable[tuple[bytes, bytes]], prefix_bytes: int, count: Callable[[], None]
) -> Iterator[tuple[bytes, bytes, int]]:
    """Last id, value and number of items of each block; entries are in the order of their ids."""
    items: list[format_4.Item] = []
    size, last = 0, b""
    for key, value in entries:
        item_id, item = key[prefix_bytes:], format_4.read_item(value)
        is_full = len(items) == BLOCK_ITEMS_MAX or size + item.size > BLOCK_BYTES_MAX
        if items and (is_full or not _follows(last, item_id)):
            yield last, _block(items), len(items)
            items, size = [], 0
        items.append(item)
        size += item.size
        last = item_id
        count()
    if items:
        yield last, _block(items), len(items)


def _follows(item_id: bytes, next_id: bytes) -> bool:
    is_near = item_id[:8] == next_id[:8]
    return is_near and int.from_bytes(next_id[8:]) - int.from_bytes(item_id[8:]) == 1


def _block(items: list[format_4.Item]) -> bytes:
    contents, keys, attributes = zip(*items, strict=True)
    has_details = any(keys) or any(attributes)
    return encode_block(contents, keys, attributes) if has_details else encode_block(contents)


class _BlockFinder:
    """Makes a run of one item, for which it finds the block."""

    _HEAD = struct.Struct("<BH")
    """Flags and span: how a block begins."""

    def __init__(self, blocks: Cursor, prefix: bytes) -> None:
        self._blocks = blocks
        self._prefix = prefix
        self._near = b""
        self._first = self._last = -1
        """The ids of the block that was found last, without the bytes that all of them share."""
        self._flags = self._span = 0

    def run(self, item_id: bytes, old_mark: bytes) -> Run:
        if len(item_id) != 16 or len(old_mark) != format_4.MARK_BYTES:
            raise ValueError(f"item {item_id.hex()} has the mark {old_mark.hex()}")
        number = int.from_bytes(item_id[8:])
        if item_id[:8] != self._near or not self._first <= number <= self._last:
            self._find(item_id, number)
        # The mark without its size; whether the block has details is a matter of all its items.
        mark = Mark(old_mark[4:13] + bytes([old_mark[13] & ~1 | self._flags & 1]))
        at = number - self._first
        return make_run(ItemId(item_id), 1, at, self._span, format_4.mark_size(old_mark), mark)

    def _find(self, item_id: bytes, number: int) -> None:
        found = self._blocks.first_from(self._prefix + item_id)
        if found is not None:
            key, value = found
            last = key[len(self._prefix) :]
            self._near, self._last = last[:8], int.from_bytes(last[8:])
            self._flags, self._span = self._HEAD.unpack_from(value)
            self._first = self._last - self._span + 1
            is_in_it = self._near == item_id[:8] and self._first <= number
            if is_in_it and key.startswith(self._prefix):
                return
        raise ValueError(f"item {item_id.hex()} is in some state, but does not exist")


# --- states ---------------------------------------------------------------------------------------


class _States:
    """Writes the states of all items of a queue, and sums up what its batches have to know."""

    def __init__(
        self, old: OldStore, new: NewStore, prefix: bytes, count: Callable[[], None]
    ) -> None:
        self._old = old
        self._new = new
        self._prefix = prefix
        self._finder = _BlockFinder(new.cursor("items"), prefix)
        self._count = count
        self.items = 0
        self.digests = Digests()

    def convert(self) -> None:
        for family in ("visibility_index", "delayed"):
            for where, run in self._joined(self._waiting(family)):
                self._new.put(family, self._prefix + where + run.last, encode_run(run))
                time = where[-TIME_BYTES:]
                if not is_where_its_id_says(time + run.last):
                    self._new.put("places", self._prefix + run.last, time)
                self.digests.add(run, is_dead=False)
        for (died_at_ms, reason), run in self._joined(self._dead()):
            value = encode_dead(died_at_ms, reason, run)
            self._new.put("dead", self._prefix + run.last, value)
            self.digests.add(run, is_dead=True)
        for key, value in self._old.walk("leases", self._prefix):
            self._convert_lease(key, value)

    def _run(self, item_id: bytes, mark: bytes) -> Run:
        self.items += 1
        self._count()
        return self._finder.run(item_id, mark)

    def _waiting(self, family: str) -> Iterator[_State]:
        """Ready or delayed items: what is in the key before the id, and the item."""
        for key, mark in self._old.walk(family, self._prefix):
            yield key[len(self._prefix) : -16], self._run(key[-16:], mark)

    def _dead(self) -> Iterator[_State]:
        for key, value in self._old.walk("dead", self._prefix):
            died_at_ms, reason, mark = format_4.read_dead(value)
            yield (died_at_ms, reason), self._run(key[len(self._prefix) :], mark)

    def _joined(self, states: Iterable[_State]) -> Iterator[_State]:
        """As `join`, as a stream; only states that have the same in common are joined."""
        before: _State | None = None
        for state in states:
            if before is not None:
                runs = join([before[1], state[1]]) if before[0] == state[0] else []
                if len(runs) == 1:
                    before = state[0], runs[0]
                    continue
                yield before
            before = state
        if before is not None:
            yield before

    def _convert_lease(self, key: bytes, value: bytes) -> None:
        expires_at_ms, held = format_4.read_lease(value)
        runs = join([self._run(item_id, mark) for item_id, mark in held])
        self._new.put("leases", key, encode_lease(expires_at_ms, encode_held(runs)))
        lease_id = key[len(self._prefix) :]
        for block in dict.fromkeys([run.block for run in runs]):
            self._new.put("holders", self._prefix + block + lease_id, b"")
        for run in runs:
            self.digests.add(run, is_dead=False)
