"""One call: the messages that its caller sends, and the answer."""

import asyncio
from http import HTTPStatus
from typing import Any, Protocol

from queueber.gateway.bounds import Bound
from queueber.gateway.grpc.http2.frames import (
    CANCEL,
    DATA,
    END_HEADERS,
    END_STREAM,
    FLOW_CONTROL_ERROR,
    FRAME_BYTES,
    HEAD_BYTES,
    HEADERS,
    NO_ERROR,
    PROTOCOL_ERROR,
    StreamFault,
    frame,
    frame_head,
    reset,
    window_update,
)
from queueber.gateway.grpc.http2.heads import ANSWER, TRAILERS_OK, Head, plain_answer, trailers
from queueber.gateway.grpc.http2.messages import (
    PREFIX_BYTES,
    CompressedMessage,
    LargeMessage,
    Messages,
    prefix,
)
from queueber.gateway.grpc.statuses import Status, status_of
from queueber.gateway.problems import Problem
from queueber.limits import KIB

STREAM_WINDOW = 256 * KIB
"""What a caller may send of a call before it is told to go on."""
_UNREAD_BYTES_MAX = 64 * KIB
"""Whole messages that nobody has read: above it the caller is not told to go on."""
_ANSWER_HEAD = frame(HEADERS, END_HEADERS, 0, ANSWER)[HEAD_BYTES:]
_NO_GRPC = b"this port speaks gRPC\n"
_LENGTH_DIGITS_MAX = 18
_END = END_HEADERS | END_STREAM


class Carrier(Protocol):
    """What a call needs of its connection."""

    window: int
    is_full: bool
    loop: asyncio.AbstractEventLoop

    def limits_of(self, path: bytes) -> tuple[int, Bound]:
        """The bytes of a message of that method, and of those that are not handled."""

    def send(self, data: bytes) -> None: ...
    def answer(self, data: bytes) -> None: ...
    def begin(self, call: "Call") -> None: ...
    def ended(self, call: "Call") -> None: ...


