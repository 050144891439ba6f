"""Contents of items that were added a moment ago, so that the poll that gets them need not read.

An item is added once, and most are polled soon after. Contents never change, so what is kept here
is right for as long as the item waits; what is not kept, is read. When a queue has no more room its
oldest stay, for they are polled first; when all have none, queues that nobody uses make some.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat

from queueber.limits import FRESH_BYTES_MAX, FRESH_QUEUE_BYTES_MAX

_ENTRY_BYTES = 350
"""What an item takes beside its contents, here and in the window of ready entries."""

_IDLE_TURNS = 100
"""A queue that was not used while so many adds of others came is one that nobody uses now."""


class FreshContents:
    def __init__(self) -> None:
        self._bytes = 0
        self._turn = 0
        self._queues: dict[int, _OfQueue] = {}
        """The one that was used last comes last."""

    def keep(
        self,
        queue_id: int,
        ids: Sequence[bytes],
        contents: Sequence[bytes],
        when_dropped: Callable[[int], None] = lambda _: None,
    ) -> bool:
        """All of them, or none if there is no room; whether they are here.

        `when_dropped` is called with each queue whose contents had to make room.
        """
        size = sum(map(len, contents)) + _ENTRY_BYTES * len(ids)
        self._turn += 1
        known = self._use(queue_id) or _OfQueue()
        if known.bytes + size > FRESH_QUEUE_BYTES_MAX:
            return False
        while self._bytes + size > FRESH_BYTES_MAX:
            idlest, of_idlest = next(iter(self._queues.items()), (queue_id, known))
            if idlest == queue_id or self._turn - of_idlest.used_at <= _IDLE_TURNS:
                return False
            self.forget(idlest)
            when_dropped(idlest)
        self._queues[queue_id] = known
        known.used_at = self._turn
        known.contents.update(zip(ids, contents, strict=True))
        known.bytes += size
        self._bytes += size
        return True

    def take(self, queue_id: int, ids: Iterable[bytes]) -> list[bytes | None]:
        """Their contents, as far as they are here; they are not any more."""
        known = self._use(queue_id)
        if known is None:
            return [None for _ in ids]
        taken = list(map(known.contents.pop, ids, repeat(None)))
        found = [each for each in taken if each is not None]
        size = sum(map(len, found)) + _ENTRY_BYTES * len(found)
        known.bytes -= size
        self._bytes -= size
        if not known.contents:
            del self._queues[queue_id]
        return taken

    def forget(self, queue_id: int) -> None:
        """The queue is gone, or has been emptied."""
        known = self._queues.pop(queue_id, None)
        if known is not None:
            self._bytes -= known.bytes

    def _use(self, queue_id: int) -> "_OfQueue | None":
        known = self._queues.pop(queue_id, None)
        if known is not None:
            known.used_at = self._turn
            self._queues[queue_id] = known
        return known


class _OfQueue:
    __slots__ = ("bytes", "contents", "used_at")

    def __init__(self) -> None:
        self.contents: dict[bytes, bytes] = {}
        self.bytes = 0
        self.used_at = 0
