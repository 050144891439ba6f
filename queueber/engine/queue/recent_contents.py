"""Contents of items that were added a moment ago, so that the poll that gets them need not read.

An item is added once, and most are polled soon after. Contents never change, so what is cached here
is right for as long as the item waits; what is not, is read. When a queue has used up its share,
its oldest stay, for they are polled first; when the cache is full, idle queues make room.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Protocol

from queueber.limits import RECENT_BYTES_MAX, RECENT_QUEUE_BYTES_MAX

_ENTRY_BYTES = 350
"""What an item takes beside its contents, here and in the window of ready entries."""

_IDLE_TURNS = 100
"""A queue that was not used while so many adds of others came is idle."""


class CacheUser(Protocol):
    """A queue's index of ready items, as far as the cache knows it."""

    def contents_dropped(self) -> None:
        """Its contents had to make room."""


class RecentContents:
    """One cache for all queues."""

    def __init__(self) -> None:
        self._bytes = 0
        self._turn = 0
        self._users: dict[CacheUser, _Share] = {}
        """The one that was used last comes last."""

    def keep(self, user: CacheUser, ids: Sequence[bytes], contents: Sequence[bytes]) -> bool:
        """Cache all of them, or none if there is no room; whether they are cached."""
        size = sum(map(len, contents)) + _ENTRY_BYTES * len(ids)
        self._turn += 1
        share = self._use(user) or _Share()
        if share.bytes + size > RECENT_QUEUE_BYTES_MAX:
            return False
        while self._bytes + size > RECENT_BYTES_MAX:
            idlest, of_idlest = next(iter(self._users.items()), (user, share))
            if idlest is user or self._turn - of_idlest.used_at <= _IDLE_TURNS:
                return False
            self.forget(idlest)
            idlest.contents_dropped()
        self._users[user] = share
        share.used_at = self._turn
        share.contents.update(zip(ids, contents, strict=True))
        share.bytes += size
        self._bytes += size
        return True

    def take(self, user: CacheUser, ids: Iterable[bytes]) -> list[bytes | None]:
        """Their contents, as far as they are cached; they are not any more."""
        share = self._use(user)
        if share is None:
            return [None for _ in ids]
        taken = list(map(share.contents.pop, ids, repeat(None)))
        found = [each for each in taken if each is not None]
        size = sum(map(len, found)) + _ENTRY_BYTES * len(found)
        share.bytes -= size
        self._bytes -= size
        if not share.contents:
            del self._users[user]
        return taken

    def forget(self, user: CacheUser) -> None:
        """The queue is gone, or has been emptied."""
        share = self._users.pop(user, None)
        if share is not None:
            self._bytes -= share.bytes

    def _use(self, user: CacheUser) -> "_Share | None":
        share = self._users.pop(user, None)
        if share is not None:
            share.used_at = self._turn
            self._users[user] = share
        return share


class _Share:
    """What is cached of one queue."""

    __slots__ = ("bytes", "contents", "used_at")

    def __init__(self) -> None:
        self.contents: dict[bytes, bytes] = {}
        self.bytes = 0
        self.used_at = 0
