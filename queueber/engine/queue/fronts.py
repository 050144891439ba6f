"""Fronts: what polls take items from, each in its order. A level of the ready index is one.

A group that shares the messages of a topic is a queue as well. It has fronts of its own: messages
that came back may be deleted meanwhile, and those that no consumer has had are in no index.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from queueber.db.records.cutting import cut
from queueber.db.records.runs import Entry, Run
from queueber.engine.kernel.due_scan import Done
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.blocks import BlockReader


class Front(Protocol):
    """Entries in order, and how many of their items the polls of this call have."""

    level: int

    @property
    def has_items(self) -> bool: ...

    @property
    def first(self) -> Entry:
        """The first entry, or what is left of it."""

    def cut(self, count: int, blocks: BlockReader) -> tuple[Run, Run | None]:
        """The first `count` items, all of the first run or fewer, and the rest of it."""

    def take(self, rest: Run | None) -> None:
        """The first run is taken, but for its rest."""

    def take_out(self, tx: Transaction[Any], blocks: BlockReader) -> None:
        """Take what the polls got out of where it was."""


class LevelFront:
    """The first entries of a level of the ready index."""

    __slots__ = ("_at", "_entries", "_rest", "level")

    def __init__(self, level: int, entries: list[Entry]) -> None:
        self.level = level
        self._entries = entries
        self._at = 0
        self._rest: Run | None = None
        """What is left of the entry at `_at`, if a part of it was taken."""

    @property
    def has_items(self) -> bool:
        return self._at < len(self._entries)

    @property
    def first(self) -> Entry:
        due, run = self._entries[self._at]
        return due, self._rest or run

    def cut(self, count: int, blocks: BlockReader) -> tuple[Run, Run | None]:
        _, run = self.first
        return (run, None) if count == run.count else cut(run, count, blocks[run])

    def take(self, rest: Run | None) -> None:
        self._rest = rest
        if rest is None:
            self._at += 1

    def take_out(self, tx: Transaction[Any], blocks: BlockReader) -> None:
        rest = self._rest
        end = self._at if rest is None else self._at + 1
        if end:
            tx.queue.ready.take_first(tx, self.level, self._entries[:end], rest)
        if rest is not None:
            # The next poll begins in the same block.
            tx.after_write(tx.queue.blocks.keep_started, rest, blocks[rest].value)


class GrowingFront(LevelFront):
    """As `LevelFront`, of a queue that parks items: then more entries are needed than items."""

    __slots__ = ("_first", "_has_more", "_items")

    def __init__(self, level: int, items: int, first: Callable[[int], list[Entry]]) -> None:
        """`first` returns the first entries of the level with so many items, or all."""
        super().__init__(level, first(items))
        self._items = items
        self._first = first
        self._has_more = True

    @property
    def has_items(self) -> bool:
        if self._at == len(self._entries) and self._has_more:
            self._items *= 2
            self._entries = self._first(self._items)
            self._has_more = self._at < len(self._entries)
        return self._at < len(self._entries)


class Undelivered(Protocol):
    """The messages of a topic, as far as a group of it shares them. `queue` is that group."""

    def count(self, partition: int | None = None) -> int:
        """How many messages no consumer has had, in one partition or in all."""

    def allowed(self, tx: Transaction[Any], counts: Sequence[int]) -> Sequence[int]:
        """How many messages each of some polls may get, because so many may be leased at once."""

    def fronts(
        self, queue: Any, blocks: BlockReader, count: int, partition: int | None
    ) -> Sequence[Front]:
        """What polls of `count` messages in all take them from: all partitions, or a window of
        one."""

    def delivered(self, tx: Transaction[Any], letters: Sequence[Run]) -> list[Run]:
        """Of dead letters that are revived those that a consumer has had since the last reset of
        the group; the others are dropped, because a poll finds them among the undelivered."""

    def has_lost(self) -> bool:
        """Whether the topic may have deleted messages that the group still has entries of."""

    def drop_lost(self, tx: Transaction[Any], limit: int) -> Done:
        """Drop entries of messages that the topic has deleted."""
