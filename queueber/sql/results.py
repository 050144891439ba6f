"""Makes the answers of statements."""

from collections.abc import Sequence
from typing import Any

from queueber.model.sql_answers import SqlAnswer, SqlColumn, StatementResult

__all__ = ["SqlAnswer", "SqlColumn", "StatementResult", "message_of", "rows_of", "size_of"]


def rows_of(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> StatementResult:
    """An answer with rows; columns are pairs of name and type."""
    return StatementResult([SqlColumn(*each) for each in columns], rows, len(rows))


def message_of(text: str, changed: int = 0) -> StatementResult:
    return StatementResult(message=text, row_count=changed)


def size_of(row: Sequence[Any]) -> int:
    """About how many bytes the values have."""
    return sum(len(each) if isinstance(each, str | bytes | list | dict) else 8 for each in row)
