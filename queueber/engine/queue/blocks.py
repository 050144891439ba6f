"""The blocks of a queue's items: read, and dropped when the last of their items is gone.

Items of a block end one by one. While some are left, the block stays as it is, and `leftovers` says
which are left. A block of which little is left is rewritten under the same key, so that the disk
holds at most a few times what is live (I14). A block that ends as a whole has no leftover at all.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.blocks import (
    Block,
    Leftover,
    bits_of,
    decode_leftover,
    encode_leftover,
    positions_of,
)
from queueber.db.records.cutting import Sizes
from queueber.db.records.keys import PREFIX_BYTES, last_id_end
from queueber.db.records.runs import Run
from queueber.db.store.contract import Reads, ScanIncomplete, Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.recent_blocks import RecentBlocks
from queueber.errors import invariant
from queueber.ids import ItemId
from queueber.limits import LOOKAHEAD_SKIPS_MAX


class BlockReader:
    """The blocks that one operation reads, each once."""

    __slots__ = ("_blocks", "_cached", "_prefix", "_reads")

    loses = False
    """Whether some items may be gone though there are entries of them; `has` says which."""

    def __init__(
        self,
        reads: Reads,
        prefix: bytes,
        cached: Callable[[ItemId], bytes | None] = lambda block: None,
    ) -> None:
        self._reads = reads
        self._prefix = prefix
        self._cached = cached
        self._blocks: dict[ItemId, Block] = {}

    def __getitem__(self, run: Run) -> Block:
        """The block of a run."""
        block = run.block
        found = self._blocks.get(block)
        if found is None:
            self._fetch([block])
            found = self._blocks[block]
        return found

    def has(self, run: Run, item_id: bytes) -> bool:
        """Whether an item of a run is still there."""
        return True

    def added_at_ms(self, run: Run, item_id: bytes) -> int:
        """When an item of a run was added."""
        return int.from_bytes(item_id[:6])

    def sizes(self, run: Run) -> Sizes:
        """The sizes of the items of a run's block, which is read when one is asked for."""
        return _Sizes(self, run)

    def fetch(self, runs: Iterable[Run]) -> None:
        """Read the blocks of many runs at once."""
        blocks = dict.fromkeys([run.block for run in runs])
        self._fetch([block for block in blocks if block not in self._blocks])

    def _fetch(self, blocks: Sequence[ItemId]) -> None:
        missing: list[ItemId] = []
        for block in blocks:
            value = self._cached(block)
            if value is None:
                missing.append(block)
            else:
                self._blocks[block] = Block(value)
        if missing:
            stored = self._reads.get_many(Family.ITEMS, [self._prefix + each for each in missing])
            for block, value in zip(missing, stored, strict=True):
                invariant(value is not None, "I2", block=block.hex())
                self._blocks[block] = Block(value or b"")


class _Sizes:
    __slots__ = ("_blocks", "_run")

    def __init__(self, blocks: BlockReader, run: Run) -> None:
        self._blocks = blocks
        self._run = run

    def size(self, start: int, stop: int) -> int:
        return self._blocks[self._run].size(start, stop)


