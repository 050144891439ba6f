"""Cap'n Proto messages as the other side gets them."""

from typing import Any

from queueber.schema import wire


def sent(message: Any) -> Any:
    """The message as the other side reads it."""
    struct = getattr(wire, message.schema.node.displayName.rpartition(":")[2])
    return struct.from_bytes_packed(message.to_bytes_packed())
