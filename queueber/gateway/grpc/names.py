"""Names and ids as clients of Sluice write them."""

import re
from uuid import UUID

from queueber.errors import InvalidArgument
from queueber.limits import TOPIC_NAME_BYTES_MAX

DEFAULT_GROUP = "default"
_TOPIC = re.compile(r"[A-Za-z0-9._-]+")


def is_topic_name(name: str) -> bool:
    """Whether clients can name a topic: those with slashes are streams, or results of queues."""
    return len(name) <= TOPIC_NAME_BYTES_MAX and _TOPIC.fullmatch(name) is not None


def check_topic_name(name: str) -> str:
    if not name:
        raise InvalidArgument("topic: it is empty; name one")
    if not is_topic_name(name):
        shown = name if len(name) <= TOPIC_NAME_BYTES_MAX else name[:40] + "..."
        raise InvalidArgument(
            f"topic: {shown!r} has {len(name)} characters; use 1 to {TOPIC_NAME_BYTES_MAX} "
            "letters, digits, dashes, underscores and dots, all ASCII"
        )
    return name


def message_id_text(message_id: bytes) -> str:
    """The UUID of 16 bytes; that of the library takes three times as long."""
    digits = message_id.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def message_id_of(text: str) -> bytes | None:
    """The 16 bytes of a UUID; None if the text is none, which no message has."""
    try:
        return UUID(text).bytes
    except ValueError:
        return None
