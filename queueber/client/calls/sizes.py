"""How large a call is, before it is sent."""

from collections.abc import Iterable, Mapping, Sequence

from queueber.model import total_size

_TEXT_WIRE_BYTES = 16
"""What a text takes in a message beyond its bytes: pointer, terminator and padding."""


def columns_bytes(
    contents: Sequence[bytes],
    texts: Iterable[Sequence[str]],
    attributes: Sequence[Mapping[str, str]],
) -> int:
    """The bytes of contents, of columns of texts, and of attributes."""
    size = total_size(contents)
    for column in texts:
        size += _texts_bytes(column)
    for each in attributes:
        size += _texts_bytes([*each, *each.values()])
    return size


def _texts_bytes(texts: Sequence[str]) -> int:
    return sum([len(text.encode()) + _TEXT_WIRE_BYTES for text in texts])
