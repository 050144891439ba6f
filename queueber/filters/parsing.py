"""Parse: a filter's text to a condition over fields, once."""

from typing import Any

from queueber.errors import InvalidArgument
from queueber.filters.conditions import Condition
from queueber.filters.fields import Field, Room, View
from queueber.limits import FILTER_CHARS_MAX, FILTER_DEPTH_MAX, FILTER_FIELDS_MAX


class Filter:
    """A parsed condition."""

    __slots__ = ("_holds", "fields", "text")

    def __init__(self, text: str, condition: Condition) -> None:
        self.text = text
        self.fields = condition.fields
        """The fields that it asks for."""
        self._holds = condition.holds

    def matches(self, view: View) -> bool:
        """Whether the condition is true; what is unknown is not."""
        return self._holds(view) is True

    @property
    def reads_contents(self) -> bool:
        return any(each.room is Room.CONTENTS for each in self.fields)


def parse_filter(text: str, argument: str = "where") -> Filter:
    """Raises `InvalidArgument`, which says where the text is wrong; `argument` is what it names."""
    condition: Condition = _parse("condition", text, argument)
    if condition.depth > FILTER_DEPTH_MAX:
        raise InvalidArgument(
            f"{argument}: conditions are nested {condition.depth} deep; the limit is "
            f"{FILTER_DEPTH_MAX}"
        )
    return Filter(text, condition)


def parse_fields(text: str, argument: str = "partition_by") -> tuple[Field, ...]:
    """The fields of a list with commas, with or without parentheses around it."""
    fields: tuple[Field, ...] = _parse("fields", text, argument)
    if len(fields) > FILTER_FIELDS_MAX:
        raise InvalidArgument(
            f"{argument} has {len(fields)} fields; the limit is {FILTER_FIELDS_MAX}"
        )
    return fields


def _parse(rule: str, text: str, argument: str) -> Any:
    if len(text) > FILTER_CHARS_MAX:
        raise InvalidArgument(
            f"{argument} has {len(text)} characters; the limit is {FILTER_CHARS_MAX}"
        )
    # Every program imports this module, and few parse a filter.
    from queueber.filters.grammar import Unreadable, read

    try:
        return read(rule, text)
    except Unreadable as error:
        raise InvalidArgument(f"{argument}: {error}") from None
