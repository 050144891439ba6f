"""What a poll of one partition of a shared group takes messages from: a window of its log.

A consumer that acknowledges all messages up to an offset settles whatever lies before it. So the
messages of such a poll are in the order of their offsets, and between the first and the last there
is none that another consumer has, or that waits for its next attempt: those in between are done,
dead or deleted. The window begins with the first message that came back; if there is none, with the
first that no consumer has had.
"""

from collections.abc import Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.cutting import part
from queueber.db.records.keys import PREFIX_BYTES
from queueber.db.records.runs import Entry, Run
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.blocks import BlockReader
from queueber.engine.queue.fronts import Front
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.queue.remove import finish
from queueber.engine.records.batches import Side
from queueber.engine.topics.group_entries import entry_of, lowest_leased, range_of
from queueber.engine.topics.group_fronts import Positions, UndeliveredFront
from queueber.engine.topics.message_blocks import MessageReader
from queueber.ids import split_reference
from queueber.limits import WINDOW_DELAYED_MAX

Returned = tuple[int, Entry]
"""A ready run with its level in the ready index."""


def window_front(
    of: Positions, queue: QueueState, blocks: MessageReader, partition: int, count: int
) -> Front:
    """The window of a partition, for polls of `count` messages in all."""
    returned, reaches_position = _returned(of, queue, partition, count)
    fronts: list[Front] = []
    if returned:
        fronts.append(ReturnedWindow(queue, blocks, returned))
    if reaches_position:
        fronts.append(UndeliveredFront(of, queue, blocks, partition))
    return Window(fronts)


def _returned(
    of: Positions, queue: QueueState, partition: int, count: int
) -> tuple[list[Returned], bool]:
    """The ready runs of the window in order, and whether it goes on with messages that no consumer
    has had."""
    counters, store = queue.counters, of.store
    if not counters.ready:
        return [], True
    found: list[Returned] = []
    total = delayed = end = 0
    for key, time in store.walk(Family.PLACES, *range_of(queue.prefix, partition)):
        level, entry = entry_of(store, queue, key[PREFIX_BYTES:], int.from_bytes(time))
        run = entry[1]
        if level is None:
            delayed += 1
            if found:
                return found, False
            if delayed > WINDOW_DELAYED_MAX:
                return [], True
            continue
        first = split_reference(run.first)[1]
        if found and lowest_leased(store, queue, partition, end, first) < first:
            return found, False
        found.append((level, entry))
        total += run.count
        end = split_reference(run.last)[1] + 1
        if total >= count:
            return found, False
    at = of.positions.get(partition, 0)
    return found, not found or lowest_leased(store, queue, partition, end, at) >= at


class Window:
    """Fronts one after the other: a later one is taken from when those before it are empty."""

    __slots__ = ("_fronts", "level")

    def __init__(self, fronts: Sequence[Front]) -> None:
        self._fronts = fronts
        self.level = 0

    def _next(self) -> Front | None:
        return next((each for each in self._fronts if each.has_items), None)

    @property
    def has_items(self) -> bool:
        return self._next() is not None

    @property
    def first(self) -> Entry:
        front = self._next()
        assert front is not None
        return front.first

    def cut(self, count: int, blocks: BlockReader) -> tuple[Run, Run | None]:
        front = self._next()
        assert front is not None
        return front.cut(count, blocks)

    def take(self, rest: Run | None) -> None:
        front = self._next()
        assert front is not None
        front.take(rest)

    def take_out(self, tx: Transaction[Any], blocks: BlockReader) -> None:
        for front in self._fronts:
            front.take_out(tx, blocks)


class ReturnedWindow:
    """Ready runs in the order of their offsets. Messages that the topic has deleted meanwhile are
    taken out as well, and given to nobody."""

    __slots__ = ("_at", "_blocks", "_done", "_kept", "_queue", "_runs", "level")

    def __init__(
        self, queue: QueueState, blocks: MessageReader, returned: Sequence[Returned]
    ) -> None:
        self._queue = queue
        self._blocks = blocks
        self._runs = returned
        self._kept = [
            (number, start, stop)
            for number, (_, (_, run)) in enumerate(returned)
            for start, stop in blocks.kept(run)
        ]
        self._at = 0
        self._done = self._kept[0][1] if self._kept else 0
        """The next position of the run at `_at`."""
        self.level = 0

    @property
    def has_items(self) -> bool:
        return self._at < len(self._kept)

    @property
    def first(self) -> Entry:
        number, _, stop = self._kept[self._at]
        due, run = self._runs[number][1]
        return due, part(run, self._done, stop, self._blocks.sizes(run))

    def cut(self, count: int, blocks: BlockReader) -> tuple[Run, Run | None]:
        number, _, stop = self._kept[self._at]
        run = self._runs[number][1][1]
        sizes, end = self._blocks.sizes(run), self._done + count
        rest = part(run, end, stop, sizes) if end < stop else None
        return part(run, self._done, end, sizes), rest

    def take(self, rest: Run | None) -> None:
        _, _, stop = self._kept[self._at]
        if rest is not None:
            self._done = stop - rest.count
            return
        self._at += 1
        if self.has_items:
            self._done = self._kept[self._at][1]

    def take_out(self, tx: Transaction[Any], blocks: BlockReader) -> None:
        lost: list[Run] = []
        for number, (level, entry) in enumerate(self._runs):
            run = entry[1]
            sizes, end = self._blocks.sizes(run), self._end(number)
            if not end:
                break
            left = [part(run, end, run.count, sizes)] if end < run.count else []
            self._queue.ready.take_some(tx, level, entry, left)
            at = 0
            for start, stop in [each[1:] for each in self._kept if each[0] == number]:
                if at < start <= end:
                    lost.append(part(run, at, start, sizes))
                at = stop
            if at < end:
                lost.append(part(run, at, end, sizes))
        if lost:
            finish(tx, lost, Side.DEAD)
            tx.counters.cancelled_total += sum([run.count for run in lost])

    def _end(self, number: int) -> int:
        """Up to which position of a run its messages are taken or lost."""
        if not self.has_items or number < self._kept[self._at][0]:
            return self._runs[number][1][1].count
        return self._done if number == self._kept[self._at][0] else 0
