"""Long messages that are coming in: how much memory they may take together.

A message gets the memory for all of it before it is read, so that those under way can end.
"""

from collections.abc import Callable


class MessageMemory:
    """Of the long messages of all connections."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._waiting: dict[Callable[[], None], None] = {}
        self.bytes = 0

    @property
    def is_crowded(self) -> bool:
        """Whether messages wait: connections that send nothing should be closed soon."""
        return bool(self._waiting)

    def reserve(self, size: int, ask_again: Callable[[], None]) -> bool:
        """Whether there is memory; if not, `ask_again` is called when there may be."""
        if self.bytes and self.bytes + size > self._bytes_max:
            self._waiting[ask_again] = None
            return False
        self.bytes += size
        return True

    def forget(self, ask_again: Callable[[], None]) -> None:
        """It does not wait any more."""
        self._waiting.pop(ask_again, None)

    def release(self, size: int) -> None:
        self.bytes -= size
        waiting, self._waiting = self._waiting, {}
        for ask_again in waiting:
            ask_again()


class LongMessage:
    """The long message of one connection, if one is coming in or waits for memory."""

    def __init__(self, memory: MessageMemory, on_memory: Callable[[], None]) -> None:
        """`on_memory` is called when a message that waited has got its memory."""
        self._memory = memory
        self._on_memory = on_memory
        self._wanted = 0
        self.reserved = 0
        self.received = 0
        """Bytes of all long messages so far."""

    @property
    def is_crowded(self) -> bool:
        return self._memory.is_crowded

    def reserve(self, size: int) -> bool:
        if self.reserved:
            return True
        if not self._memory.reserve(size, self._ask_again):
            self._wanted = size
            return False
        self._wanted, self.reserved = 0, size
        return True

    def _ask_again(self) -> None:
        if self._wanted and self.reserve(self._wanted):
            self._on_memory()

    def end(self) -> None:
        """It is there, or it will not come."""
        if self._wanted:
            self._wanted = 0
            self._memory.forget(self._ask_again)
        if self.reserved:
            reserved, self.reserved = self.reserved, 0
            self.received += reserved
            self._memory.release(reserved)
