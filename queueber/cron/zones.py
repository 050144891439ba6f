"""Time zones by name, as the IANA database has them."""

from zoneinfo import ZoneInfo

from queueber.errors import InvalidArgument

_NAME_CHARS_MAX = 64


def to_zone(name: str, field: str = "zone") -> ZoneInfo:
    """Raises `InvalidArgument` if there is no such zone."""
    if name and len(name) <= _NAME_CHARS_MAX:
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):  # unknown; a path; a folder of zones
            pass
    raise InvalidArgument(
        f"{field}: {name[:_NAME_CHARS_MAX]!r} is no time zone; give a name of the IANA database, "
        "such as Europe/Berlin or UTC"
    )
