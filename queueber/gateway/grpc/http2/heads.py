"""The heads of requests, which are read with HPACK, and those of answers, which are written plain.

A client sends the same head over and over, as references into a table that both sides keep. Its
bytes mean the same as long as that table stays as it is; so a head is read once.
"""

import re
from typing import Final

from hpack import Decoder, HPACKError, OversizedHeaderListError
from hpack.table import HeaderTable

from queueber.gateway.grpc.http2.frames import (
    COMPRESSION_ERROR,
    ENHANCE_YOUR_CALM,
    ConnectionFault,
)

_REMEMBERED_MAX = 16
_REMEMBERED_BYTES_MAX = 1024
_KIND_OF_FIELD, _SIZE_OF_TABLE = 0xE0, 0x20
"""The first bits of a block that begins with a new size of the table."""
_IN_REQUESTS: Final = frozenset((b":method", b":scheme", b":path", b":authority"))
_NEEDED: Final = (b":method", b":scheme", b":path")
_OF_CONNECTIONS: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)
_WRONG_NAME = re.compile(rb"[A-Z\x00-\x20\x7f-\xff]|(?<!^):")
_WRONG_VALUE = re.compile(rb"[\x00\r\n]")

Head = dict[bytes, bytes]


class MalformedHead(Exception):
    """The head can be read, and is no head of a request: its stream is reset."""


class _Table(HeaderTable):
    """Counts its changes."""

    changes = 0

    def add(self, name: bytes, value: bytes) -> None:
        self.changes += 1
        super().add(name, value)


class Heads:
    """Reads the heads of one connection, in the order in which they came."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._decoder: Decoder | None = None
        """Made with the first head: most of the cost of a connection is in it."""
        self._table = _Table()
        self._remembered: dict[bytes, Head] = {}

    def read(self, block: bytes, *, is_trailer: bool = False) -> Head:
        """The fields of a head or of trailers; of a name that comes twice, the first.

        Do not change what is returned.
        """
        found = self._remembered.get(block)
        if found is not None and not is_trailer:
            return found
        decoder, table = self._decoder, self._table
        if decoder is None:
            decoder = self._decoder = Decoder(self._bytes_max)
            decoder.header_table = table
        changes = table.changes
        if block[:1] and block[0] & _KIND_OF_FIELD == _SIZE_OF_TABLE:
            table.changes += 1
        try:
            fields = decoder.decode(block, raw=True)
        except OversizedHeaderListError:
            text = f"metadata: it has more than {self._bytes_max} bytes"
            raise ConnectionFault(ENHANCE_YOUR_CALM, text) from None
        except (HPACKError, IndexError) as error:
            raise ConnectionFault(COMPRESSION_ERROR, f"the head cannot be read: {error}") from None
        if table.changes != changes:
            self._remembered.clear()
        head = _checked(fields, is_trailer=is_trailer)
        if (
            table.changes == changes
            and not is_trailer
            and len(block) <= _REMEMBERED_BYTES_MAX
            and len(self._remembered) < _REMEMBERED_MAX
        ):
            self._remembered[block] = head
        return head


def _checked(fields: object, *, is_trailer: bool) -> Head:
    head: Head = {}
    is_past_pseudo = False
    for name, value in fields:  # type: ignore[attr-defined]  # pairs of bytes
        if _WRONG_NAME.search(name) or not name or _WRONG_VALUE.search(value):
            raise MalformedHead(f"the field {name!r} is written wrongly")
        if name.startswith(b":"):
            if is_trailer or is_past_pseudo or name not in _IN_REQUESTS or name in head:
                raise MalformedHead(f"{name!r} must not be there")
        else:
            is_past_pseudo = True
            if name in _OF_CONNECTIONS or (name == b"te" and value != b"trailers"):
                raise MalformedHead(f"{name!r} must not be there")
        head.setdefault(name, value)
    if not is_trailer and not all(head.get(each) for each in _NEEDED):
        raise MalformedHead("a request has a method, a scheme and a path")
    return head


# --- answers --------------------------------------------------------------------------------------


def _sized(text: bytes) -> bytes:
    if len(text) < 127:
        return bytes((len(text),)) + text
    left, size = len(text) - 127, b"\x7f"
    while left >= 128:
        size += bytes((left % 128 + 128,))
        left //= 128
    return size + bytes((left,)) + text


def field(name: bytes, value: bytes) -> bytes:
    """A field that no table remembers."""
    return b"\0" + _sized(name) + _sized(value)


_STATUS_200: Final = b"\x88"
ANSWER: Final = _STATUS_200 + field(b"content-type", b"application/grpc")
TRAILERS_OK: Final = field(b"grpc-status", b"0")


def trailers(status: int, text: str) -> bytes:
    """What an answer ends with."""
    if not text:
        return field(b"grpc-status", b"%d" % status)
    return field(b"grpc-status", b"%d" % status) + field(b"grpc-message", _quoted(text))


def plain_answer(status: int) -> bytes:
    """The head of an answer without gRPC, for what is no call of it."""
    return field(b":status", b"%d" % status)


def _quoted(text: str) -> bytes:
    """As gRPC writes texts into a field."""
    if text.isascii() and text.isprintable() and "%" not in text:
        return text.encode()
    return b"".join(
        b"%c" % byte if 0x20 <= byte <= 0x7E and byte != 0x25 else b"%%%02X" % byte
        for byte in text.encode("utf-8", "replace")
    )
