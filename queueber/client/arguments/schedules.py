"""The arguments of a schedule, checked before a call is made."""

from queueber.client.arguments.new_items import to_mapping
from queueber.client.arguments.values import to_name, to_number
from queueber.cron import parse_when, to_zone
from queueber.errors import InvalidArgument
from queueber.limits import PRIORITY_MAX, SCHEDULE_NAME_CHARS_MAX, WHEN_CHARS_MAX
from queueber.model import NO_OPTIONS, ItemOptions, Missed, Schedule


def to_schedule_name(name: object) -> str:
    """Text that can be sent; the server checks the rest of the rule."""
    if not isinstance(name, str) or not name.isascii():
        raise InvalidArgument(
            f"name: {name!r} is not the name of a schedule; use 1 to {SCHEDULE_NAME_CHARS_MAX} "
            "letters, digits, dots, dashes and underscores, all ASCII"
        )
    return name


def to_schedule(
    name: object,
    when: object,
    queue: object,
    contents: object,
    zone: object,
    missed: object,
    priority: object,
    attributes: object,
    options: ItemOptions = NO_OPTIONS,
) -> Schedule:
    if not isinstance(when, str) or not isinstance(zone, str):
        field, given = ("zone", zone) if isinstance(when, str) else ("when", when)
        raise InvalidArgument(f"{field}: {given!r} is not text; it must be str")
    if not when.isascii():
        raise InvalidArgument(f"when: {when[:WHEN_CHARS_MAX]!r} has characters that are not ASCII")
    parse_when(when)
    to_zone(zone)
    if not isinstance(contents, bytes):
        raise InvalidArgument(f"contents: {contents!r} is not bytes; a schedule has one item")
    return Schedule(
        to_schedule_name(name),
        when,
        to_name(queue),
        contents,
        zone,
        to_missed(missed),
        to_number("priority", priority, limit=PRIORITY_MAX),
        {} if attributes is None else to_mapping(attributes),
        options,
    )


def to_missed(missed: object) -> Missed:
    words = [each.value for each in Missed]
    if missed not in words:
        raise InvalidArgument(f"missed: {missed!r} is none of {', '.join(words)}")
    return Missed(missed)
