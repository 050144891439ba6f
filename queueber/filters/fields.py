"""Fields: what a filter may ask of an item or a message, and the kinds of their values."""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol

Value = object
"""A text, a number, a truth value; None if there is none. Anything else, such as a list, is
there but equals nothing."""


class Room(Enum):
    """Where a field is."""

    ITEM = "item"
    ATTRIBUTES = "attributes"
    CONTENTS = "contents"


class Field(NamedTuple):
    room: Room
    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join([self.room.value, *map(_shown, self.path)])


def _shown(name: str) -> str:
    is_plain = name.isascii() and name.isidentifier()
    return name if is_plain else '"' + name.replace('"', '""') + '"'


class View(Protocol):
    """What a filter is applied to."""

    def value(self, field: Field) -> Value:
        """The value of a field; None if it has none."""


Operand = Callable[[View], Value]
"""The value of a field, or a literal."""


def field_of(names: list[str]) -> Field:
    """The field of names with dots between them."""
    rooms = {each.value: each for each in Room}
    room = rooms.get(names[0].lower())
    if room is None or len(names) == 1:
        return Field(Room.CONTENTS, tuple(names))
    return Field(room, tuple(names[1:]))
