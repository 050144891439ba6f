"""Contents of items that were added a moment ago, so that the poll that gets them need not read.

An item is added once, and most are polled soon after. Contents never change, so what is kept here
is right for as long as the item waits; what is not kept, is read. When there is no more room the
oldest stay, for they are polled first.
"""

from collections.abc import Iterable, Sequence

from queueber.limits import FRESH_BYTES_MAX, FRESH_QUEUE_BYTES_MAX

_ENTRY_BYTES = 350
"""What an item takes beside its contents, here and in the window of ready entries."""


class FreshContents:
    def __init__(self) -> None:
        self._bytes = 0
        self._queues: dict[int, _OfQueue] = {}

    def keep(self, queue_id: int, ids: Sequence[bytes], contents: Sequence[bytes]) -> bool:
        """All of them, or none if there is no room; whether they are here."""
        size = sum(map(len, contents)) + _ENTRY_BYTES * len(ids)
        known = self._queues.get(queue_id) or _OfQueue()
        if self._bytes + size > FRESH_BYTES_MAX or known.bytes + size > FRESH_QUEUE_BYTES_MAX:
            return False
        self._queues[queue_id] = known
        known.contents.update(zip(ids, contents, strict=True))
        known.bytes += size
        self._bytes += size
        return True

    def take(self, queue_id: int, ids: Iterable[bytes]) -> list[bytes | None]:
        """Their contents, as far as they are here; they are not any more."""
        known = self._queues.get(queue_id)
        if known is None:
            return [None for _ in ids]
        pop = known.contents.pop
        taken = [pop(item_id, None) for item_id in ids]
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


class _OfQueue:
    __slots__ = ("bytes", "contents")

    def __init__(self) -> None:
        self.contents: dict[bytes, bytes] = {}
        self.bytes = 0
