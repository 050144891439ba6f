"""One connection: reads frames, and holds its peer to the rules and the bounds."""

import asyncio
import socket
from typing import Any, cast

from queueber.gateway.grpc.http2.call import STREAM_WINDOW, Call
from queueber.gateway.grpc.http2.frames import (
    ACK,
    CANCEL,
    CONCURRENT_STREAMS_MAX,
    CONTINUATION,
    DATA,
    ENABLE_PUSH,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    FRAME_BYTES,
    FRAME_SIZE_ERROR,
    FRAME_SIZE_MAX,
    GOAWAY,
    HAS_PRIORITY,
    HEAD,
    HEAD_BYTES,
    HEADER_LIST_SIZE_MAX,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    NO_ERROR,
    PING,
    PREFACE,
    PRIORITY,
    PROTOCOL_ERROR,
    PUSH_PROMISE,
    REFUSED_STREAM,
    RST_STREAM,
    SETTINGS,
    STREAM_CLOSED,
    WINDOW,
    WINDOW_MAX,
    WINDOW_UPDATE,
    ConnectionFault,
    StreamFault,
    frame,
    goaway,
    reset,
    settings,
    settings_of,
    window_update,
    without_padding,
)
from queueber.gateway.grpc.http2.heads import Head, Heads, MalformedHead, plain_answer
from queueber.gateway.grpc.http2.liveness import Liveness
from queueber.gateway.grpc.http2.shared import Shared
from queueber.gateway.grpc.statuses import Status
from queueber.gateway.log import log
from queueber.limits import KIB, MIB

CALLS_MAX = 100
"""Of a connection at a time; clients wait with others by themselves."""
_WINDOW = MIB
"""What a peer may send on a connection before it is told to go on."""
_FRAMES_A_TURN, _CALLS_A_TURN = 256, 16
"""What one connection may have handled in one turn of the loop: others wait meanwhile."""
_BUFFER_BYTES_MAX = 64 * KIB
"""Bytes that the transport keeps for a peer that does not read; nothing is read from it then."""
_KERNEL_BYTES_MAX = 128 * KIB
"""Bytes that the system takes before it has sent those that it took before."""
_SETTINGS_MAX = 1000
"""Frames of settings in the life of a connection. Each is answered, and changes every call."""
_RECENT_MAX = 2 * CALLS_MAX
"""Calls that we have ended, and whose peer may not know it yet."""
_OF_NO_STREAM = frozenset((SETTINGS, PING, GOAWAY))
_SIZES = {PRIORITY: 5, RST_STREAM: 4, PING: 8, WINDOW_UPDATE: 4}
_PRIORITY_BYTES = 5


