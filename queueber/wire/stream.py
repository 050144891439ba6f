"""A buffered stream for Cap'n Proto, which saves system calls.

Cap'n Proto reads and writes a message in small steps: a word, the table of segments, each segment.
Its own asyncio protocol makes system calls for each step. `Stream` is between that protocol and the
socket: it reads all bytes that are there and passes them on as Cap'n Proto asks for them, and it
sends everything that was written in one turn of the loop at once.

With TLS neither side can end its own half of the connection: whoever ends it ends both.
"""

import asyncio
from typing import Any

from queueber.wire.flow import Event, State, after

SCRATCH_BYTES = 1 << 18
_SENT_AT_ONCE_BYTES = 1 << 16
"""Once this many bytes are unsent, the stream does not wait for the end of the turn."""


class Stream(asyncio.BufferedProtocol):
    """The socket's protocol on one side, on the other the transport of Cap'n Proto's protocol."""

    def __init__(self, inner: Any, scratch: memoryview) -> None:
        """`scratch` may be shared with other streams of the same loop."""
        self._inner = inner
        self._scratch = scratch
        self.flow = State.IDLE
        self._unread = bytearray()
        self._is_direct = False
        """The socket reads directly into Cap'n Proto's buffer."""
        self._has_ended = False
        """The other side has sent its last byte, and some bytes are unread."""
        self._is_tls = False
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0

    # --- from the socket --------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._is_tls = is_tls(transport)
        self._loop = asyncio.get_running_loop()
        self._inner.connection_made(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        self._is_direct = False
        if self.flow is State.READING and not self._unread:
            wanted: memoryview = self._inner.get_buffer(sizehint)
            # A long message is read directly into Cap'n Proto's buffer, without a copy.
            if len(wanted) >= len(self._scratch) and self._may_read_long(len(wanted)):
                self._is_direct = True
                return wanted
        return self._scratch

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_direct:
            self._inner.buffer_updated(nbytes)
            return
        if self.flow is State.READING and not self._unread:
            taken = self._hand_over(self._scratch[:nbytes])
            self._unread += self._scratch[taken:nbytes]
        else:
            self._unread += self._scratch[:nbytes]
        if len(self._unread) >= len(self._scratch):
            self._transport.pause_reading()

    def _may_read_long(self, size: int) -> bool:
        """Whether the stream may read a message of this many bytes now."""
        return True

    def eof_received(self) -> bool:
        if self._unread:
            # Cap'n Proto reads these bytes before it hears of the end.
            self._has_ended = True
            return not self._is_tls  # asyncio warns about wishes that it cannot fulfil
        self._inner.eof_received()
        return False

    def connection_lost(self, exc: BaseException | None) -> None:
        self.flow = after(self.flow, Event.LOST)
        self._unread.clear()
        self._unsent.clear()
        self._transport = GONE
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    # --- from Cap'n Proto, reading ----------------------------------------------------------------

    def resume_reading(self) -> None:
        self.flow = after(self.flow, Event.ASKED)
        if self._unread:
            self._hand_over_unread()

    def pause_reading(self) -> None:
        self.flow = after(self.flow, Event.ENOUGH)

    def _hand_over_unread(self) -> None:
        with memoryview(self._unread) as unread:
            taken = self._hand_over(unread)
        del self._unread[:taken]
        if self._has_ended and not self._unread:
            self._inner.eof_received()
            self._transport.close()
        elif not self._has_ended and len(self._unread) < len(self._scratch):
            self._transport.resume_reading()

    def _hand_over(self, data: memoryview) -> int:
        """Pass on as many bytes as Cap'n Proto asks for; returns how many."""
        wanted: memoryview = self._inner.get_buffer(len(data))
        count = min(len(wanted), len(data))
        wanted[:count] = data[:count]
        self._inner.buffer_updated(count)
        return count

    # --- from Cap'n Proto, writing ----------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if len(data) >= _SENT_AT_ONCE_BYTES:
            self._send()
            if not self._transport.is_closing():
                self._pass_on(data)  # not joined with others: that would copy it
            return
        if not self._unsent:
            self._loop.call_soon(self._send)
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        if self._unsent_bytes >= _SENT_AT_ONCE_BYTES:
            self._send()

    def _send(self) -> None:
        if self._unsent:
            data = self._unsent[0] if len(self._unsent) == 1 else b"".join(self._unsent)
            self._unsent.clear()
            self._unsent_bytes = 0
            if not self._transport.is_closing():
                self._pass_on(data)

    def _pass_on(self, data: bytes) -> None:
        self._transport.write(data)

    def is_closing(self) -> bool:
        closing: bool = self._transport.is_closing()
        return closing

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._send()
        self._end_writing()

    def _end_writing(self) -> None:
        if self._is_tls:
            self._transport.close()
        else:
            self._transport.write_eof()

    def close(self) -> None:
        self._send()
        self._transport.close()


def is_tls(transport: Any) -> bool:
    return transport.get_extra_info("ssl_object") is not None


class _Gone:
    """In place of the transport of a connection that is over.

    A transport of TLS and its stream refer to each other. It has a lot of memory, which would stay
    until the garbage collector finds them.
    """

    def is_closing(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes) -> None:
        """Nobody gets it."""

    def resume_reading(self) -> None:
        """Nothing comes."""

    pause_reading = write_eof = close = abort = resume_reading


GONE = _Gone()
