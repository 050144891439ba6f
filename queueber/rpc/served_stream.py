"""The server's end of a connection: what one caller can make it do, and hold for it, is bounded.

- Answers that the socket does not take are held here, not in Cap'n Proto, and counted. While there
  are any, no further call of that connection is read.
- A caller gets so many reads in a turn of the loop, then others have theirs. One that is new, or
  ends, waits for its turn if there are many.
- A long message is read once there is room for all of it.
- Who was refused too often is hung up on: what Cap'n Proto keeps of refusals cannot be counted.
- Who neither reads its answers nor sends the rest of its message is hung up on.
"""

from collections import deque
from functools import partial
from typing import Any

import structlog

from queueber.limits import (
    CALLS_A_TURN,
    CALLS_WHILE_NEW,
    READS_A_TURN,
    STALLED_SECONDS_CROWDED,
    STALLED_SECONDS_MAX,
    STALLED_SLICE_BYTES,
)
from queueber.rpc.fair_turns import Turns
from queueber.rpc.intake import Intake
from queueber.service.connection import Connection
from queueber.wire.stream import Stream

_log = structlog.get_logger("queueber.rpc")

_PORTION_BYTES_NEW = 1 << 7
_PORTION_BYTES_MIN = 1 << 9
"""One of the smallest calls, and four."""
_PORTION_BYTES_MAX = 1 << 18

_SLICE_BYTES = 1 << 18
"""What the socket's own buffer is given at once."""


