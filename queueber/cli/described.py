"""Items as JSON objects, one a line: contents, and what is to be said of each item."""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

from queueber.cli.options import limit_in_seconds
from queueber.cli.output import field_name
from queueber.client import Item
from queueber.client.arguments.new_items import AddOptions, to_new_items
from queueber.errors import InvalidArgument
from queueber.limits import DELAY_MS_MAX, KIB, SECOND_MS
from queueber.model import ItemInfo

_FIELDS = ("contents", "contentsBase64", "key", "priority", "delay", "attributes")
_PRINTED = {field_name(each.name) for kind in (Item, ItemInfo) for each in fields(kind)}
"""What `poll` and `peek` print of an item. They do not go into a new one unless they are above."""

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
    # A slip in a name must not go unnoticed. Only an item that was printed has an id.
    known = {*_FIELDS, *_PRINTED} if "id" in read else _FIELDS
    if unknown := [name for name in read if name not in known]:
        raise InvalidArgument(f"{unknown[0]!r} is none of {', '.join(_FIELDS)}")
    contents = _contents(read.get("contents"), read.get("contentsBase64"))
    given = {name: read[name] for name in _FIELDS[2:] if read.get(name) is not None}
    if lists := [name for name, value in given.items() if isinstance(value, list)]:
        # The client would take a list for several items.
        raise InvalidArgument(f"{lists[0]}: it is a list; the item has one")
    if given.get("key") == "":
        raise InvalidArgument("key: it is empty; leave it out, or make it null")
    _check_delay(given.get("delay"))
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


def _check_delay(delay: object) -> None:
    """The client knows what is no number, and the server alone what is too long."""
    if isinstance(delay, int | float) and delay * SECOND_MS > DELAY_MS_MAX:
        raise InvalidArgument(f"delay: it is too long; {limit_in_seconds(DELAY_MS_MAX)}")


def _contents(text: object, in_base64: object) -> bytes:
    """As `poll --json` prints them: the text, the bytes in base64, or both."""
    for name, value in (("contents", text), ("contentsBase64", in_base64)):
        if value is not None and not isinstance(value, str):
            raise InvalidArgument(f"{name}: it must be text, in quotes")
    try:
        from_text = text.encode() if isinstance(text, str) else None
        from_base64 = (
            base64.b64decode(in_base64, validate=True) if isinstance(in_base64, str) else None
        )
    except ValueError:
        raise InvalidArgument("its contents are not UTF-8 or base64") from None
    if from_text is not None and from_base64 not in (None, from_text):
        raise InvalidArgument("contents and contentsBase64 differ; give one of them")
    contents = from_text if from_base64 is None else from_base64
    if contents is None:
        raise InvalidArgument("it has no contents; give contents or contentsBase64")
    return contents
