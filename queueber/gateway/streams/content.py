"""What a stream holds, by its type: bytes, or values of JSON.

An append to a stream of bytes is one message, or several if it is larger than a message may be. In
JSON each value is a message of its own, whose payload is the bytes that were sent.
"""

import base64
import re
from collections.abc import Iterable, Sequence

import msgspec

from queueber.gateway.problems import Problem, invalid
from queueber.limits import PAYLOAD_BYTES_MAX, PUBLISH_MESSAGES_MAX
from queueber.model import bare_type

DEFAULT_TYPE = "application/octet-stream"
JSON_TYPE = "application/json"

_values = msgspec.json.Decoder(list[msgspec.Raw])
_value = msgspec.json.Decoder(msgspec.Raw)
_ARRAY = re.compile(rb"[ \t\r\n]*\[")
_LINE_ENDS = re.compile(rb"\r\n|\r|\n")
_CONTINUES, _CONTINUATION_MASK = 0b1000_0000, 0b1100_0000
"""How the second and further bytes of a character of UTF-8 begin."""


def is_json(content_type: str) -> bool:
    return bare_type(content_type) == JSON_TYPE


def is_text(content_type: str) -> bool:
    """Whether server-sent events can carry it as it is."""
    base = bare_type(content_type)
    return base == JSON_TYPE or base.startswith("text/")


# --- what is appended -----------------------------------------------------------------------------


def to_messages(content_type: str, body: bytes) -> list[bytes]:
    """The payloads of a body; raises a `Problem` if it is not JSON and should be."""
    if not body:
        return []
    if is_json(content_type):
        return _json_messages(body)
    if len(body) <= PAYLOAD_BYTES_MAX:
        return [body]
    return list(_pieces(body, is_text(content_type)))


def _json_messages(body: bytes) -> list[bytes]:
    try:
        if not body.isascii():
            body.decode()  # the decoder looks at brackets and quotes only
        if _ARRAY.match(body):
            values = list(map(bytes, _values.decode(body)))
        else:
            values = [bytes(_value.decode(body)).strip()]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise invalid(f"body: it is not JSON: {error}") from None
    except RecursionError:
        raise invalid("body: it is nested too deeply") from None
    if len(values) > PUBLISH_MESSAGES_MAX:
        raise Problem(
            413,
            "RESOURCE_EXHAUSTED",
            f"body: it has {len(values)} values; the limit is {PUBLISH_MESSAGES_MAX}, send several "
            "requests",
        )
    return values


def _pieces(body: bytes, is_characters: bool) -> Iterable[bytes]:
    """Parts of at most the size of a message, none of which ends inside a character of a text."""
    start = 0
    while start < len(body):
        end = min(start + PAYLOAD_BYTES_MAX, len(body))
        if is_characters:
            for back in range(4):
                if end == len(body) or body[end - back] & _CONTINUATION_MASK != _CONTINUES:
                    end -= back
                    break
        yield body[start:end]
        start = end


# --- what is read ---------------------------------------------------------------------------------


def joined(content_type: str, payloads: Sequence[bytes]) -> bytes:
    """The body of an answer: one JSON array, or the bytes one after the other."""
    if is_json(content_type):
        # A message without a payload was not published as JSON; it is no value.
        values = list(filter(None, payloads)) or [b""]
        # Not after they are joined: each would copy the whole body again.
        values[0] = b"[" + values[0]
        values[-1] += b"]"
        return b",".join(values)
    return b"".join(payloads)


def as_event_data(content_type: str, body: bytes) -> bytes:
    """The lines of a server-sent event: each begins anew, so no content can end the event."""
    if not is_text(content_type):
        return b"data:" + base64.b64encode(body) + b"\n"
    if b"\n" not in body and b"\r" not in body:
        return b"data:" + body + b"\n"
    return b"".join([b"data:%b\n" % line for line in _LINE_ENDS.split(body)])
