"""What users pass, turned into what calls take. Seconds become milliseconds here."""

from collections.abc import Iterable, Sequence

from queueber.errors import InvalidArgument
from queueber.limits import ID_BYTES, SECOND_MS
from queueber.model import QueueSettings

Contents = bytes | Iterable[bytes]
Delay = float | Sequence[float]


def to_ms(field: str, seconds: object) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 1e12:
        raise InvalidArgument(f"{field}: {seconds!r} is not a number of seconds, 0 or more")
    return round(seconds * SECOND_MS)


def to_lease_ms(seconds: float) -> int:
    """A lease that rounds to nothing is still the shortest one there is, unless it is 0."""
    return max(to_ms("lease", seconds), 1) if seconds else 0


def to_contents(contents: object) -> list[bytes]:
    if isinstance(contents, bytes | bytearray | memoryview):
        return [bytes(contents)]
    if isinstance(contents, str):
        raise InvalidArgument("contents: str is text; encode it to bytes first")
    if not isinstance(contents, Iterable):
        raise InvalidArgument(f"contents: {contents!r} is neither bytes nor a list of them")
    listed = list(contents)
    for at, each in enumerate(listed):
        if not isinstance(each, bytes):
            if not isinstance(each, bytearray | memoryview):
                raise InvalidArgument(
                    f"contents: item {at} is {type(each).__name__}; it must be bytes"
                )
            listed[at] = bytes(each)
    if not listed:
        raise InvalidArgument("contents: there are none; add at least one item")
    return listed


def to_delays_ms(delay: object, count: int) -> list[int]:
    """One for each item, or none at all when nothing is delayed."""
    if isinstance(delay, int | float):
        delay_ms = to_ms("delay", delay)
        return [delay_ms] * count if delay_ms else []
    if not isinstance(delay, Iterable):
        raise InvalidArgument(f"delay: {delay!r} is neither seconds nor a list of them")
    delays_ms = [to_ms("delay", each) for each in delay]
    if len(delays_ms) != count:
        raise InvalidArgument(
            f"delay: {len(delays_ms)} delays for {count} items; give one for each"
        )
    return delays_ms


def to_count(count: object) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count < 1 << 32:
        raise InvalidArgument(f"count: {count!r} is not a number of items, 1 or more")
    return count


def to_ids(field: str, ids: bytes | Iterable[bytes]) -> list[bytes]:
    return [to_id(field, each) for each in ([ids] if isinstance(ids, bytes) else ids)]


def to_id(field: str, given: object) -> bytes:
    if not isinstance(given, bytes) or len(given) != ID_BYTES:
        raise InvalidArgument(f"{field}: {given!r} is not an id of {ID_BYTES} bytes")
    return given


def to_name(name: object) -> str:
    """What may be a queue's name as far as the wire is concerned; the server knows the rule."""
    if not isinstance(name, str) or not name.isascii():
        raise InvalidArgument(f"name: {name!r} is not a queue name")
    return name


def to_settings(**limits: object) -> QueueSettings:
    checked: dict[str, int] = {}
    for field, limit in limits.items():
        if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit < 1 << 63:
            raise InvalidArgument(f"{field}: {limit!r} is not a number, 0 or more")
        checked[field] = limit
    return QueueSettings(**checked)