class ServedStream(Stream):
    def __init__(
        self,
        inner: Any,
        scratch: memoryview,
        connection: Connection,
        intake: Intake,
        turns: Turns,
    ) -> None:
        super().__init__(inner, scratch)
        self.connection = connection
        connection.hang_up = self._hang_up
        self._intake = intake
        self._turns = turns
        self._is_full = False
        self._held: deque[memoryview] = deque()
        """Answers that the socket's buffer has no room for."""
        self._held_bytes = 0
        self._passed_on = 0
        self._is_asked = False
        """Cap'n Proto wants to read, but is to have nothing for now."""
        self._reads = 0
        self._is_resting = False
        self._is_leaving = False
        self._begun_before = 0
        self._portion = _PORTION_BYTES_NEW
        self._marked_bytes = 0
        self._marked_at = 0.0
        self._awaits = 0
        self._reserved = 0
        self._received = 0
        self._watch: Any = None
        self._moved = 0
        self._stalled_seconds = 0.0

    # --- reading ----------------------------------------------------------------------------------

    @property
    def _is_new(self) -> bool:
        return self.connection.begun_ever < CALLS_WHILE_NEW

    @property
    def _portion_min(self) -> int:
        return _PORTION_BYTES_NEW if self._is_new else _PORTION_BYTES_MIN

    def buffer_updated(self, nbytes: int) -> None:
        is_for_later = self._is_new and self._is_wanted and not self._is_direct
        if is_for_later:
            self._is_wanted, self._is_asked, self._is_resting = False, True, True
        super().buffer_updated(nbytes)
        if is_for_later:
            self._turns.run(self._rested)

    def resume_reading(self) -> None:
        if self._is_full or self._is_resting or self._is_leaving:
            self._is_asked = True
            return
        unread = len(self._unread)
        if not unread:
            self._is_wanted = True
            self._begin_turn()
            return
        self._reads += 1
        calls_max = 1 if self._is_new else CALLS_A_TURN
        if self._reads > READS_A_TURN or self.connection.begun >= calls_max:
            self._is_resting = self._is_asked = True
            self._turns.wait(self._rested)
            return
        super().resume_reading()
        self._measure_delay(unread)

    def pause_reading(self) -> None:
        self._is_wanted = self._is_asked = False
        if self._reserved:
            self._release()

    def read_on(self) -> None:
        """Hand on what was held back, if nothing else stands against it."""
        if not self._is_asked or self._transport.is_closing():
            return
        if self._awaits:
            if not self._reserve(self._awaits):
                return
            self._forget_mark()
        self._is_asked = False
        self.resume_reading()
        if self._is_wanted:
            self._transport.resume_reading()

    def _rested(self) -> None:
        self._is_resting = False
        self._begin_turn()
        self.read_on()

    def _begin_turn(self) -> None:
        self._reads = self.connection.begun = self._begun_before = 0
        self._portion = self._portion_min

    def _hand_over(self, data: memoryview) -> int:
        # Cap'n Proto takes as much as it has room for, and begins every call in it. So it gets
        # little at first, and more as long as that was not enough for a call.
        if len(data) <= self._portion_min:
            return super()._hand_over(data)
        begun = self.connection.begun
        if begun != self._begun_before:
            self._portion, self._begun_before = self._portion_min, begun
        taken = 0
        while self._is_wanted and taken < len(data):
            taken += super()._hand_over(data[taken : taken + self._portion])
            self._portion = min(4 * self._portion, _PORTION_BYTES_MAX)
        return taken

    def _measure_delay(self, unread_before: int) -> None:
        """How long bytes lie here: one is marked, and looked at when it has been handed on."""
        connection = self.connection
        unread = len(self._unread)
        if not unread:
            self._forget_mark()
            return
        now = self._loop.time()
        self._marked_bytes -= unread_before - unread
        if self._marked_bytes > 0:
            connection.delay_seconds = max(connection.delay_seconds, now - self._marked_at)
        else:
            if self._marked_at:
                connection.delay_seconds = now - self._marked_at
            self._marked_bytes, self._marked_at = unread, now

    def _forget_mark(self) -> None:
        self._marked_bytes, self._marked_at = 0, 0.0
        self.connection.delay_seconds = 0.0

    def _may_read_long(self, size: int) -> bool:
        if self._reserved or self._reserve(size):
            return True
        self._is_wanted, self._is_asked = False, True
        self._transport.pause_reading()
        return False

    def _reserve(self, size: int) -> bool:
        if not self._intake.reserve(self, size):
            self._awaits = size
            return False
        self._awaits, self._reserved = 0, size
        self._watch_progress()
        return True

    def _release(self) -> None:
        reserved, self._reserved = self._reserved, 0
        self._received += reserved
        self._intake.release(reserved)

    # --- writing ----------------------------------------------------------------------------------

    def _pass_on(self, data: bytes) -> None:
        self._passed_on += len(data)
        outbox = self.connection.outbox
        if outbox.owed:
            outbox.passed_on(len(data))
            if outbox.owed and outbox.is_hoard:
                self._watch_progress()
        if len(data) <= _SLICE_BYTES and not self._is_full:
            self._transport.write(data)
            return
        self._held.append(memoryview(data))
        self._held_bytes += len(data)
        self._send_held()

    def _send_held(self) -> None:
        while self._held and not self._is_full:
            data = self._held.popleft()
            if len(data) > _SLICE_BYTES:
                self._held.appendleft(data[_SLICE_BYTES:])
            self._held_bytes -= min(len(data), _SLICE_BYTES)
            self._transport.write(data[:_SLICE_BYTES])
        self._count_unsent()

    def _count_unsent(self) -> None:
        unsent = self._transport.get_write_buffer_size() if self._is_full else 0
        self.connection.outbox.set_unsent(unsent + self._held_bytes)

    def pause_writing(self) -> None:
        # Cap'n Proto is not told: what it holds back nobody can count.
        self._is_full = True
        if self._is_wanted:
            self._is_wanted, self._is_asked = False, True
        self._count_unsent()
        self._watch_progress()

    def resume_writing(self) -> None:
        self._is_full = False
        self._send_held()
        if not self._is_full:
            # That calls lay here meanwhile is nobody's fault but their caller's.
            self._forget_mark()
            self.read_on()

    def write_eof(self) -> None:
        super()._send()
        if self._held:
            self._transport.abort()
        else:
            self._transport.write_eof()
            self._close_soon()

    def close(self) -> None:
        super().close()
        self._watch_progress()

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        if self._reserved:
            self._release()
        if self._awaits:
            self._intake.forget(self)
        self._is_full = False
        self._held.clear()
        self._held_bytes = 0
        self.connection.outbox.close()
        self._turns.run(partial(super().connection_lost, exc))

    def eof_received(self) -> bool:
        if self._unread:
            self._close_soon()
            return super().eof_received()
        self._turns.run(self._end)
        return True

    def _close_soon(self) -> None:
        """One side has ended. If the bytes before were none of Cap'n Proto, it does not read on,
        and nobody else would close the connection."""
        self._loop.call_later(STALLED_SECONDS_CROWDED, self._transport.close)

    def _hang_up(self) -> None:
        _log.warning("connection_refused_often", refusals=self.connection.refusals)
        self._is_leaving = True
        if self._is_wanted:
            self._is_wanted, self._is_asked = False, True
        self._close_soon()

    def _end(self) -> None:
        if not self._transport.is_closing():
            super().eof_received()
            self._transport.close()

    # --- those who stand still --------------------------------------------------------------------

    def _watch_progress(self) -> None:
        if self._watch is None:
            self._moved, _ = self._progress()
            self._stalled_seconds = 0.0
            self._watch = self._loop.call_later(STALLED_SECONDS_CROWDED, self._look)

    def _progress(self) -> tuple[int, int]:
        """Bytes that the caller has read and sent so far, and those that it has still to."""
        unsent: int = self._transport.get_write_buffer_size() + self._held_bytes
        is_receiving = self._reserved and not self._transport.is_closing()
        coming = len(self._inner.get_buffer(0)) if is_receiving else 0
        moved = self._passed_on - unsent + self._received + self._reserved - coming
        kept = self.connection.outbox.owed if self.connection.outbox.is_hoard else 0
        return moved, unsent + coming + kept

    def _look(self) -> None:
        self._watch = None
        moved, left = self._progress()
        if not left:
            return
        if moved - self._moved >= STALLED_SLICE_BYTES:
            self._watch_progress()
            return
        self._stalled_seconds += STALLED_SECONDS_CROWDED
        is_crowded = self.connection.outbox.outboxes.are_crowded or self._intake.is_crowded
        if is_crowded or self._stalled_seconds >= STALLED_SECONDS_MAX:
            _log.warning("connection_stalled", bytes=left, seconds=self._stalled_seconds)
            self._transport.abort()
        else:
            self._watch = self._loop.call_later(STALLED_SECONDS_CROWDED, self._look)
