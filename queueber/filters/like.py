"""LIKE: `%` is any text, `_` any character. The cost grows with text times pattern, no faster."""

import re

from queueber.limits import FILTER_LIKE_CHARS_MAX


class Pattern:
    """A pattern, cut at each `%`. The pieces have fixed lengths, so the first place where one
    matches is as good as any other, and nothing is tried twice."""

    __slots__ = ("_first", "_last", "_middle", "_shortest")

    def __init__(self, text: str, escape: str = "") -> None:
        """Raises `ValueError` if the pattern ends with the escape character."""
        pieces = _pieces(text, escape)
        self._shortest = sum([length for _, length in pieces])
        self._first = pieces[0]
        self._last = pieces[-1] if len(pieces) > 1 else None
        self._middle = [piece for piece, length in pieces[1:-1] if length]

    def matches(self, text: str) -> bool | None:
        """None, which is unknown, if the text is longer than a filter may look at."""
        if len(text) > FILTER_LIKE_CHARS_MAX:
            return None
        first, length = self._first
        if self._last is None:
            return len(text) == length and first.match(text) is not None
        if len(text) < self._shortest or first.match(text) is None:
            return False
        at = length
        last, length = self._last
        end = len(text) - length
        for piece in self._middle:
            found = piece.search(text, at, end)
            if found is None:
                return False
            at = found.end()
        return last.match(text, end) is not None


def _pieces(text: str, escape: str) -> list[tuple[re.Pattern[str], int]]:
    """What is between the `%`: a regular expression, and how many characters it matches."""
    pieces: list[list[str]] = [[]]
    characters = iter(text)
    for each in characters:
        if escape and each == escape:
            literal = next(characters, None)
            if literal is None:
                raise ValueError("the pattern ends with its escape character")
            pieces[-1].append(re.escape(literal))
        elif each == "%":
            pieces.append([])
        else:
            pieces[-1].append("." if each == "_" else re.escape(each))
    return [(re.compile("".join(piece), re.DOTALL), len(piece)) for piece in pieces]
