"""What polls of a shared group take messages from: those that came back, then those that are new.

Messages that came back are in the ready index. The topic may have deleted some of them meanwhile: a
poll takes these out of the index as well, and gives them to nobody.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from queueber.db.records.cutting import part
from queueber.db.records.keys import DUE_BYTES, Due
from queueber.db.records.runs import Entry, Run
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.blocks import BlockReader
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.queue.remove import finish
from queueber.engine.records.batches import Side
from queueber.engine.topics.group_entries import has_dead_from, without_dead
from queueber.engine.topics.message_blocks import MessageReader, Messages, runs_from
from queueber.ids import split_reference
from queueber.limits import PRIORITY_MAX

_LAST_LEVEL = PRIORITY_MAX
"""After all other levels of a group, whose messages have the default priority."""
_LAST_DUE = Due(b"\xff" * DUE_BYTES)


class ReturnedFront:
    """The first entries of a level of the ready index."""

    __slots__ = (
        "_at", "_blocks", "_count", "_done", "_entries", "_lost", "_queue", "_stop", "level",
    )  # fmt: skip

    def __init__(self, queue: QueueState, blocks: MessageReader, level: int, count: int) -> None:
        self._queue = queue
        self._blocks = blocks
        self._count = count
        self._entries = queue.ready.first(queue.counters, level, count)
        self._at = 0
        self._done = 0
        """How many messages of the entry at `_at` are taken or lost."""
        self._stop = 0
        """Up to which position of that entry the next messages are there; `_done`: not known."""
        self._lost: list[Run] = []
        self.level = level

    @property
    def has_items(self) -> bool:
        while self._stop == self._done:
            if self._at == len(self._entries) and not self._read_on():
                return False
            _, run = self._entries[self._at]
            start, stop = next(
                ((max(a, self._done), b) for a, b in self._blocks.kept(run) if b > self._done),
                (run.count, run.count),
            )
            if start > self._done:
                self._lost.append(part(run, self._done, start, self._blocks.sizes(run)))
            self._done, self._stop = start, stop
            self._leave_finished()
        return True

    def _read_on(self) -> bool:
        """Read further entries, because messages of the first ones were lost."""
        lost = sum([run.count for run in self._lost])
        known = len(self._entries)
        if lost:
            queue = self._queue
            self._entries = queue.ready.first(queue.counters, self.level, self._count + lost)
        return len(self._entries) > known

    def _leave_finished(self) -> None:
        if self._done == self._entries[self._at][1].count:
            self._at += 1
            self._done = self._stop = 0

    @property
    def first(self) -> Entry:
        due, run = self._entries[self._at]
        return due, part(run, self._done, self._stop, self._blocks.sizes(run))

    def cut(self, count: int, blocks: BlockReader) -> tuple[Run, Run | None]:
        _, run = self._entries[self._at]
        sizes, end = self._blocks.sizes(run), self._done + count
        rest = part(run, end, self._stop, sizes) if end < self._stop else None
        return part(run, self._done, end, sizes), rest

    def take(self, rest: Run | None) -> None:
        self._done = self._stop - (rest.count if rest is not None else 0)
        self._leave_finished()

    def take_out(self, tx: Transaction[Any], blocks: BlockReader) -> None:
        end, rest = self._at, None
        if self._done:
            _, run = self._entries[self._at]
            rest = part(run, self._done, run.count, self._blocks.sizes(run))
            end += 1
        if end:
            tx.queue.ready.take_first(tx, self.level, self._entries[:end], rest)
        if self._lost:
            finish(tx, self._lost, Side.DEAD)
            tx.counters.cancelled_total += sum([run.count for run in self._lost])


class Positions(Protocol):
    """Where the messages begin that no consumer has had."""

    store: Store
    topic: Messages
    positions: dict[int, int]

    def move(self, tx: Transaction[Any], offsets: dict[int, int]) -> None: ...


class UndeliveredFront:
    """The messages that no consumer has had, of one partition, or one partition after the other.

    Each call begins with another partition, so that none waits for the others to be empty.
    """

    __slots__ = ("_bytes", "_count", "_missed", "_moved", "_of", "_run", "_runs", "level")

    def __init__(
        self,
        of: Positions,
        queue: QueueState,
        blocks: MessageReader,
        partition: int | None = None,
    ) -> None:
        self._of = of
        self._run: Run | None = None
        self._moved: dict[int, int] = {}
        self._missed: dict[int, int] = {}
        """Messages of each partition that the topic deleted before anybody had them."""
        # Not a method: with a reference to this object neither would be freed at once.
        total, first = of.topic.partitions, queue.counters.leases_total
        partitions = [(first + each) % total for each in range(total)]
        if partition is not None:
            partitions = [partition]
        self._runs = _read(of, queue, blocks, partitions, self._moved, self._missed)
        self._count = self._bytes = 0
        self.level = _LAST_LEVEL

    @property
    def has_items(self) -> bool:
        if self._run is None:
            self._run = next(self._runs, None)
        return self._run is not None

    @property
    def first(self) -> Entry:
        assert self._run is not None
        return _LAST_DUE, self._run

    def cut(self, count: int, blocks: BlockReader) -> tuple[Run, Run | None]:
        assert self._run is not None
        run, sizes = self._run, blocks.sizes(self._run)
        rest = part(run, count, run.count, sizes) if count < run.count else None
        return part(run, 0, count, sizes), rest

    def take(self, rest: Run | None) -> None:
        assert self._run is not None
        run, self._run = self._run, rest
        left = 0 if rest is None else rest.count
        partition, last = split_reference(run.last)
        self._moved[partition] = last + 1 - left
        self._count += run.count - left
        self._bytes += run.size - (0 if rest is None else rest.size)

    def take_out(self, tx: Transaction[Any], blocks: BlockReader) -> None:
        if self._moved:
            self._of.move(tx, self._moved)
        counters = tx.counters
        missed = sum([self._missed[partition] for partition in self._moved])
        counters.added_total += self._count + missed
        counters.cancelled_total += missed
        counters.contents_bytes += self._bytes


def _read(
    of: Positions,
    queue: QueueState,
    blocks: MessageReader,
    partitions: Sequence[int],
    moved: dict[int, int],
    missed: dict[int, int],
) -> Iterator[Run]:
    """The messages that no consumer has had. Notes what was missed, and ends that are reached."""
    topic, positions, store = of.topic, of.positions, of.store
    for partition in partitions:
        at, end = positions.get(partition, 0), topic.next_offset(partition)
        start = max(at, topic.first_offset(partition))
        if start == end:
            continue
        missed[partition] = start - at
        may_be_dead = has_dead_from(store, queue, partition, start)
        for run in runs_from(store, topic, partition, start, blocks):
            if may_be_dead:
                yield from without_dead(store, queue, run, blocks.sizes(run))
            else:
                yield run
        # Those behind the last one were replaced, or are dead letters.
        moved[partition] = end
