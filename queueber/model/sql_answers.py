"""Values of SQL: what statements answer with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """A column of an answer."""

    name: str
    type: str
    """As DuckDB has it, such as `VARCHAR` or `BIGINT`."""


@dataclass(frozen=True, slots=True)
class StatementResult:
    """What one statement answers with: rows, or a message, or both."""

    columns: Sequence[SqlColumn] = ()
    """Without columns there are no rows."""
    rows: Sequence[Sequence[Any]] = ()
    row_count: int = 0
    """How many rows there are; of a statement that changes something, what it changed."""
    message: str = ""

    def dicts(self) -> list[dict[str, Any]]:
        """The rows, each with its values by the names of columns."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class SqlAnswer:
    """What a call of `client.sql` answers with: the last statement's rows, and those before."""

    results: Sequence[StatementResult] = field(default_factory=tuple)
    """One for each statement, in order."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the last statement."""
        return [column.name for column in self.results[-1].columns]

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.results[-1].rows]

    @property
    def message(self) -> str:
        return self.results[-1].message

    def dicts(self) -> list[dict[str, Any]]:
        """The rows of the last statement, each with its values by the names of columns."""
        return self.results[-1].dicts()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.results[-1].rows)
