"""A cache of the contents of recently added items: a poll that gets them reads nothing.

Most items are polled soon after they were added. Contents never change, so a cached one is right
until its item is polled; a poll reads from the store what is not cached. When a queue has used up
its share, its oldest contents stay, because they are polled first. When the cache is full, it drops
the contents of idle queues.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Protocol

from queueber.ids import ItemId
from queueber.limits import RECENT_BYTES_MAX, RECENT_QUEUE_BYTES_MAX

_ENTRY_BYTES = 350
"""Memory of an item beside its contents, here and in the window of ready entries."""

_IDLE_ADDS = 100
"""A queue is idle if this many adds of other queues came since it was last used."""


class CacheUser(Protocol):
    """What the cache knows of a queue's index of ready items."""

    def contents_dropped(self) -> None:
        """The cache has dropped the contents of this queue."""


class RecentContents:
    """One cache for all queues."""

    def __init__(self) -> None:
        self._bytes = 0
        self._adds = 0
        self._users: dict[CacheUser, _Share] = {}
        """In order of use: the one that was used last comes last."""

    def keep(self, user: CacheUser, ids: Sequence[ItemId], contents: Sequence[bytes]) -> bool:
        """Cache all of them, or none if they do not fit; whether they are cached."""
        size = sum(map(len, contents)) + _ENTRY_BYTES * len(ids)
        self._adds += 1
        share = self._use(user) or _Share()
        if share.bytes + size > RECENT_QUEUE_BYTES_MAX:
            return False
        while self._bytes + size > RECENT_BYTES_MAX:
            idlest, of_idlest = next(iter(self._users.items()), (user, share))
            if idlest is user or self._adds - of_idlest.used_at <= _IDLE_ADDS:
                return False
            self.forget(idlest)
            idlest.contents_dropped()
        self._users[user] = share
        share.used_at = self._adds
        share.contents.update(zip(ids, contents, strict=True))
        share.bytes += size
        self._bytes += size
        return True

    def take(self, user: CacheUser, ids: Iterable[ItemId]) -> list[bytes | None]:
        """The contents of items, None for those that are not cached. The cache drops them."""
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
        """Drop the contents of a queue: it was deleted or emptied."""
        share = self._users.pop(user, None)
        if share is not None:
            self._bytes -= share.bytes

    def _use(self, user: CacheUser) -> "_Share | None":
        share = self._users.pop(user, None)
        if share is not None:
            share.used_at = self._adds
            self._users[user] = share
        return share


class _Share:
    """What is cached of one queue."""

    __slots__ = ("bytes", "contents", "used_at")

    def __init__(self) -> None:
        self.contents: dict[ItemId, bytes] = {}
        self.bytes = 0
        self.used_at = 0