class Blocks:
    """The blocks of one queue."""

    __slots__ = ("_prefix", "_recent", "_store", "when_recent_dropped")

    def __init__(self, store: Store, prefix: bytes, recent: RecentBlocks) -> None:
        self._store = store
        self._prefix = prefix
        self._recent = recent
        self.when_recent_dropped: Callable[[], None] = lambda: None

    def reader(self) -> BlockReader:
        return BlockReader(self._store, self._prefix, self._recent_value)

    def reader_of(self, reads: Reads) -> BlockReader:
        """As `reader`, of a snapshot."""
        return BlockReader(reads, self._prefix)

    def _recent_value(self, block: ItemId) -> bytes | None:
        return self._recent.get(self, block)

    # --- the cache --------------------------------------------------------------------------------

    def keep_recent(self, blocks: Sequence[tuple[ItemId, bytes, int]]) -> bool:
        """Cache blocks, each with the number of its ready items; whether they fit."""
        return self._recent.keep(self, blocks)

    def keep_started(self, rest: Run, value: bytes) -> None:
        """Cache a block of which a poll took the first items: the next poll reads on there."""
        if self._recent.get(self, rest.block) is None:
            self._recent.keep(self, [(rest.block, value, rest.count)])

    def left_ready(self, left: Sequence[tuple[ItemId, int]]) -> None:
        """So many items of each block have left the index of ready items."""
        self._recent.left(self, left)

    def forget_recent(self) -> None:
        """The queue is gone, or is being emptied."""
        self._recent.forget(self)

    def recent_dropped(self) -> None:
        self.when_recent_dropped()

    def stored(self, ids: Sequence[ItemId]) -> set[ItemId]:
        """Of items, given in order, those whose block is there; also some that another block may
        have, or so many deleted ones lie before it that a look would take long."""
        found: set[ItemId] = set()
        at = 0
        while at < len(ids):
            start, stop = self._prefix + ids[at], self._prefix + last_id_end(ids[-1])
            try:
                key = self._store.first_key(
                    Family.ITEMS, start, stop, skips_max=LOOKAHEAD_SKIPS_MAX
                )
            except ScanIncomplete:
                return found | set(ids[at:])
            if key is None:
                break
            last = key[PREFIX_BYTES:]
            while at < len(ids) and ids[at] <= last:
                if last < last_id_end(ids[at]):
                    found.add(ids[at])
                at += 1
        return found

    # --- items that are gone ----------------------------------------------------------------------

    def drop(self, tx: Transaction[Any], runs: Iterable[Run]) -> None:
        """The items are gone: delete what is stored of them."""
        gone = self._gone_in(tx)
        for run in runs:
            block = run.block
            bits, size, _ = gone.get(block, (0, 0, 0))
            gone[block] = (bits | bits_of(run.at, run.count), size + run.size, run.span)

    def _gone_in(self, tx: Transaction[Any]) -> "dict[ItemId, _Gone]":
        gone: dict[ItemId, _Gone] | None = tx.pending.get(self)
        if gone is None:
            gone = tx.pending[self] = {}
            tx.before_write(self._write, tx, gone)
        return gone

    def _write(self, tx: Transaction[Any], gone: "dict[ItemId, _Gone]") -> None:
        prefix = self._prefix
        parts: list[ItemId] = []
        for block, (bits, _, span) in gone.items():
            if bits == bits_of(0, span):
                tx.batch.delete(Family.ITEMS, prefix + block)
            else:
                parts.append(block)
        if not parts:
            return
        stored = tx.store.get_many(Family.LEFTOVERS, [prefix + block for block in parts])
        for block, value in zip(parts, stored, strict=True):
            bits, size, span = gone[block]
            before = self._whole(block, span) if value is None else decode_leftover(value)
            invariant(before.bits & bits == bits, "I14", block=block.hex(), bits=bits)
            left = Leftover(before.stored, before.size - size, before.bits & ~bits)
            self._write_leftover(tx, block, left, had_one=value is not None)

    def _whole(self, block: ItemId, span: int) -> Leftover:
        """What is left of a block without a leftover: all of it."""
        value = self._value(block)
        return Leftover(len(value), Block(value).size(0, span), bits_of(0, span))

    def _write_leftover(
        self, tx: Transaction[Any], block: ItemId, left: Leftover, *, had_one: bool
    ) -> None:
        key = self._prefix + block
        if not left.bits:
            tx.batch.delete(Family.ITEMS, key)
            if had_one:
                tx.batch.delete(Family.LEFTOVERS, key)
            return
        if left.is_wasteful:
            value = Block(self._value(block)).rewritten(positions_of(left.bits))
            tx.batch.put(Family.ITEMS, key, value)
            left = left._replace(stored=len(value))
        tx.batch.put(Family.LEFTOVERS, key, encode_leftover(left))

    def _value(self, block: ItemId) -> bytes:
        value = self._store.get(Family.ITEMS, self._prefix + block)
        invariant(value is not None, "I2", block=block.hex())
        return value or b""


_Gone = tuple[int, int, int]
"""Of a block in a transaction: the bits and bytes of its items that are gone, and its span."""
