"""The server's end of a connection: what one caller can make it do, and hold for it, is bounded.

- Answers that the socket does not take are counted (`buffers`). While there are any, no further
  call of the connection is read.
- A connection is read a share at a time (`fair_turns`), then others have their turn. One that
  is new, or ends, waits for its turn if there are many.
- While too many calls are under way, no further one is read (`service/session.py`).
- A long message is read once there is memory for all of it (`buffers`).
- A caller that was refused too often is disconnected: what Cap'n Proto keeps of refusals cannot be
  counted.
- So is one that stalls (`stall_watch`).

Why nothing is read at a moment, and what ends that, is in `wire/flow.py`.
"""

from functools import partial
from typing import Any

import structlog

from queueber.rpc.buffers import (
    SLICE_BYTES,
    TLS_SLICE_BYTES,
    LongMessage,
    MessageMemory,
    UnsentAnswers,
)
from queueber.rpc.fair_turns import FairShare, FairTurns
from queueber.rpc.stall_watch import STALLED_SECONDS_CROWDED, StallWatch
from queueber.service.session import Session
from queueber.tls import certificate_name
from queueber.wire.flow import Event, State, after
from queueber.wire.stream import Stream, is_tls

_log = structlog.get_logger("queueber.rpc")


class ServedStream(Stream):
    def __init__(
        self,
        inner: Any,
        scratch: memoryview,
        session: Session,
        memory: MessageMemory,
        turns: FairTurns,
    ) -> None:
        super().__init__(inner, scratch)
        self.session = session
        session.hang_up = self._hang_up
        session.disconnect = self._disconnect
        session.can_hold_back = True
        self._turns = turns
        self._share = FairShare(session)
        self._message = LongMessage(memory, self._memory_reserved)

    def connection_made(self, transport: Any) -> None:
        self.session.address = shown_address(transport.get_extra_info("peername"))
        self.session.certificate_name = certificate_name(transport.get_extra_info("peercert"))
        slice_bytes = SLICE_BYTES
        if is_tls(transport):
            # Below TLS the socket buffers once more, which nobody can count: so it gets less.
            slice_bytes = TLS_SLICE_BYTES
            transport.set_write_buffer_limits(TLS_SLICE_BYTES)
        self._unsent_answers = UnsentAnswers(transport, self.session.answers, slice_bytes)
        super().connection_made(transport)
        self._stall_watch = StallWatch(
            self._loop,
            progress=self._progress,
            is_crowded=lambda: self.session.answers.budget.is_crowded or self._message.is_crowded,
            on_stalled=self._stalled,
        )

    # --- reading ----------------------------------------------------------------------------------

    def _on(self, event: Event) -> None:
        """Go to the state that follows, and read on if that is possible again."""
        before, self.flow = self.flow, after(self.flow, event)
        if self.flow is State.READING and before is not State.READING:
            self._read_on()
            if before is not State.IDLE and self.flow is State.READING:
                self._transport.resume_reading()

    def buffer_updated(self, nbytes: int) -> None:
        if self.session.usage is not None:
            self.session.usage.moved(nbytes)
        if self.flow is State.READING and not self._is_direct:
            if self._share.is_new:
                self._on(Event.SHARE_USED)
                super().buffer_updated(nbytes)
                self._turns.run(self._turn_came)
                return
            if not self.session.may_begin:
                self._hold_calls_back()
        super().buffer_updated(nbytes)

    def resume_reading(self) -> None:
        self._on(Event.ASKED)

    def pause_reading(self) -> None:
        self.flow = after(self.flow, Event.ENOUGH)
        self._message.end()

    def _read_on(self) -> None:
        """Hand on what lies here, unless there is a reason to hold it back."""
        if self._transport.is_closing():
            return
        if self._unsent_answers.is_full:
            self._on(Event.SOCKET_FULL)
        elif not self._unread:
            self._share.begin_turn()
        elif not self.session.may_begin:
            self._hold_calls_back()
        elif not self._share.take():
            self._on(Event.SHARE_USED)
            self._turns.wait(self._turn_came)
        else:
            self._hand_over_unread()

    def _hold_calls_back(self) -> None:
        self._on(Event.CALLS_FULL)
        self.session.hold_back(partial(self._on, Event.CALLS_FREE))

    def _turn_came(self) -> None:
        self._share.begin_turn()
        self._on(Event.TURN_CAME)

    def _hand_over(self, data: memoryview) -> int:
        share = self._share
        if len(data) <= share.portion_min:
            return super()._hand_over(data)
        share.begin_read()
        taken = 0
        while self.flow is State.READING and taken < len(data):
            taken += super()._hand_over(data[taken : taken + share.next_portion()])
        return taken

    def _may_read_long(self, size: int) -> bool:
        if not self._message.reserve(size):
            self._on(Event.MEMORY_SHORT)
            # Not here: libuv is about to read, and must not be stopped between buffer and read.
            self._loop.call_soon(self._pause_while_short)
            return False
        self._stall_watch.start()
        return True

    def _pause_while_short(self) -> None:
        if self.flow is State.SHORT_OF_MEMORY:
            self._transport.pause_reading()

    def _memory_reserved(self) -> None:
        self._stall_watch.start()
        self._on(Event.MEMORY_FREE)

    # --- writing ----------------------------------------------------------------------------------

    def _pass_on(self, data: bytes) -> None:
        answers = self.session.answers
        if self.session.usage is not None:
            self.session.usage.moved(len(data))
        self._unsent_answers.send(data)
        if answers.owed and answers.is_hoard:
            self._stall_watch.start()

    def pause_writing(self) -> None:
        # Cap'n Proto is not told: what it holds back nobody can count.
        self._unsent_answers.socket_full()
        self._on(Event.SOCKET_FULL)
        self._stall_watch.start()

    def resume_writing(self) -> None:
        self._unsent_answers.socket_drained()
        if not self._unsent_answers.is_full:
            self._on(Event.SOCKET_DRAINED)

    def write_eof(self) -> None:
        super()._send()
        if self._unsent_answers.are_held:
            self._transport.abort()
        else:
            self._end_writing()
            self._close_soon()

    # --- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        super().close()
        self._stall_watch.start()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.flow = after(self.flow, Event.LOST)
        self._stall_watch.stop()
        self._message.end()
        self._unsent_answers.clear()
        self.session.forget_held_back()
        self._turns.run(partial(super().connection_lost, exc))

    def eof_received(self) -> bool:
        if self._unread:
            self._close_soon()
            return super().eof_received()
        self._turns.run(self._end)
        return not self._is_tls

    def _end(self) -> None:
        if not self._transport.is_closing():
            super().eof_received()
            self._transport.close()

    def _close_soon(self) -> None:
        """One side has ended. If the bytes before were none of Cap'n Proto, it does not read on,
        and nobody else would close the connection."""
        self._loop.call_later(STALLED_SECONDS_CROWDED, self._transport.close)

    def _hang_up(self) -> None:
        session = self.session
        _log.warning("connection_refused_often", refusals=session.refusals, **session.who)
        self._on(Event.HUNG_UP)
        self._close_soon()

    def _disconnect(self) -> None:
        """Read nothing more, send what is there to send, and close."""
        self._on(Event.HUNG_UP)
        self.close()

    def _progress(self) -> tuple[int, int]:
        """Bytes that the caller has read and sent so far, and those that it has still to."""
        unsent, message, answers = self._unsent_answers, self._message, self.session.answers
        is_receiving = message.reserved and not self._transport.is_closing()
        coming = len(self._inner.get_buffer(0)) if is_receiving else 0
        moved = unsent.passed_on - unsent.left + message.received + message.reserved - coming
        kept = answers.owed if answers.is_hoard else 0
        return moved, unsent.left + coming + kept

    def _stalled(self, left: int, seconds: float) -> None:
        _log.warning("connection_stalled", bytes=left, seconds=seconds, **self.session.who)
        self._transport.abort()


def shown_address(peer: Any) -> str:
    if not isinstance(peer, tuple):
        return str(peer or "")
    host, port = peer[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
