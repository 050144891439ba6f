"""Items as JSON objects, one a line: contents, and what is to be said of each item."""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from queueber.client.new_items import AddOptions, to_new_items
from queueber.errors import InvalidArgument
from queueber.limits import KIB

_FIELDS = ("contents", "contentsBase64", "key", "priority", "delay", "attributes")

_ESCAPE_BYTES = 6
"""The longest that JSON makes of a byte: `\\u0000`."""
_OTHER_BYTES_MAX = 128 * KIB
"""Room for a key, attributes and spaces."""


@dataclass(frozen=True, slots=True)
class Described:
    """An item; None for what the line does not say."""

    contents: bytes
    delay: float | None
    priority: int | None
    key: str | None
    attributes: Mapping[str, str]
    input_bytes: int


def line_bytes_max(item_bytes_max: int) -> int:
    """How long the line of the largest item may be."""
    return _ESCAPE_BYTES * item_bytes_max + _OTHER_BYTES_MAX


def read_described(lines: Iterable[bytes], numbers: Iterator[int]) -> Iterator[Described]:
    """An `InvalidArgument` says which one is wrong, by its number, and why."""
    # Lines first: a number that is drawn belongs to one.
    for line, at in zip(lines, numbers, strict=False):
        try:
            yield _read(line)
        except InvalidArgument as error:
            raise InvalidArgument(f"item {at} of standard input: {error}") from None


def _read(line: bytes) -> Described:
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidArgument("it is not JSON") from None
    if not isinstance(read, dict):
        raise InvalidArgument("it is not a JSON object")
    # A slip in a name must not go unnoticed.
    if unknown := [name for name in read if name not in _FIELDS]:
        raise InvalidArgument(f"{unknown[0]!r} is none of {', '.join(_FIELDS)}")
    contents = _contents(read.get("contents"), read.get("contentsBase64"))
    given = {name: read[name] for name in _FIELDS[2:] if read.get(name) is not None}
    if lists := [name for name, value in given.items() if isinstance(value, list)]:
        # The client would take a list for several items.
        raise InvalidArgument(f"{lists[0]}: it is a list; the item has one")
    if given.get("key") == "":
        raise InvalidArgument("key: it is empty; leave it out, or make it null")
    if given:
        # Refused here, where we know which line it is.
        to_new_items(contents, **AddOptions(**given))  # type: ignore[typeddict-item]
    return Described(
        contents,
        given.get("delay"),
        given.get("priority"),
        given.get("key"),
        given.get("attributes", {}),
        len(line) + 1,
    )


def _contents(text: object, in_base64: object) -> bytes:
    """As `poll --json` prints them: the bytes if they are there, else the text."""
    try:
        if isinstance(in_base64, str):
            return base64.b64decode(in_base64, validate=True)
        if isinstance(text, str) and in_base64 is None:
            return text.encode()
    except ValueError:
        raise InvalidArgument("its contents are not UTF-8 or base64") from None
    raise InvalidArgument("it has no contents; give contents or contentsBase64, as a string")
