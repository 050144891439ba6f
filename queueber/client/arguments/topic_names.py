"""Names of topics and groups."""

import re

from queueber.client.arguments.values import to_text
from queueber.errors import InvalidArgument
from queueber.limits import GROUP_NAME_BYTES_MAX, TOPIC_NAME_BYTES_MAX

_TOPIC_NAME = re.compile(r"[A-Za-z0-9._/-]+")


def to_topic_name(name: object, field: str = "topic") -> str:
    if (
        not isinstance(name, str)
        or not _TOPIC_NAME.fullmatch(name)
        or len(name) > TOPIC_NAME_BYTES_MAX
    ):
        raise InvalidArgument(
            f"{field}: {name!r} is not the name of a topic; use 1 to {TOPIC_NAME_BYTES_MAX} "
            "letters, digits, dots, dashes, underscores and slashes, all ASCII"
        )
    return name


def to_group_name(name: object, field: str = "group") -> str:
    return to_text(field, name, GROUP_NAME_BYTES_MAX, is_needed=True)
