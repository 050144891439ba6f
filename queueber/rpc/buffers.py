"""Bytes of a connection in memory: a long message that comes in, answers that wait to go out.

A message gets the memory for all of it before it is read, so that those under way can end. Answers
that the socket does not take are counted here; in Cap'n Proto nobody could.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from queueber.limits import MIB
from queueber.service.unread_answers import UnreadAnswers
from queueber.wire.stream import GONE

LONG_MESSAGES_BYTES_MAX = 1024 * MIB
"""Long messages of all connections that have begun to come in. Further ones wait."""


class MessageMemory:
    """Of the long messages of all connections."""

    def __init__(self, bytes_max: int = LONG_MESSAGES_BYTES_MAX) -> None:
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


SLICE_BYTES = 1 << 18
"""What the socket's own buffer is given at once."""
TLS_SLICE_BYTES = 1 << 16
"""The same with TLS, which has a buffer of its own above that of the socket."""


class UnsentAnswers:
    def __init__(
        self, transport: Any, answers: UnreadAnswers, slice_bytes: int = SLICE_BYTES
    ) -> None:
        self._transport = transport
        self._slice_bytes = slice_bytes
        self._answers = answers
        self._held: deque[memoryview] = deque()
        self._held_bytes = 0
        self.is_full = False
        """The socket's buffer takes no more."""
        self.passed_on = 0
        """Bytes that Cap'n Proto has written so far."""

    @property
    def left(self) -> int:
        """Bytes that the other side has not taken."""
        buffered: int = self._transport.get_write_buffer_size()
        return buffered + self._held_bytes

    @property
    def are_held(self) -> bool:
        return bool(self._held)

    def send(self, data: bytes) -> None:
        self.passed_on += len(data)
        if self._answers.owed:
            self._answers.passed_on(len(data))
        if len(data) <= self._slice_bytes and not self.is_full:
            self._transport.write(data)
            return
        self._held.append(memoryview(data))
        self._held_bytes += len(data)
        self._send_held()

    def socket_full(self) -> None:
        self.is_full = True
        self._count()

    def socket_drained(self) -> None:
        """It may be full again afterwards."""
        self.is_full = False
        self._send_held()

    def clear(self) -> None:
        """The connection is over."""
        self.is_full = False
        self._held.clear()
        self._held_bytes = 0
        self._answers.close()
        self._transport = GONE

    def _send_held(self) -> None:
        while self._held and not self.is_full:
            data = self._held.popleft()
            if len(data) > self._slice_bytes:
                self._held.appendleft(data[self._slice_bytes :])
            self._held_bytes -= min(len(data), self._slice_bytes)
            self._transport.write(data[: self._slice_bytes])
        self._count()

    def _count(self) -> None:
        self._answers.set_unsent(self.left if self.is_full else self._held_bytes)
