"""The check of a group that shares messages: a queue whose contents are in the logs of its topic.

All rules of a queue's runs, leases and counters hold for it. What it has of messages that the topic
has deleted may stay until somebody comes across it.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from queueber.db.families import Family
from queueber.db.records.blocks import bits_of
from queueber.db.records.keys import prefix_end, queue_prefix
from queueber.db.records.log import block_key
from queueber.db.records.messages import MessageBlock
from queueber.db.records.topics import Inherited
from queueber.db.store.contract import Store
from queueber.engine.integrity.check_items import ItemsCheck, misfits
from queueber.engine.integrity.queue_entries import CheckedQueue, Violation, readable
from queueber.engine.integrity.states import StateRun
from queueber.engine.integrity.stored_blocks import StoredBlock, read_block
from queueber.ids import ItemId, reference, split_reference

_CACHED_MAX = 1000


class TopicBlocks:
    """The blocks of a topic's logs, by the references of their last messages."""

    def __init__(
        self, store: Store, stretches: Sequence[Sequence[Inherited]], *, keeps_last: bool
    ) -> None:
        """`stretches` has, for each partition, where its messages are: its own log is the last."""
        self._store = store
        self._stretches = stretches
        self.keeps_last = keeps_last
        self._blocks: dict[ItemId, StoredBlock | None] = {}

    def first_offset(self, partition: int) -> int:
        return self._stretches[partition][0].first

    def has_partition(self, partition: int) -> bool:
        return partition < len(self._stretches)

    def fetch(self, blocks: Sequence[ItemId]) -> None:
        if len(self._blocks) > _CACHED_MAX:
            self._blocks.clear()
        for each in blocks:
            if each not in self._blocks:
                self._blocks[each] = self._read(each)

    def __getitem__(self, block: ItemId) -> StoredBlock | None:
        return self._blocks[block]

    def _read(self, block_id: ItemId) -> StoredBlock | None:
        partition, offset = readable(split_reference, block_id) or (len(self._stretches), 0)
        if not self.has_partition(partition) or offset < self.first_offset(partition):
            return None
        parts = self._stretches[partition]
        at = bisect_right([each.end for each in parts], offset)
        if at == len(parts):
            return None
        prefix = queue_prefix(parts[at].log)
        found = self._store.scan(
            Family.LOG_BLOCKS, block_key(prefix, offset), prefix_end(prefix), 1
        )
        block = readable(MessageBlock, *found[0]) if found else None
        if block is None or block.first_offset > offset:
            return None
        stored = read_block(reference(partition, block.end_offset - 1), block.block, None)
        span = min(block.end_offset, parts[at].end) - block.first_offset
        bits = stored.present & bits_of(0, span)
        return replace(
            stored, last=block_id, span=span, present=bits, left=bits, ends=stored.ends[:span]
        )


class SharedCheck(ItemsCheck):
    """Holds all runs of the group in memory: those that consumers work on, or failed."""

    def __init__(
        self, group: CheckedQueue, topic: TopicBlocks, positions: Sequence[int | None]
    ) -> None:
        super().__init__(group, topic)
        self._topic = topic
        self._positions = positions
        self._found: list[tuple[bytes, bytes]] = []
        """The first and the last reference of each run."""

    def run(self) -> Iterator[Violation]:
        yield from self._check_entries()
        self._found.sort()
        for (_, last), (first, _) in zip(self._found, self._found[1:], strict=False):
            if first <= last:
                yield self._broken("I17", f"{first.hex()} is in several states")
        yield from self._check_counts(self._counted.items)

    def _check_fit(
        self, where: str, state: StateRun, block: StoredBlock | None
    ) -> Iterator[Violation]:
        run = state.run
        self._counted.contents_bytes += run.size
        self._found.append((run.first, run.last))
        place = readable(split_reference, run.last)
        if place is None or not self._topic.has_partition(place[0]):
            yield self._broken("I17", f"{where}, which are no messages of the topic")
            return
        partition, last = place
        # Dead letters stay where they are when the group is reset.
        position = self._positions[partition] or 0
        if state.family is not Family.DEAD and last >= position:
            yield self._broken("I17", f"{where}, but the group is at {position}")
        if self._topic.keeps_last or last < self._topic.first_offset(partition):
            return
        if block is None:
            yield self._broken("I17", f"{where}, but there is no such block")
            return
        for text in misfits(run, block):
            yield self._broken("I17", f"{where}, {text}")