class Connection(asyncio.Protocol):
    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.loop = asyncio.get_running_loop()
        self.window = WINDOW
        """What the peer takes before it says that we may go on."""
        self.is_full = False
        """Whether the peer has to read before more is sent."""
        self.calls: dict[int, Call] = {}
        self.liveness = Liveness(shared, self.loop.time())
        self._transport: Any = None
        self._call_window = WINDOW
        """The window of a new call."""
        self._receive_window, self._owed = _WINDOW, 0
        self._received = b""
        self._has_greeted = self._has_settings = False
        self._heads = Heads(shared.header_bytes_max)
        self._block: tuple[int, int, bytearray] | None = None
        """A head that has begun: its stream, its flags, what came of it."""
        self._last_stream = 0
        self._settings_count = 0
        self._ended_recently: dict[int, None] = {}
        self._is_closing = False
        self._is_waiting_for_turn = False

    # --- called by the transport ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        shared = self.shared
        if len(shared.connections) >= shared.connections_max or shared.is_stopping:
            self._transport.abort()
            return
        shared.connections.add(self)
        self._transport.set_write_buffer_limits(high=_BUFFER_BYTES_MAX)
        _keep_little_in_the_kernel(transport.get_extra_info("socket"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self.shared.connections.discard(self)
        for call in list(self.calls.values()):
            call.abandon()

    def pause_writing(self) -> None:
        self.is_full = True
        self.liveness.is_full_since = self.loop.time()
        # What it sends would be answered, and that would not be read either.
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self.is_full = False
        self.liveness.is_full_since = None
        if not self._is_waiting_for_turn:
            self._go_on()
        self._wake_writers()

    def data_received(self, data: bytes) -> None:
        self.liveness.received_at = self.loop.time()
        self._received = self._received + data if self._received else data
        self._read_frames()

    def eof_received(self) -> bool:
        return False

    # --- frames -----------------------------------------------------------------------------------

    def _read_frames(self) -> None:
        if self._is_closing:
            self._received = b""
            return
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
        received, at, left = self._received, 0, _FRAMES_A_TURN
        end, calls = len(received), self._last_stream + 2 * _CALLS_A_TURN
        try:
            while end - at >= HEAD_BYTES and not self._is_closing:
                high, low, kind, flags, stream = HEAD.unpack_from(received, at)
                size = high << 8 | low
                if size > FRAME_BYTES:
                    raise ConnectionFault(FRAME_SIZE_ERROR, "a frame is larger than allowed")
                if end - at < HEAD_BYTES + size:
                    break
                if not left or self._last_stream > calls or self.is_full:
                    self._wait_for_turn()
                    break
                left -= 1
                begin = at + HEAD_BYTES
                at = begin + size
                try:
                    self._handle(kind, flags, stream & WINDOW_MAX, received[begin:at])
                except StreamFault as fault:
                    self._reset(fault.stream, fault.code)
        finally:
            self._received = received[at:]

    def _wait_for_turn(self) -> None:
        if not self._is_waiting_for_turn and not self.is_full:
            self._is_waiting_for_turn = True
            self._transport.pause_reading()
            self.loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_waiting_for_turn = False
        if not self._is_closing and not self.is_full:
            self._go_on()

    def _go_on(self) -> None:
        self._transport.resume_reading()
        if self._received:
            self._read_frames()

    def _handle(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if self._block is not None and (kind != CONTINUATION or stream != self._block[0]):
            raise ConnectionFault(PROTOCOL_ERROR, "a head is interrupted")
        if not self._has_settings and kind != SETTINGS:
            raise ConnectionFault(PROTOCOL_ERROR, "the first frame has no settings")
        if kind <= CONTINUATION and (not stream) != (kind in _OF_NO_STREAM):
            if kind != WINDOW_UPDATE:
                raise ConnectionFault(PROTOCOL_ERROR, f"a frame of kind {kind} on stream {stream}")
        if kind in _SIZES and len(payload) != _SIZES[kind]:
            raise ConnectionFault(FRAME_SIZE_ERROR, f"a frame of kind {kind} has another size")
        if kind == DATA:
            self._on_data(flags, stream, payload)
        elif kind == HEADERS:
            self._on_head(flags, stream, payload)
        elif kind == WINDOW_UPDATE:
            self._on_window(stream, int.from_bytes(payload) & WINDOW_MAX)
        elif kind == CONTINUATION:
            self._on_continuation(flags, payload)
        elif kind == RST_STREAM:
            self._on_reset(stream)
        elif kind == SETTINGS:
            self._on_settings(flags, payload)
        elif kind == PING:
            self._on_ping(flags, payload)
        elif kind == PRIORITY:
            _check_priority(stream, payload)
        elif kind == PUSH_PROMISE:
            raise ConnectionFault(PROTOCOL_ERROR, "a client promises nothing")

    # --- of calls ---------------------------------------------------------------------------------

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
        data = without_padding(flags, payload) if flags else payload
        call = self.calls.get(stream)
        if call is None or call.is_closed:
            self._check_known(stream, is_data=True)
            return
        call.receive(data, size, is_last=bool(flags & END_STREAM))

    def _check_known(self, stream: int, *, is_data: bool = False) -> None:
        """A frame of a call that there is not: of one that has ended, or never was."""
        if stream > self._last_stream or not stream % 2:
            raise ConnectionFault(PROTOCOL_ERROR, f"stream {stream} has not begun")
        if is_data and stream not in self._ended_recently:
            raise StreamFault(stream, STREAM_CLOSED, "the stream has ended")

    def _on_head(self, flags: int, stream: int, payload: bytes) -> None:
        if flags & HAS_PRIORITY:
            begin = 1 if flags & 0x8 else 0
            _check_priority(stream, payload[begin : begin + _PRIORITY_BYTES])
            payload = without_padding(flags, payload, _PRIORITY_BYTES)
        else:
            payload = without_padding(flags, payload)
        if flags & END_HEADERS:
            self._on_whole_head(flags, stream, payload)
        else:
            self._block = stream, flags, bytearray(payload)
            self.liveness.head_began_at = self.loop.time()

    def _on_continuation(self, flags: int, payload: bytes) -> None:
        if self._block is None:
            raise ConnectionFault(PROTOCOL_ERROR, "there is no head to be continued")
        stream, first_flags, block = self._block
        block += payload
        if len(block) > self.shared.header_bytes_max:
            text = f"metadata: it has more than {self.shared.header_bytes_max} bytes"
            raise ConnectionFault(ENHANCE_YOUR_CALM, text)
        if flags & END_HEADERS:
            self._block = self.liveness.head_began_at = None
            self._on_whole_head(first_flags, stream, bytes(block))

    def _on_whole_head(self, flags: int, stream: int, block: bytes) -> None:
        call = self.calls.get(stream)
        is_trailer = call is not None or stream <= self._last_stream
        try:
            # Also of calls that will not be taken: the next head may refer to what it has.
            head = self._heads.read(block, is_trailer=is_trailer)
        except MalformedHead as error:
            self._last_stream = max(stream, self._last_stream)
            raise StreamFault(stream, PROTOCOL_ERROR, str(error)) from None
        if not stream % 2:
            raise ConnectionFault(PROTOCOL_ERROR, "a client's streams have odd numbers")
        if is_trailer:
            self._on_trailer(call, flags, stream)
            return
        self._last_stream = stream
        if len(self.calls) >= CALLS_MAX or self.shared.is_stopping:
            self._reset(stream, REFUSED_STREAM)
        else:
            self._open(stream, head, is_closed=bool(flags & END_STREAM))

    def _on_trailer(self, call: Call | None, flags: int, stream: int) -> None:
        if call is None or call.is_closed:
            if stream in self._ended_recently:
                return
            raise ConnectionFault(STREAM_CLOSED, f"stream {stream} has ended")
        if not flags & END_STREAM:
            raise StreamFault(stream, PROTOCOL_ERROR, "a second head is the end of a stream")
        call.close()

    def _open(self, stream: int, head: Head, *, is_closed: bool) -> None:
        if head[b":method"] != b"POST" or not head.get(b"content-type", b"").startswith(
            b"application/grpc"
        ):
            answer = plain_answer(405 if head[b":method"] != b"POST" else 415)
            self.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, answer))
            if not is_closed:
                self._reset(stream, NO_ERROR)
            return
        call = self.calls[stream] = Call(self, stream, head, self._call_window)
        self.liveness.has_calls()
        if head[b":path"] not in self.shared.handlers:
            call.is_closed = is_closed
            call.finish(Status.UNIMPLEMENTED, "there is no such method")
            return
        self.shared.waiting[call] = self.liveness.received_at
        if is_closed:
            call.close()

    def begin(self, call: Call) -> None:
        """Its first message is there, or there will be none."""
        self.shared.waiting.pop(call, None)
        handler = self.shared.handlers[call.head[b":path"]]
        call.task = self.loop.create_task(handler(call))

    def ended(self, call: Call) -> None:
        """Called by the call, when either side has ended it."""
        if call.task is None:
            self.shared.waiting.pop(call, None)
        self.calls.pop(call.stream, None)
        self._remember(call.stream)
        if not self.calls:
            self.liveness.has_no_calls(self.loop.time())
            if self.shared.is_stopping:
                self.end(NO_ERROR, "")

    def _remember(self, stream: int) -> None:
        recent = self._ended_recently
        recent[stream] = None
        if len(recent) > _RECENT_MAX:
            del recent[next(iter(recent))]

    def _on_reset(self, stream: int) -> None:
        call = self.calls.get(stream)
        if call is None:
            self._check_known(stream)
            return
        call.abandon()
        self._ended_recently.pop(stream, None)  # its peer knows

    def _reset(self, stream: int, code: int) -> None:
        call = self.calls.get(stream)
        if call is None:
            self._remember(stream)
            self.send(reset(stream, code))
            return
        call.reset(code)
        if call.task is not None:
            call.task.cancel()

    # --- of the connection ------------------------------------------------------------------------

    def _on_window(self, stream: int, size: int) -> None:
        if not stream:
            if not size:
                raise ConnectionFault(PROTOCOL_ERROR, "a window grows by nothing")
            self.window += size
            if self.window > WINDOW_MAX:
                raise ConnectionFault(FLOW_CONTROL_ERROR, "the window is too large")
            self._wake_writers()
            return
        call = self.calls.get(stream)
        if call is None:
            self._check_known(stream)
            return
        if not size:
            raise StreamFault(stream, PROTOCOL_ERROR, "a window grows by nothing")
        call.window += size
        if call.window > WINDOW_MAX:
            raise StreamFault(stream, FLOW_CONTROL_ERROR, "the window is too large")
        call.wake_writer()

    def _wake_writers(self) -> None:
        for call in self.calls.values():
            call.wake_writer()

    def _on_settings(self, flags: int, payload: bytes) -> None:
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
                self._change_windows(value)
            elif (name == ENABLE_PUSH and value > 1) or (
                name == FRAME_SIZE_MAX and not FRAME_BYTES <= value < 1 << 24
            ):
                raise ConnectionFault(PROTOCOL_ERROR, f"setting {name} cannot be {value}")
        self.send(frame(SETTINGS, ACK, 0))

    def _change_windows(self, size: int) -> None:
        if size > WINDOW_MAX:
            raise ConnectionFault(FLOW_CONTROL_ERROR, "the window is too large")
        grown, self._call_window = size - self._call_window, size
        for call in self.calls.values():
            call.window += grown
            if call.window > WINDOW_MAX:
                raise ConnectionFault(FLOW_CONTROL_ERROR, "the window is too large")
        self._wake_writers()

    def _on_ping(self, flags: int, payload: bytes) -> None:
        if flags & ACK:
            return
        if self.liveness.is_pinged_too_often(self.loop.time(), has_calls=bool(self.calls)):
            raise ConnectionFault(ENHANCE_YOUR_CALM, "too_many_pings")
        self.send(frame(PING, ACK, 0, payload))

    def send(self, data: bytes) -> None:
        if not self._is_closing:
            self.liveness.has_sent = True
            self._transport.write(data)

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
        if self.calls:
            self.send(goaway(self._last_stream, NO_ERROR))
        else:
            self.end(NO_ERROR, "")

    def end(self, code: int, text: str) -> None:
        """Say why, and close."""
        if self._is_closing:
            return
        self.send(goaway(self._last_stream, code, text))
        self._is_closing = True
        for call in list(self.calls.values()):
            call.abandon()
        self._transport.close()

    def abort(self) -> None:
        self._is_closing = True
        self._transport.abort()


def _check_priority(stream: int, payload: bytes) -> None:
    if len(payload) != _PRIORITY_BYTES:
        raise ConnectionFault(FRAME_SIZE_ERROR, "a priority has five bytes")
    if int.from_bytes(payload[:4]) & WINDOW_MAX == stream:
        raise StreamFault(stream, PROTOCOL_ERROR, "a stream depends on itself")


def _keep_little_in_the_kernel(opened: object) -> None:
    """Have the system take so much, and not megabytes, for a peer that does not read."""
    found = cast("socket.socket | None", opened)
    if found is not None and found.family in (socket.AF_INET, socket.AF_INET6):
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _KERNEL_BYTES_MAX)
