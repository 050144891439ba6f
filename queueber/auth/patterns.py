"""Patterns of names, in which `*` stands for any text, also for none."""

from queueber.errors import InvalidArgument
from queueber.limits import PATTERN_BYTES_MAX

EVERYTHING = "*"


def matches(pattern: str, name: str) -> bool:
    """Takes time in proportion to the name for each star, whatever the pattern is."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    *middle, last = rest
    if not name.startswith(first):
        return False
    at, end = len(first), len(name) - len(last)
    if at > end or not name.endswith(last):
        return False
    # The leftmost place of each part leaves the most for those after it.
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def fixed_prefix(pattern: str) -> str:
    """What every name that matches begins with."""
    return pattern.partition("*")[0]


def check_pattern(pattern: object, field: str) -> str:
    if not isinstance(pattern, str) or not pattern:
        raise InvalidArgument(f"{field}: {pattern!r} is not a pattern, such as 'ocr-*'")
    size = len(pattern.encode(errors="replace"))
    if size > PATTERN_BYTES_MAX:
        raise InvalidArgument(f"{field}: has {size} bytes; the limit is {PATTERN_BYTES_MAX}")
    return pattern
