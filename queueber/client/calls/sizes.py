"""How large a call is, before it is sent."""

from collections.abc import Iterable, Mapping, Sequence

from queueber.model import ItemOptions, total_size

_TEXT_WIRE_BYTES = 16
"""What a text takes in a message beyond its bytes: pointer, terminator and padding."""
_OPTIONS_WIRE_BYTES = 32
_MS_WIRE_BYTES = 8


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


def options_bytes(options: Sequence[ItemOptions]) -> int:
    """The bytes of a column of options, each of which is sent once."""
    different = set(options)
    delays = sum([len(each.backoff_ms) for each in different])
    return 2 * len(options) + _OPTIONS_WIRE_BYTES * len(different) + _MS_WIRE_BYTES * delays


def _texts_bytes(texts: Sequence[str]) -> int:
    return sum([len(text.encode()) + _TEXT_WIRE_BYTES for text in texts])
