"""Reads items from JSON lines: each line is an object with contents and further fields."""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

from queueber import Item
from queueber.cli.flags import limit_in_seconds
from queueber.cli.output import field_name
from queueber.client.arguments.new_items import AddOptions, to_new_items
from queueber.errors import InvalidArgument
from queueber.limits import DELAY_MS_MAX, KIB, SECOND_MS
from queueber.model import ItemInfo

_FIELDS = (
    "contents", "contentsBase64", "key", "priority", "delay", "attributes", "attempts", "backoff",
    "timeout", "expires",
)  # fmt: skip
_PRINTED = {field_name(each.name) for kind in (Item, ItemInfo) for each in fields(kind)}
"""Fields that `poll` and `peek` print. A new item ignores those that are not in `_FIELDS`."""

_ESCAPE_BYTES = 6
"""The longest escape of one byte in JSON: `\\u0000`."""
_OTHER_BYTES_MAX = 128 * KIB
"""For a key, attributes and spaces."""


@dataclass(frozen=True, slots=True)
class JsonlItem:
    """An item; None for what the line leaves out."""

    contents: bytes
    input_bytes: int
    key: str | None = None
    priority: int | None = None
    delay: float | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    attempts: int | None = None
    backoff: Sequence[float] | None = None
    timeout: float | None = None
    expires: float | None = None


def line_bytes_max(item_bytes_max: int) -> int:
    """The longest line that can hold an item of the largest size."""
    return _ESCAPE_BYTES * item_bytes_max + _OTHER_BYTES_MAX


def read_jsonl(lines: Iterable[bytes], numbers: Iterator[int]) -> Iterator[JsonlItem]:
    """Raises `InvalidArgument` with the number of the item that is wrong, and the reason."""
    # `lines` comes first, so that no number is drawn without a line.
    for line, at in zip(lines, numbers, strict=False):
        try:
            yield _read(line)
        except InvalidArgument as error:
            raise InvalidArgument(f"item {at} of standard input: {error}") from None


def _read(line: bytes) -> JsonlItem:
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidArgument("it is not JSON") from None
    if not isinstance(read, dict):
        raise InvalidArgument("it is not a JSON object")
    # A typo in a name must be noticed. Only items printed by `poll` or `peek` have an id.
    known = {*_FIELDS, *_PRINTED} if "id" in read else _FIELDS
    if unknown := [name for name in read if name not in known]:
        raise InvalidArgument(f"{unknown[0]!r} is none of {', '.join(_FIELDS)}")
    contents = _contents(read.get("contents"), read.get("contentsBase64"))
    given = {name: read[name] for name in _FIELDS[2:] if read.get(name) is not None}
    if "id" in read and "attempts" in given:
        del given["attempts"]  # `peek` prints how often it has failed
    if isinstance(given.get("backoff", []), list):
        backoff = given.pop("backoff", None)
    else:
        raise InvalidArgument("backoff: it is no list of seconds")
    if lists := [name for name, value in given.items() if isinstance(value, list)]:
        # The client takes a list as one value for each of several items.
        raise InvalidArgument(f"{lists[0]}: it is a list; the item has one")
    if given.get("key") == "":
        raise InvalidArgument("key: it is empty; leave it out, or make it null")
    for name in ("delay", "expires"):
        _check_delay(name, given.get(name))
    if backoff is not None:
        given["backoff"] = [
            each if isinstance(each, int | float) else str(each) for each in backoff
        ]
    if given:
        # The client checks the values; here we still know the line.
        to_new_items(contents, **AddOptions(**given))  # type: ignore[typeddict-item]
    return JsonlItem(contents, len(line) + 1, **given)


def _check_delay(name: str, delay: object) -> None:
    """The client refuses what is no number; only the server refuses what is too long."""
    if isinstance(delay, int | float) and delay * SECOND_MS > DELAY_MS_MAX:
        raise InvalidArgument(f"{name}: it is too long; {limit_in_seconds(DELAY_MS_MAX)}")


def _contents(text: object, in_base64: object) -> bytes:
    """From text, from base64, or from both, as `poll --json` prints them."""
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
