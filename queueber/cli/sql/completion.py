"""What can come next in a statement: the parser itself says which words, the server which names."""

from collections.abc import Callable, Iterator
from itertools import islice

from lark.exceptions import UnexpectedInput

from queueber import Client, clock
from queueber.errors import QueueberError
from queueber.sql.parser import grammar
from queueber.sql.printer import name as quoted
from queueber.sql.printer import text as quoted_text
from queueber.sql.system_tables import SYSTEM_TABLES

_KEEP_SECONDS = 5.0
"""How long names of the server are offered before they are asked for again."""
_NAMES_MAX = 1_000
_CHARS_MAX = 10_000
"""Beyond that nothing is offered: parsing would be felt at each key."""

_OF_QUERIES = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET", "JOIN",
    "LEFT JOIN", "ON", "USING", "AS", "AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "BETWEEN",
    "CASE", "WHEN", "THEN", "ELSE", "END", "DISTINCT", "UNION ALL", "WITH", "COUNT", "SUM", "MIN",
    "MAX", "AVG", "ASC", "DESC",
)  # fmt: skip
_IN_QUERIES = "RAW"
_NAME = "NAME"
_SETTING = "WORD"


class Names:
    """The names of topics and queues, asked for again when they are old."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._topics: list[str] = []
        self._queues: list[str] = []
        self._asked_at = -_KEEP_SECONDS

    def topics(self) -> list[str]:
        self._refresh()
        return self._topics

    def queues(self) -> list[str]:
        self._refresh()
        return self._queues

    def _refresh(self) -> None:
        if clock.seconds() < self._asked_at + _KEEP_SECONDS:
            return
        self._asked_at = clock.seconds()
        try:
            self._topics = list(islice(self._client.topics(), _NAMES_MAX))
            self._queues = [each.name for each in self._client.queues()][:_NAMES_MAX]
        except QueueberError:
            return  # a statement will say what is wrong


def candidates(text: str, names: Names) -> Iterator[str]:
    """What may follow a text whose last word is complete."""
    if len(text) > _CHARS_MAX:
        return
    try:
        parsing = grammar().parse_interactive(text)
        read = [token.type for token in parsing.exhaust_lexer()]
        accepted: set[str] = parsing.accepts()  # type: ignore[no-untyped-call]
    except UnexpectedInput:
        return
    is_query = _IN_QUERIES in accepted and "_WHERE" not in read
    if is_query:
        yield from _OF_QUERIES
        yield from SYSTEM_TABLES
        yield from (f"topic({quoted_text(each)})" for each in names.topics())
        yield from (
            f"{table}({quoted_text(each)})"
            for table in ("queue", "results", "dead")
            for each in names.queues()
        )
        return
    yield from sorted(_word(each) for each in accepted if _is_word(each))
    if _NAME in accepted:
        yield from map(quoted, _named(read, names)())
    if _SETTING in accepted and "_EQUALS" not in read[-1:]:
        yield from _settings(read)


def _named(read: list[str], names: Names) -> Callable[[], list[str]]:
    """Which names can come after these tokens."""
    last = read[-1] if read else ""
    if last == "_SOURCE":
        return names.queues
    if last in ("_GROUP", "QUEUE", "TABLE"):
        found = {"QUEUE": names.queues, "TABLE": lambda: list(SYSTEM_TABLES)}
        return found.get(last, lambda: [])
    if last in ("_DESCRIBE", "_DESC"):
        return lambda: [*SYSTEM_TABLES, *names.topics(), *names.queues()]
    return names.topics


def _settings(read: list[str]) -> list[str]:
    from queueber.sql.settings import CREATED, RETENTION, SOURCE

    if "_SOURCE" in read:
        return sorted(SOURCE.settings)
    return sorted((RETENTION if "_RETENTION" in read else CREATED).settings)


def _is_word(terminal: str) -> bool:
    return terminal.lstrip("_").isalpha() and terminal.lstrip("_") not in _NOT_WORDS


def _word(terminal: str) -> str:
    return terminal.lstrip("_")


_NOT_WORDS = {
    "NAME", "WORD", "QUOTED", "BACKTICKED", "STRING", "ESCAPED", "DOLLARS", "PARAM", "NUMBER",
    "RAW", "LPAR", "RPAR", "SEMICOLON", "COMMA", "EQUALS", "DOT", "DESC", "END",
}  # fmt: skip
"""Terminals that stand for more than one word."""
