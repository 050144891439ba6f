"""A view of an item or message: its fields, attributes, and contents if they are JSON."""

import json
from collections.abc import Mapping
from typing import Any

from queueber.filters.fields import Field, Room, Value
from queueber.limits import FILTER_CONTENTS_BYTES_MAX

_NOT_READ = object()


class RecordView:
    """Contents are parsed when a filter first asks for one of their fields.

    Contents that are no JSON in UTF-8, or larger than a filter may look at, have no fields.
    """

    __slots__ = ("_attributes", "_contents", "_item", "_parsed")

    def __init__(
        self, item: Mapping[str, Value], attributes: Mapping[str, str], contents: bytes
    ) -> None:
        self._item = item
        self._attributes = attributes
        self._contents = contents
        self._parsed: Any = _NOT_READ

    def value(self, field: Field) -> Value:
        room, path = field
        if room is Room.CONTENTS:
            return self._in_contents(path)
        named: Mapping[str, Value] = self._item if room is Room.ITEM else self._attributes
        # The name of an attribute may have dots.
        return named.get(path[0] if len(path) == 1 else ".".join(path))

    def _in_contents(self, path: tuple[str, ...]) -> Value:
        found = self._parsed
        if found is _NOT_READ:
            found = self._parsed = parse_json(self._contents)
        for name in path:
            if type(found) is not dict:
                return None
            found = found.get(name)
        return found


def parse_json(contents: bytes) -> Any:
    """The value; None if it is no JSON, or too large."""
    if not contents or len(contents) > FILTER_CONTENTS_BYTES_MAX:
        return None
    try:
        return json.loads(contents.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
