"""The arguments of a callback, checked before a call is made."""

from queueber.client.arguments.new_items import to_mapping
from queueber.client.arguments.values import to_name, to_number, to_text
from queueber.errors import InvalidArgument
from queueber.limits import KEY_BYTES_MAX, PRIORITY_MAX
from queueber.model import NO_OPTIONS, Callback, ItemOptions


def to_callback(
    to: object,
    contents: object,
    key: object,
    priority: object,
    attributes: object,
    options: ItemOptions = NO_OPTIONS,
) -> Callback:
    if not isinstance(contents, bytes):
        raise InvalidArgument(f"contents: {contents!r} is not bytes; a callback adds one item")
    return Callback(
        to_name(to),
        contents,
        "" if key is None else to_text("key", key, KEY_BYTES_MAX, is_needed=True),
        to_number("priority", priority, limit=PRIORITY_MAX),
        {} if attributes is None else to_mapping(attributes),
        options,
    )
