"""A cache of the blocks of recently added items, for all queues: polls read nothing.

Most items are polled soon after they were added. The contents of an item never change, so a cached
block is right for every item that it has; a poll reads from the store what is not cached. A block
leaves the cache once all its items have left the index of ready items. When a queue has used up its
share, its oldest blocks stay, because they are polled first. When the cache is full, it drops the
blocks of idle queues.
"""

from collections.abc import Sequence
from typing import Protocol

from queueber.ids import ItemId
from queueber.limits import RECENT_BYTES_MAX, RECENT_QUEUE_BYTES_MAX

_ENTRY_BYTES = 600
"""Memory of a block beside its value, in this cache and in the window of ready entries."""

_IDLE_ADDS = 100
"""A queue is idle if this many adds of other queues came since it was last used."""


class CachedBlock:
    __slots__ = ("left", "value")

    def __init__(self, value: bytes, left: int) -> None:
        self.value = value
        self.left = left
        """How many of its items have not left the index of ready items."""


class User(Protocol):
    """The blocks of one queue."""

    def recent_dropped(self) -> None:
        """The cache has dropped all blocks of the queue."""


class RecentBlocks:
    def __init__(self) -> None:
        self._bytes = 0
        self._adds = 0
        self._users: dict[User, _Share] = {}
        """In order of use: the one that was used last comes last."""

    def keep(self, user: User, blocks: Sequence[tuple[ItemId, bytes, int]]) -> bool:
        """Cache all of them, or none if they do not fit; whether they are cached.

        Each is the block's last id, its value, and how many of its items are ready.
        """
        size = sum([len(value) for _, value, _ in blocks]) + _ENTRY_BYTES * len(blocks)
        self._adds += 1
        share = self._use(user) or _Share()
        if share.bytes + size > RECENT_QUEUE_BYTES_MAX:
            return False
        while self._bytes + size > RECENT_BYTES_MAX:
            idlest, of_idlest = next(iter(self._users.items()), (user, share))
            if idlest is user or self._adds - of_idlest.used_at <= _IDLE_ADDS:
                return False
            self.forget(idlest)
            idlest.recent_dropped()
        self._users[user] = share
        share.used_at = self._adds
        for block, value, left in blocks:
            share.blocks[block] = CachedBlock(value, left)
        share.bytes += size
        self._bytes += size
        return True

    def get(self, user: User, block: ItemId) -> bytes | None:
        share = self._use(user)
        cached = None if share is None else share.blocks.get(block)
        return None if cached is None else cached.value

    def left(self, user: User, left: Sequence[tuple[ItemId, int]]) -> None:
        """So many items of each block have left the index of ready items."""
        share = self._users.get(user)
        if share is None:
            return
        for block, count in left:
            cached = share.blocks.get(block)
            if cached is not None:
                cached.left -= count
        # Only then: a run of which a part stays is counted in two steps.
        for block in {block for block, _ in left}:
            cached = share.blocks.get(block)
            if cached is not None and cached.left <= 0:
                del share.blocks[block]
                size = len(cached.value) + _ENTRY_BYTES
                share.bytes -= size
                self._bytes -= size
        if not share.blocks:
            del self._users[user]

    def forget(self, user: User) -> None:
        """Drop the blocks of a queue: it was deleted or emptied."""
        share = self._users.pop(user, None)
        if share is not None:
            self._bytes -= share.bytes

    def _use(self, user: User) -> "_Share | None":
        share = self._users.pop(user, None)
        if share is not None:
            share.used_at = self._adds
            self._users[user] = share
        return share


class _Share:
    """What is cached of one queue."""

    __slots__ = ("blocks", "bytes", "used_at")

    def __init__(self) -> None:
        self.blocks: dict[ItemId, CachedBlock] = {}
        self.bytes = 0
        self.used_at = 0
