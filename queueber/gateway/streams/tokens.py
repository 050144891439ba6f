"""Tokens of offsets: two numbers of 16 digits, so tokens have the order of what they name.

The second is the offset of a message of the topic. The first, the origin, is the same for a topic
and its forks, and another one for a topic that was deleted and created again: a token of the old
one is recognised. In requests origin 0 stands for any.
"""

import re
from dataclasses import dataclass

from queueber.gateway.problems import Problem, invalid, of_http
from queueber.model import Position, Start

START = "-1"
NOW = "now"
_TOKEN = re.compile(r"([0-9]{16})_([0-9]{16})")
_SHOWN_CHARS = 60


def token(origin: int, offset: int) -> bytes:
    return b"%016d_%016d" % (origin, offset)


def split_token(text: str) -> tuple[int, int] | None:
    """Origin and offset of a token; None: it is none of ours."""
    found = _TOKEN.fullmatch(text)
    return None if found is None else (int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a stream a caller wants to begin."""

    position: Position
    origin: int = 0
    """0: whatever the stream's is."""

    @property
    def is_now(self) -> bool:
        return self.position.start is Start.LATEST

    @property
    def offset(self) -> int:
        return self.position.value

    def check_origin(self, origin: int) -> None:
        """Raise a `Problem` if the place is one of a stream that is gone."""
        if self.origin not in (0, origin):
            raise gone("offset: it is one of a stream that was deleted; begin again with -1")


def to_place(text: str) -> Place:
    """What an offset names; raises a `Problem` if it is no offset of ours."""
    if text == START:
        return Place(Position(Start.EARLIEST))
    if text == NOW:
        return Place(Position(Start.LATEST))
    return to_offset("offset", text)


def to_offset(argument: str, text: str) -> Place:
    """As `to_place`, without the words."""
    found = split_token(text)
    if found is None:
        raise invalid(
            f"{argument}: {text[:_SHOWN_CHARS]!r} is no offset that a stream of this server has "
            f"told; begin with {START}, or follow from {NOW} on"
        )
    return Place(Position(Start.OFFSET, found[1]), found[0])


def gone(detail: str) -> Problem:
    return of_http(410, detail)