class Call:
    """Made by its connection. A handler reads and writes messages, and ends it with `finish`."""

    __slots__ = (
        "_bodies", "_connection", "_has_begun", "_held", "_length", "_lent", "_messages", "_owed",
        "_reading", "_receive_window", "_room", "head", "is_closed", "is_over", "refusal", "stream",
        "task", "window",
    )  # fmt: skip

    def __init__(self, connection: Carrier, stream: int, head: Head, window: int) -> None:
        self._connection = connection
        self.stream = stream
        self.head = head
        self.window = window
        """What the caller takes before it says that we may go on."""
        self.task: asyncio.Future[Any] | None = None
        """What the handler does, once the first message has come."""
        self.is_closed = False
        """Whether the caller has closed its side."""
        self.is_over = False
        """Whether the call has ended, by whichever side."""
        bytes_max, self._bodies = connection.limits_of(head[b":path"])
        self._messages = Messages(bytes_max)
        self.refusal = _refusal(head)
        """The status of HTTP for what is no call of gRPC."""
        self._length = _length(head)
        """The bytes that are still to come, if the caller has said how many."""
        self._held = 0
        """Bytes of messages that count as those of bodies."""
        self._lent = 0
        """Of these, those of the message that the handler has read last."""
        self._receive_window = STREAM_WINDOW
        self._owed = 0
        """Bytes that came since the caller was told to go on."""
        self._has_begun = False
        self._reading: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None

    @property
    def held_bytes(self) -> int:
        """Of messages that have come, and are not handled."""
        return self._held

    # --- what the caller sends --------------------------------------------------------------------

    def receive(self, data: bytes, size: int, *, is_last: bool) -> None:
        """Called by the connection, with what a frame of `size` bytes carried."""
        self._receive_window -= size
        if self._receive_window < 0:
            raise StreamFault(self.stream, FLOW_CONTROL_ERROR, "more was sent than allowed")
        if self._length is not None:
            self._length -= len(data)
        try:
            if self.refusal:
                data = b""
            self._bodies.take(len(data))
            self._held += len(data)
            self._messages.add(data)
        except CompressedMessage:
            self._stop(Status.UNIMPLEMENTED, "request: it is compressed; send it plain")
            return
        except LargeMessage as error:
            text = f"request: it has {error.size} bytes; the limit is {error.limit}"
            self._stop(Status.RESOURCE_EXHAUSTED, text)
            return
        except Problem as problem:
            self._stop(*status_of(problem))
            return
        if is_last:
            self.close()
            return
        self._owed += size
        self._replenish()
        if self._messages.whole:
            self._wake_reader()

    def close(self) -> None:
        """The caller has said all."""
        self.is_closed = True
        if self._length:
            raise StreamFault(self.stream, PROTOCOL_ERROR, "content-length is wrong")
        if self.refusal:
            self._connection.begin(self)
            return
        if not self._messages.is_between:
            self._stop(Status.INTERNAL, "request: its last message has no end")
            return
        self._wake_reader()

    def _stop(self, status: Status, text: str) -> None:
        """What the caller says is not taken: the call ends, and so does the handler."""
        self.finish(status, text)
        self._cancel()

    def _wake_reader(self) -> None:
        if self.task is None:
            self._connection.begin(self)
        elif self._reading is not None and not self._reading.done():
            self._reading.set_result(None)

    def _replenish(self) -> None:
        """Tell the caller to go on, unless what it has sent is not read."""
        if self._owed < STREAM_WINDOW // 2 or self.is_closed:
            return
        if self._messages.whole and self._held - self._lent > _UNREAD_BYTES_MAX:
            return
        self._receive_window += self._owed
        self._connection.send(window_update(self.stream, self._owed))
        self._owed = 0

    async def read(self) -> bytes | None:
        """The next message; None when the caller has closed its side, or the call has ended."""
        while (message := self.read_nowait()) is None and not (self.is_closed or self.is_over):
            self._reading = self._connection.loop.create_future()
            await self._reading
        return message

    def read_nowait(self) -> bytes | None:
        """The next message if it is there."""
        self._let_go(self._lent)
        self._lent = 0
        if not self._messages.whole:
            return None
        message = self._messages.whole.popleft()
        self._lent = len(message) + PREFIX_BYTES
        if self._owed:
            self._replenish()
        return message

    def _let_go(self, size: int) -> None:
        self._held -= size
        self._bodies.give_back(size)

    # --- the answer -------------------------------------------------------------------------------

    async def answer(self, raw: bytes) -> None:
        """The only message, and the end of the call."""
        if not self.answer_now(raw):
            await self.write(raw)
            self.finish(Status.OK)

    def answer_now(self, raw: bytes) -> bool:
        """As `answer`; False, and nothing is sent, if it does not fit into one frame, or into what
        the caller takes now."""
        size, connection, stream = len(raw) + PREFIX_BYTES, self._connection, self.stream
        if self.is_over or self._has_begun or not self._has_room(size):
            return False
        self.window -= size
        connection.window -= size
        connection.answer(
            b"".join(
                (
                    frame_head(len(_ANSWER_HEAD), HEADERS, END_HEADERS, stream),
                    _ANSWER_HEAD,
                    frame_head(size, DATA, 0, stream),
                    prefix(size - PREFIX_BYTES),
                    raw,
                    frame_head(len(TRAILERS_OK), HEADERS, _END, stream),
                    TRAILERS_OK,
                )
            )
        )
        self._ended()
        return True

    def _has_room(self, size: int) -> bool:
        connection = self._connection
        return size <= min(self.window, connection.window, FRAME_BYTES) and not connection.is_full

    async def write(self, raw: bytes) -> None:
        """Send a message; returns when the connection has taken it."""
        if self.is_over:
            return
        self._begin()
        await self._send(prefix(len(raw)), raw)

    def refuse(self) -> None:
        """Answer what is no call of gRPC; nobody waits for a caller that takes no text."""
        size = len(_NO_GRPC)
        has_room = self._has_room(size)
        flags = END_HEADERS if has_room else _END
        sent = frame(HEADERS, flags, self.stream, plain_answer(self.refusal))
        if has_room:
            self.window -= size
            self._connection.window -= size
            sent += frame(DATA, END_STREAM, self.stream, _NO_GRPC)
        self._connection.answer(sent)
        self._ended()

    async def _send(self, before: bytes, raw: bytes) -> None:
        """Send bytes in frames, as fast as the peer allows."""
        connection, stream = self._connection, self.stream
        view, first, at = memoryview(raw), len(before), 0
        size = first + len(raw)
        while at < size:
            room = min(self.window, connection.window, FRAME_BYTES, size - at)
            if room <= 0 or connection.is_full:
                await self._wait_for_room()
                if self.is_over:
                    return
                continue
            piece = view[max(0, at - first) : max(0, at + room - first)]
            head = frame_head(room, DATA, 0, stream)
            connection.answer(b"".join((head, before[at : at + room], piece)))
            self.window -= room
            connection.window -= room
            at += room

    async def _wait_for_room(self) -> None:
        self._room = self._connection.loop.create_future()
        try:
            await self._room
        finally:
            self._room = None

    def wake_writer(self) -> None:
        """There may be room."""
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            head = frame_head(len(_ANSWER_HEAD), HEADERS, END_HEADERS, self.stream)
            self._connection.answer(head + _ANSWER_HEAD)

    def finish(self, status: Status, text: str = "") -> None:
        """End the call with a status. Does nothing if it has ended."""
        if self.is_over:
            return
        block = trailers(status, text)
        if not self._has_begun:
            block = ANSWER + block
        sent = frame(HEADERS, _END, self.stream, block)
        if not self.is_closed:
            sent += reset(self.stream, NO_ERROR)  # what else the caller says is not read
        self._connection.answer(sent)
        self._ended()

    def reset(self, code: int = CANCEL) -> None:
        """End the call without telling why, and without what was not sent yet."""
        if not self.is_over:
            self._connection.send(reset(self.stream, code))
            self._ended()

    def abandon(self) -> None:
        """The caller has gone: so does the handler."""
        self._ended()
        self._cancel()

    def _cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def _ended(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        self._let_go(self._held)
        self._lent = 0
        self._messages.clear()
        self.wake_writer()
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(None)
        self._connection.ended(self)


def _refusal(head: Head) -> int:
    if head[b":method"] != b"POST":
        return HTTPStatus.METHOD_NOT_ALLOWED
    if not head.get(b"content-type", b"").startswith(b"application/grpc"):
        return HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    return 0


def _length(head: Head) -> int | None:
    given = head.get(b"content-length")
    if given is None or not given.isdigit() or len(given) > _LENGTH_DIGITS_MAX:
        return None
    return int(given)
