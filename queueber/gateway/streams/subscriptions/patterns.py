"""Patterns of stream paths: `*` is one segment, `**` any number of them, also none."""

import re
import secrets

_ANY = "**"
_ONE = "*"
_PATH = re.compile(r"[A-Za-z0-9._/-]{1,255}")

_SEGMENTS_MAX = 32
"""Of a pattern. Each costs time for every path that is looked at."""


def to_pattern(text: str) -> str | None:
    """The pattern without slashes at its ends; None: it is not one."""
    pattern = text.strip("/")
    segments = pattern.split("/")
    if not pattern or len(segments) > _SEGMENTS_MAX or len(pattern) > 255 or "" in segments:
        return None
    for segment in segments:
        if segment not in (_ANY, _ONE) and not _PATH.fullmatch(segment):
            return None
    return pattern


def matches(pattern: str, path: str) -> bool:
    """Takes time in proportion to the segments of the pattern times those of the path."""
    segments = path.split("/")
    # For each number of segments: whether the pattern so far matches so many from the left.
    reached = [True, *(False for _ in segments)]
    for wanted in pattern.split("/"):
        if wanted == _ANY:
            first = reached.index(True) if True in reached else len(reached)
            reached = [at >= first for at in range(len(reached))]
        else:
            reached = [
                False,
                *(
                    before and wanted in (_ONE, segment)
                    for before, segment in zip(reached, segments, strict=False)
                ),
            ]
    return reached[-1]


def fixed_prefix(pattern: str) -> str:
    """What every path that matches begins with."""
    fixed: list[str] = []
    for segment in pattern.split("/"):
        if segment in (_ANY, _ONE):
            break
        fixed.append(segment)
    # `a/**` matches `a` itself.
    return "/".join(fixed)


def samples(pattern: str) -> list[str]:
    """Paths that match and that nobody has: who may read these may read all that match."""
    found = []
    for count in (1, 3) if _ANY in pattern.split("/") else (1,):
        segments: list[str] = []
        for segment in pattern.split("/"):
            match segment:
                case "*":
                    segments.append(secrets.token_hex(8))
                case "**":
                    segments.extend(secrets.token_hex(8) for _ in range(count))
                case _:
                    segments.append(segment)
        found.append("/".join(segments)[:255])
    return found
