"""What a server refuses, in the words of the Python API.

Servers name the fields of the wire schema. Callers know arguments, so the field at the beginning of
a message is replaced by the argument that it came from.
"""

import re

from queueber.errors import Internal, QueueberError, from_wire

_FIELD = re.compile(r"[A-Za-z.]+(?=: )")
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")

_ARGUMENTS = {
    "numItems": "count",
    "leaseValidity": "lease",
    "visibilityTimeout": "delay",
    "delaysMs": "delay",
    "errors": "error",
    "items": "contents",
    "forMs": "seconds",
    "timeoutMs": "timeout",
    "producer.id": "producer",
    "producer.epoch": "epoch",
    "producer.sequence": "sequence",
    "leases": "lease",
}
"""Other fields have the same name in Python, written with underscores."""


def error_of(wire_text: str) -> QueueberError:
    """The error that a server sent."""
    error = from_wire(wire_text)
    text = str(error)
    field = _FIELD.match(text)
    if field is None or isinstance(error, Internal):
        return error
    argument = _ARGUMENTS.get(field[0]) or _CAPITAL.sub(r"_\1", field[0]).lower()
    return type(error)(argument + text[field.end() :])
