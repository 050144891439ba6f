"""The frames of HTTP/2 (RFC 9113): their numbers, and how they are written."""

import struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD: Final = struct.Struct(">HBBBI")
"""The head of a frame: two bytes and one of its size, its kind, flags, stream."""
HEAD_BYTES: Final = 9
FRAME_BYTES: Final = 16_384
"""The most that a frame carries, unless its receiver allows more. We never do."""
WINDOW: Final = 65_535
"""What may be sent at first on a connection, and on a stream."""
WINDOW_MAX: Final = (1 << 31) - 1

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 5, 6, 7, 8, 9

END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20

ENABLE_PUSH, CONCURRENT_STREAMS_MAX = 2, 3
INITIAL_WINDOW_SIZE, FRAME_SIZE_MAX, HEADER_LIST_SIZE_MAX = 4, 5, 6

NO_ERROR, PROTOCOL_ERROR, FLOW_CONTROL_ERROR = 0x0, 0x1, 0x3
STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL = 0x5, 0x6, 0x7, 0x8
COMPRESSION_ERROR, ENHANCE_YOUR_CALM = 0x9, 0xB

PRIORITY_BYTES: Final = 5
_SIZES = {PRIORITY: PRIORITY_BYTES, RST_STREAM: 4, PING: 8, WINDOW_UPDATE: 4}
_OF_CONNECTIONS = frozenset((SETTINGS, PING, GOAWAY))
_OF_STREAMS = frozenset((DATA, HEADERS, PRIORITY, RST_STREAM, PUSH_PROMISE, CONTINUATION))


class ConnectionFault(Exception):
    """The peer broke a rule of the connection, which ends with this code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class StreamFault(Exception):
    """The peer broke a rule of one stream, which is reset with this code."""

    def __init__(self, stream: int, code: int, text: str) -> None:
        super().__init__(text)
        self.stream = stream
        self.code = code


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    size = len(payload)
    return HEAD.pack(size >> 8, size & 0xFF, kind, flags, stream) + payload


def frame_head(size: int, kind: int, flags: int, stream: int) -> bytes:
    return HEAD.pack(size >> 8, size & 0xFF, kind, flags, stream)


def window_update(stream: int, size: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, size.to_bytes(4))


def reset(stream: int, code: int) -> bytes:
    return frame(RST_STREAM, 0, stream, code.to_bytes(4))


def goaway(last: int, code: int, text: str = "") -> bytes:
    return frame(GOAWAY, 0, 0, last.to_bytes(4) + code.to_bytes(4) + text.encode())


def settings(pairs: dict[int, int]) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *each) for each in pairs.items()))


def settings_of(payload: bytes) -> list[tuple[int, int]]:
    """The pairs of a frame of settings, in its order."""
    if len(payload) % 6:
        raise ConnectionFault(FRAME_SIZE_ERROR, "settings have six bytes each")
    return list(struct.iter_unpack(">HI", payload))


def without_padding(flags: int, payload: bytes, skipped: int = 0) -> bytes:
    """What a frame carries, without its padding and the first bytes behind the padding's size."""
    begin, end = skipped, len(payload)
    if flags & PADDED:
        if not payload:
            raise ConnectionFault(FRAME_SIZE_ERROR, "the size of the padding is missing")
        begin, end = begin + 1, end - payload[0]
    if begin > end:
        code = PROTOCOL_ERROR if flags & PADDED else FRAME_SIZE_ERROR
        raise ConnectionFault(code, "the padding is longer than the frame")
    return payload[begin:end]


def check_frame(kind: int, stream: int, size: int) -> None:
    """Whether a frame of this kind may be on the stream (0: on none), and may have the size."""
    if kind in (_OF_CONNECTIONS if stream else _OF_STREAMS):
        raise ConnectionFault(PROTOCOL_ERROR, f"a frame of kind {kind} on stream {stream}")
    if _SIZES.get(kind, size) != size:
        raise ConnectionFault(FRAME_SIZE_ERROR, f"a frame of kind {kind} has {size} bytes")


def check_priority(stream: int, payload: bytes) -> None:
    if len(payload) != PRIORITY_BYTES:
        raise ConnectionFault(FRAME_SIZE_ERROR, "a priority has five bytes")
    if int.from_bytes(payload[:4]) & WINDOW_MAX == stream:
        raise StreamFault(stream, PROTOCOL_ERROR, "a stream depends on itself")
