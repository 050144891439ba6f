"""Settings in statements: what `WITH (…)` may name, and what the client calls it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from lark import Token

from queueber.client.arguments.topic_settings import TopicArguments
from queueber.errors import InvalidArgument
from queueber.sql.errors import at

Read = Callable[[object], Any]

_OF_KALAMDB = {"retention_seconds": "retention", "retention_max_bytes": "retention_bytes"}
_NO_LIMIT = 0


def _number(value: object) -> Any:
    if value is None:
        return _NO_LIMIT
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isfinite(value) or value < 0:  # type: ignore[arg-type, operator]
        raise InvalidArgument("a number, 0 or more, or NULL for no limit")
    return value


def _switch(value: object) -> Any:
    if not isinstance(value, bool):
        raise InvalidArgument("TRUE or FALSE")
    return value


def _text(value: object) -> Any:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidArgument("a text, or NULL for none")
    return value


def _time(value: object) -> Any:
    if not isinstance(value, str):
        return _number(value)
    try:
        read = datetime.fromisoformat(value)
    except ValueError:
        raise InvalidArgument("a time such as '2026-11-18T09:00:00Z', or NULL") from None
    return (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp()


def _payload(value: object) -> Any:
    if not isinstance(value, str) or value.lower() not in ("key", "full", "diff"):
        raise InvalidArgument("'key', 'full' or 'diff'")
    return value.lower()


@dataclass(frozen=True, slots=True)
class Allowed:
    """The settings that a clause may name."""

    clause: str
    settings: Mapping[str, tuple[str, Read]]
    """By the word in the statement: the client's name, and how its value is read."""

    def read(self, word: Token, value: object) -> tuple[str, Any]:
        """The client's name of a setting, and its value."""
        line, column = word.line or 1, word.column or 1
        if word.lower() not in self.settings:
            names = ", ".join(sorted(self.settings))
            raise at(
                line, column, f"{str(word)!r} is no setting of {self.clause}; these are: {names}"
            )
        name, read = self.settings[word.lower()]
        try:
            return name, read(value)
        except InvalidArgument as error:
            raise at(line, column, f"{word} is {error.sentence}") from None


_READS: dict[str, Read] = {
    name: {"alias": _text, "content_type": _text, "expires_at": _time}.get(
        name, _switch if kind is bool else _number
    )
    for name, kind in TopicArguments.__annotations__.items()
}
_TOPIC = {name: (name, read) for name, read in _READS.items()}
_KALAMDB = {word: (name, _number) for word, name in _OF_KALAMDB.items()}
_RETENTIONS = ("retention", "retention_bytes", "retention_messages")

CREATED = Allowed("a topic", _TOPIC | _KALAMDB)
RETENTION = Allowed("retention", {name: _TOPIC[name] for name in _RETENTIONS} | _KALAMDB)
SOURCE = Allowed("a source", {"payload": ("payload", _payload)})
