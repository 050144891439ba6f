"""One connection: reads frames, and holds its peer to the rules and the bounds."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any, cast

from queueber.gateway.bounds import Bound
from queueber.gateway.grpc.http2.call import STREAM_WINDOW, Call
from queueber.gateway.grpc.http2.calls_table import CALLS_MAX, CallsTable
from queueber.gateway.grpc.http2.frames import (
    ACK,
    CONCURRENT_STREAMS_MAX,
    CONTINUATION,
    DATA,
    ENABLE_PUSH,
    END_HEADERS,
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    FRAME_BYTES,
    FRAME_SIZE_ERROR,
    FRAME_SIZE_MAX,
    HAS_PRIORITY,
    HEAD,
    HEAD_BYTES,
    HEADER_LIST_SIZE_MAX,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    NO_ERROR,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PRIORITY_BYTES,
    PROTOCOL_ERROR,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW,
    WINDOW_MAX,
    WINDOW_UPDATE,
    ConnectionFault,
    StreamFault,
    check_frame,
    check_priority,
    frame,
    goaway,
    settings,
    settings_of,
    window_update,
    without_padding,
)
from queueber.gateway.grpc.http2.liveness import Liveness
from queueber.gateway.grpc.http2.shared import SMALL_MESSAGE_BYTES_MAX, Handling, Shared
from queueber.gateway.log import log
from queueber.limits import KIB, MIB

_WINDOW = MIB
"""What a peer may send on a connection before it is told to go on."""
_FRAMES_A_TURN, _CALLS_A_TURN, _BYTES_A_TURN = 256, 8, 64 * KIB
"""What one connection may have handled at a time."""
_NEW_SECONDS = 1.0
"""A younger connection waits for its turn: making one must not be a way to the front."""
_BUFFER_BYTES_MAX = 64 * KIB
"""Bytes that the transport keeps for a peer that does not read; nothing is read from it then."""
_KERNEL_BYTES_MAX = 128 * KIB
"""Bytes that the system takes before it has sent those that it took before."""
_SETTINGS_MAX = 1000
"""Frames of settings in the life of a connection. Each is answered, and may change every call."""


class Connection(asyncio.Protocol):
    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.loop = asyncio.get_running_loop()
        self.window = WINDOW
        """What the peer takes before it says that we may go on."""
        self.is_full = False
        """Whether the peer has to read before more is sent."""
        self.liveness = Liveness(shared, self.loop.time())
        self.calls = CallsTable(self, shared, self.liveness)
        self._transport: Any = None
        self._receive_window, self._owed = _WINDOW, 0
        self._received = b""
        self._has_greeted = self._has_settings = False
        self._block: tuple[int, int, bytearray] | None = None
        """A head that has begun: its stream, its flags, what came of it."""
        self._settings_count = 0
        self._is_closing = self._waits_for_turn = self._is_paused = False

    # --- called by the transport ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        shared = self.shared
        if len(shared.connections) >= shared.connections_max or shared.is_stopping:
            self.abort()
            return
        shared.connections.add(self)
        self._transport.set_write_buffer_limits(high=_BUFFER_BYTES_MAX)
        _keep_little_in_the_kernel(transport.get_extra_info("socket"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._received = b""
        self.calls.abandon_all()
        self.shared.left(self)

    def pause_writing(self) -> None:
        self.is_full = True
        self.liveness.is_full_since = self.loop.time()
        # What it sends would be answered, and that would not be read either.
        self._pause()

    def resume_writing(self) -> None:
        self.is_full = False
        self.liveness.is_full_since = None
        self.calls.wake_writers()
        self._wait_for_turn()

    def data_received(self, data: bytes) -> None:
        liveness = self.liveness
        liveness.received_at = self.loop.time()
        self._received = self._received + data if self._received else data
        is_much = len(self._received) > _BYTES_A_TURN
        if is_much:
            self._pause()
        if is_much or liveness.received_at - liveness.made_at < _NEW_SECONDS:
            self._wait_for_turn()
        elif not self._waits_for_turn:
            self._read_frames()

    # --- turns ------------------------------------------------------------------------------------

    def _pause(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def _wait_for_turn(self) -> None:
        if not self._waits_for_turn:
            self._waits_for_turn = True
            self.shared.turns.wait(self)

    def take_turn(self) -> None:
        self._waits_for_turn = False
        if self._is_closing or self.is_full:
            return
        self._read_frames()
        if self._is_paused and not self._waits_for_turn and not self.is_full:
            self._is_paused = False
            self._transport.resume_reading()

    # --- frames -----------------------------------------------------------------------------------

    def _read_frames(self) -> None:
        try:
            if self._has_greeted or self._greet():
                self._read_some()
        except ConnectionFault as fault:
            self.end(fault.code, str(fault))
        except Exception as error:  # noqa: BLE001  one connection ends, and the log says why
            log.error("request_failed", path="gRPC", exc_info=error)
            self.abort()

    def _greet(self) -> bool:
        received = self._received
        if not PREFACE.startswith(received[: len(PREFACE)]):
            raise ConnectionFault(PROTOCOL_ERROR, "this is no HTTP/2")
        if len(received) < len(PREFACE):
            return False
        self._received = received[len(PREFACE) :]
        self._has_greeted = self.liveness.has_greeted = True
        ours = {
            CONCURRENT_STREAMS_MAX: CALLS_MAX,
            INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            HEADER_LIST_SIZE_MAX: self.shared.header_bytes_max,
        }
        self.send(settings(ours) + window_update(0, _WINDOW - WINDOW))
        return True

    def _read_some(self) -> None:
        """Handle what has come, as far as one turn allows."""
        calls = self.calls
        received, at, left = self._received, 0, _FRAMES_A_TURN
        end, last_stream = len(received), calls.last_stream + 2 * _CALLS_A_TURN
        try:
            while end - at >= HEAD_BYTES and not self._is_closing:
                high, low, kind, flags, stream = HEAD.unpack_from(received, at)
                size = high << 8 | low
                if size > FRAME_BYTES:
                    raise ConnectionFault(FRAME_SIZE_ERROR, "a frame is larger than allowed")
                if end - at < HEAD_BYTES + size:
                    break
                if (
                    not left
                    or at > _BYTES_A_TURN
                    or calls.last_stream > last_stream
                    or self.is_full
                ):
                    self._wait_for_turn()
                    break
                left -= 1
                begin = at + HEAD_BYTES
                at = begin + size
                try:
                    self._handle(kind, flags, stream & WINDOW_MAX, received[begin:at])
                except StreamFault as fault:
                    calls.reset(fault.stream, fault.code)
        finally:
            self._received = received[at:]

    def _handle(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if self._block is not None and (kind != CONTINUATION or stream != self._block[0]):
            raise ConnectionFault(PROTOCOL_ERROR, "a head is interrupted")
        if kind == DATA and stream and self._has_settings:
            self._on_data(flags, stream, payload)
            return
        if not self._has_settings and kind != SETTINGS:
            raise ConnectionFault(PROTOCOL_ERROR, "the first frame has no settings")
        check_frame(kind, stream, len(payload))
        handle = _HANDLERS.get(kind)
        if handle is not None:  # other kinds mean nothing to us
            handle(self, flags, stream, payload)

    def _on_data(self, flags: int, stream: int, payload: bytes) -> None:
        size = len(payload)
        self._receive_window -= size
        if self._receive_window < 0:
            raise ConnectionFault(FLOW_CONTROL_ERROR, "more was sent than allowed")
        self._owed += size
        if self._owed >= _WINDOW // 2:
            self._receive_window += self._owed
            self.send(window_update(0, self._owed))
            self._owed = 0
        data = without_padding(flags, payload) if flags & PADDED else payload
        self.calls.on_data(stream, flags, data, size)

    def _on_head(self, flags: int, stream: int, payload: bytes) -> None:
        skipped = 0
        if flags & HAS_PRIORITY:
            begin, skipped = int(bool(flags & PADDED)), PRIORITY_BYTES
            check_priority(stream, payload[begin : begin + PRIORITY_BYTES])
        block = without_padding(flags, payload, skipped)
        if flags & END_HEADERS:
            self.calls.on_head(stream, flags, block)
        else:
            self._block = stream, flags, bytearray(block)
            self.liveness.head_began_at = self.loop.time()

    def _on_continuation(self, flags: int, _: int, payload: bytes) -> None:
        if self._block is None:
            raise ConnectionFault(PROTOCOL_ERROR, "there is no head to be continued")
        stream, first_flags, block = self._block
        block += payload
        if len(block) > self.shared.header_bytes_max:
            text = f"metadata: it has more than {self.shared.header_bytes_max} bytes"
            raise ConnectionFault(ENHANCE_YOUR_CALM, text)
        if flags & END_HEADERS:
            self._block = self.liveness.head_began_at = None
            self.calls.on_head(stream, first_flags, bytes(block))

    def _on_window(self, _: int, stream: int, payload: bytes) -> None:
        size = int.from_bytes(payload) & WINDOW_MAX
        if stream:
            self.calls.on_window(stream, size)
            return
        if not size:
            raise ConnectionFault(PROTOCOL_ERROR, "a window grows by nothing")
        self.window += size
        if self.window > WINDOW_MAX:
            raise ConnectionFault(FLOW_CONTROL_ERROR, "the window is too large")
        self.calls.wake_writers()

    def _on_settings(self, flags: int, _: int, payload: bytes) -> None:
        self._has_settings = True
        if flags & ACK:
            if payload:
                raise ConnectionFault(FRAME_SIZE_ERROR, "an answer to settings has none")
            return
        self._settings_count += 1
        if self._settings_count > _SETTINGS_MAX:
            raise ConnectionFault(ENHANCE_YOUR_CALM, "settings change too often")
        for name, value in settings_of(payload):
            if name == INITIAL_WINDOW_SIZE:
                self.calls.change_windows(value)
            elif (name == ENABLE_PUSH and value > 1) or (
                name == FRAME_SIZE_MAX and not FRAME_BYTES <= value < 1 << 24
            ):
                raise ConnectionFault(PROTOCOL_ERROR, f"setting {name} cannot be {value}")
        self.send(frame(SETTINGS, ACK, 0))

    def _on_ping(self, flags: int, _: int, payload: bytes) -> None:
        if flags & ACK:
            return
        if self.liveness.is_pinged_too_often(self.loop.time()):
            raise ConnectionFault(ENHANCE_YOUR_CALM, "too_many_pings")
        self.send(frame(PING, ACK, 0, payload))

    def _on_reset(self, _: int, stream: int, payload: bytes) -> None:
        self.calls.on_reset(stream)

    def _on_priority(self, _: int, stream: int, payload: bytes) -> None:
        check_priority(stream, payload)

    def _on_promise(self, *_: object) -> None:
        raise ConnectionFault(PROTOCOL_ERROR, "a client promises nothing")

    # --- used by calls ----------------------------------------------------------------------------

    def limits_of(self, path: bytes) -> tuple[int, Bound]:
        shared = self.shared
        limit = shared.message_bytes_max.get(path)
        if limit is None:
            return SMALL_MESSAGE_BYTES_MAX, shared.small_bodies
        return limit, shared.bodies

    def send(self, data: bytes) -> None:
        if not self._is_closing:
            self._transport.write(data)

    def answer(self, data: bytes) -> None:
        """Send what a call has to say: its peer may ping then."""
        self.liveness.has_answered = True
        self.send(data)

    def begin(self, call: Call) -> None:
        """Its first message is there, or there will be none."""
        self.shared.waiting.pop(call, None)
        if call.refusal:
            call.refuse()
            return
        handling = self._handler(call)
        if isinstance(handling, Coroutine):
            handling = self.loop.create_task(handling)
        call.task = handling

    def _handler(self, call: Call) -> Handling:
        return self.shared.handlers[call.head[b":path"]](call)

    def ended(self, call: Call) -> None:
        self.calls.ended(call)
        if not self.calls.open:
            self.liveness.has_no_calls(self.loop.time())
            if self.shared.is_stopping:
                self.end(NO_ERROR, "")

    # --- its end ----------------------------------------------------------------------------------

    def look(self, now: float) -> None:
        """Called once a second: end it if its peer is silent, or misses a deadline."""
        if self.liveness.is_dead(now):
            self.abort()
        elif self.liveness.is_idle(now):
            self.end(NO_ERROR, "")
        elif self.liveness.needs_ping(now):
            self.send(frame(PING, 0, 0, bytes(8)))

    def stop(self) -> None:
        """Take no more calls, and close when those under way have ended."""
        if self.calls.open:
            self.send(goaway(self.calls.last_stream, NO_ERROR))
        else:
            self.end(NO_ERROR, "")

    def end(self, code: int, text: str) -> None:
        """Say why, and close."""
        if self._is_closing:
            return
        self.send(goaway(self.calls.last_stream, code, text))
        self._is_closing = True
        self.liveness.ended_at = self.loop.time()
        self.calls.abandon_all()
        self._transport.close()

    def abort(self) -> None:
        self._is_closing = True
        self._transport.abort()


_HANDLERS: dict[int, Callable[[Connection, int, int, bytes], None]] = {
    HEADERS: Connection._on_head,
    PRIORITY: Connection._on_priority,
    RST_STREAM: Connection._on_reset,
    SETTINGS: Connection._on_settings,
    PUSH_PROMISE: Connection._on_promise,
    PING: Connection._on_ping,
    WINDOW_UPDATE: Connection._on_window,
    CONTINUATION: Connection._on_continuation,
}
"""By kind of frame, without `DATA`."""


def _keep_little_in_the_kernel(opened: object) -> None:
    """Have the system take so much, and not megabytes, for a peer that does not read."""
    found = cast("socket.socket | None", opened)
    if found is not None and found.family in (socket.AF_INET, socket.AF_INET6):
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _KERNEL_BYTES_MAX)
