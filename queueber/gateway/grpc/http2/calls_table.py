"""The calls of one connection: which are open, which have ended, what comes for each."""

from queueber.gateway.grpc.http2.call import Call, Carrier
from queueber.gateway.grpc.http2.frames import (
    END_STREAM,
    FLOW_CONTROL_ERROR,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    STREAM_CLOSED,
    WINDOW,
    WINDOW_MAX,
    ConnectionFault,
    StreamFault,
    reset,
)
from queueber.gateway.grpc.http2.heads import Head, Heads, MalformedHead
from queueber.gateway.grpc.http2.liveness import Liveness
from queueber.gateway.grpc.http2.shared import Shared
from queueber.gateway.grpc.statuses import Status

CALLS_MAX = 100
"""Of a connection at a time; clients wait with others by themselves."""
_RECENT_MAX = 2 * CALLS_MAX
"""Streams that have ended, and are remembered."""


class CallsTable:
    def __init__(self, connection: Carrier, shared: Shared, liveness: Liveness) -> None:
        self._connection = connection
        self._shared = shared
        self._liveness = liveness
        self._heads = Heads(shared.header_bytes_max)
        self._call_window = WINDOW
        """What the peer takes of a new call before it says that we may go on."""
        self._ended_recently: dict[int, bool] = {}
        """For each stream whether its peer may not know yet that it has ended."""
        self.open: dict[int, Call] = {}
        self.last_stream = 0

    # --- what comes -------------------------------------------------------------------------------

    def on_data(self, stream: int, flags: int, data: bytes, size: int) -> None:
        call = self.open.get(stream)
        if call is None or call.is_closed:
            self._check_begun(stream)
            if not self._ended_recently.get(stream):
                raise StreamFault(stream, STREAM_CLOSED, "the stream has ended")
        else:
            call.receive(data, size, is_last=bool(flags & END_STREAM))

    def _check_begun(self, stream: int) -> None:
        if stream > self.last_stream or not stream % 2:
            raise ConnectionFault(PROTOCOL_ERROR, f"stream {stream} has not begun")

    def on_head(self, stream: int, flags: int, block: bytes) -> None:
        """A whole head: of a new call, or the end of one."""
        call = self.open.get(stream)
        is_trailer = stream <= self.last_stream
        is_late = is_trailer and (call is None or call.is_closed)
        try:
            # Also of calls that are not taken: the next head may refer to what it has.
            head = self._heads.read(block, is_trailer=is_trailer)
        except MalformedHead as error:
            if not is_late:
                self.last_stream = max(stream, self.last_stream)
                raise StreamFault(stream, PROTOCOL_ERROR, str(error)) from None
        if not stream % 2:
            raise ConnectionFault(PROTOCOL_ERROR, "a client's streams have odd numbers")
        if is_late:
            self._on_late_head(stream)
        elif call is None:
            self.last_stream = stream
            self._open(stream, head, is_closed=bool(flags & END_STREAM))
        elif flags & END_STREAM:
            call.close()
        else:
            raise StreamFault(stream, PROTOCOL_ERROR, "a second head is the end of a stream")

    def _on_late_head(self, stream: int) -> None:
        """A head of a stream that its peer had closed, or had not opened in order."""
        if not self._ended_recently.get(stream):
            is_known = stream in self._ended_recently or stream in self.open
            code = STREAM_CLOSED if is_known else PROTOCOL_ERROR
            raise ConnectionFault(code, f"stream {stream} has ended")

    def _open(self, stream: int, head: Head, *, is_closed: bool) -> None:
        if len(self.open) >= CALLS_MAX or self._shared.is_stopping:
            self.reset(stream, REFUSED_STREAM)
            return
        call = self.open[stream] = Call(self._connection, stream, head, self._call_window)
        self._liveness.has_calls()
        if not call.refusal and head[b":path"] not in self._shared.handlers:
            call.is_closed = is_closed
            call.finish(Status.UNIMPLEMENTED, "there is no such method")
            return
        self._shared.waiting[call] = self._liveness.received_at
        if is_closed:
            call.close()

    def on_reset(self, stream: int) -> None:
        call = self.open.get(stream)
        if call is None:
            self._check_begun(stream)
        else:
            call.abandon()
        if stream in self._ended_recently:
            self._ended_recently[stream] = False

    def on_window(self, stream: int, size: int) -> None:
        if not size:
            raise StreamFault(stream, PROTOCOL_ERROR, "a window grows by nothing")
        call = self.open.get(stream)
        if call is None:
            self._check_begun(stream)
            return
        call.window += size
        if call.window > WINDOW_MAX:
            raise StreamFault(stream, FLOW_CONTROL_ERROR, "the window is too large")
        call.wake_writer()

    def change_windows(self, size: int) -> None:
        """The peer has another size for all calls, those that are open among them."""
        if size > WINDOW_MAX:
            raise ConnectionFault(FLOW_CONTROL_ERROR, "the window is too large")
        grown, self._call_window = size - self._call_window, size
        for call in self.open.values():
            call.window += grown
            if call.window > WINDOW_MAX:
                raise ConnectionFault(FLOW_CONTROL_ERROR, "the window is too large")
        self.wake_writers()

    def wake_writers(self) -> None:
        for call in self.open.values():
            call.wake_writer()

    # --- ends -------------------------------------------------------------------------------------

    def ended(self, call: Call) -> None:
        """Either side has ended it."""
        if call.task is None:
            self._shared.waiting.pop(call, None)
        self.open.pop(call.stream, None)
        self._remember(call.stream, may_go_on=not call.is_closed)

    def _remember(self, stream: int, *, may_go_on: bool) -> None:
        recent = self._ended_recently
        recent[stream] = may_go_on
        if len(recent) > _RECENT_MAX:
            del recent[next(iter(recent))]

    def reset(self, stream: int, code: int) -> None:
        """End a stream without a status: its peer broke a rule, or there are too many."""
        call = self.open.get(stream)
        if call is None:
            self._remember(stream, may_go_on=True)
            self._connection.send(reset(stream, code))
        else:
            call.reset(code)
            call.abandon()

    def abandon_all(self) -> None:
        for call in list(self.open.values()):
            call.abandon()
