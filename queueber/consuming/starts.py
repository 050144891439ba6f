"""Where a consumer begins, in the words of KalamDB: Latest, Earliest or an offset."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from queueber.errors import InvalidArgument

OFFSET_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Start:
    at: int | Literal["earliest", "latest"] = "latest"


LATEST = Start("latest")
EARLIEST = Start("earliest")

_FORMS = 'give "Latest", "Earliest" or {"Offset": n}'


def read_start(given: object) -> Start:
    """The start that JSON or SQL names, in any letter case; None is the latest."""
    match given:
        case None:
            return LATEST
        case str() if given.strip().lower() in ("latest", "earliest"):
            return LATEST if given.strip().lower() == "latest" else EARLIEST
        case bool():
            pass
        case int():
            return Start(_offset(given))
        case Mapping() if len(given) == 1:
            name, value = next(iter(given.items()))
            is_number = isinstance(value, int) and not isinstance(value, bool)
            if str(name).lower() == "offset" and is_number:
                return Start(_offset(value))
    raise InvalidArgument(f"start: {given!r} is no start; {_FORMS}")


def _offset(value: int) -> int:
    if not 0 <= value <= OFFSET_MAX:
        raise InvalidArgument(f"start: offset {value} is outside 0 to {OFFSET_MAX}")
    return value
