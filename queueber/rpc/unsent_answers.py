"""Answers that the socket does not take. Here they are counted; in Cap'n Proto nobody could."""

from collections import deque
from typing import Any

from queueber.service.unread_answers import UnreadAnswers

_SLICE_BYTES = 1 << 18
"""What the socket's own buffer is given at once."""


class UnsentAnswers:
    def __init__(self, transport: Any, answers: UnreadAnswers) -> None:
        self._transport = transport
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
        if len(data) <= _SLICE_BYTES and not self.is_full:
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

    def _send_held(self) -> None:
        while self._held and not self.is_full:
            data = self._held.popleft()
            if len(data) > _SLICE_BYTES:
                self._held.appendleft(data[_SLICE_BYTES:])
            self._held_bytes -= min(len(data), _SLICE_BYTES)
            self._transport.write(data[:_SLICE_BYTES])
        self._count()

    def _count(self) -> None:
        self._answers.set_unsent(self.left if self.is_full else self._held_bytes)
