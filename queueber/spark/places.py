"""Places in the partitions of a topic, as the options of a read say them.

A place is `earliest`, `latest`, a time, or an offset for each partition, as for Kafka's source:
`{"0": 5, "1": -2}`, where -2 is the earliest and -1 the latest.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from queueber.client.arguments.positions import to_time_ms
from queueber.errors import InvalidArgument
from queueber.limits import TOPIC_PARTITIONS_MAX
from queueber.model import Position, Start

EARLIEST = Position(Start.EARLIEST)
LATEST = Position(Start.LATEST)

_WORDS = {"earliest": EARLIEST, "latest": LATEST}
_NUMBERS = {-2: EARLIEST, -1: LATEST}
_HOW = (
    "give earliest, latest, a time such as 2026-01-31T12:00:00Z, or offsets of partitions such as "
    '{"0": 5, "1": "latest"}'
)


@dataclass(frozen=True, slots=True)
class Places:
    """A place in each partition."""

    others: Position
    """That of the partitions that are not named."""
    named: Mapping[int, Position] = field(default_factory=dict)

    def of(self, partition: int) -> Position:
        return self.named.get(partition, self.others)

    @property
    def all(self) -> list[Position]:
        return [self.others, *self.named.values()]


def to_places(given: Mapping[str, str], offsets: str, timestamp: str, default: Position) -> Places:
    """The value of the option `offsets`, or that of `timestamp`, which is a time in ms."""
    text, time = given.get(offsets.lower()), given.get(timestamp.lower())
    if text is not None and time is not None:
        raise InvalidArgument(f"option {timestamp!r}: there is {offsets!r} too; give one of them")
    if time is not None:
        if not time.strip().isdecimal() or int(time) >= 1 << 53:
            raise InvalidArgument(f"option {timestamp!r}: {time!r} is not a time in ms since 1970")
        return Places(Position(Start.TIME, int(time)))
    if text is None:
        return Places(default)
    if text.lstrip().startswith("{"):
        return Places(default, _named(offsets, text))
    return Places(_to_position(offsets, text))


def _named(option: str, text: str) -> dict[int, Position]:
    try:
        listed = json.loads(text)
    except ValueError as error:
        raise InvalidArgument(f"option {option!r}: {text!r} is not JSON ({error})") from None
    named: dict[int, Position] = {}
    for partition, place in listed.items():
        if not partition.isdecimal() or int(partition) >= TOPIC_PARTITIONS_MAX:
            raise InvalidArgument(
                f"option {option!r}: {partition!r} is not the number of a partition; {_HOW}"
            )
        named[int(partition)] = _to_position(option, place)
    return named


def _to_position(option: str, place: object) -> Position:
    if isinstance(place, int) and not isinstance(place, bool):
        if place in _NUMBERS:
            return _NUMBERS[place]
        if 0 <= place < 1 << 63:
            return Position(Start.OFFSET, place)
    if isinstance(place, str):
        word = place.strip().lower()
        if word in _WORDS:
            return _WORDS[word]
        time = _to_time(place.strip())
        if time is not None:
            return Position(Start.TIME, to_time_ms(f"option {option!r}", time))
    raise InvalidArgument(f"option {option!r}: {place!r} is no place in a topic; {_HOW}")


def _to_time(text: str) -> datetime | None:
    # Python reads "20260131" as a day too, which is more likely a wrong offset.
    if "-" not in text:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
