"""DuckDB with nothing in it: no files, no network, no settings to change, one thread."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from queueber.errors import Internal, InvalidArgument, QueueberError, ResourceExhausted
from queueber.sql.select.columns import BODIES, JSON, JSON_TEXTS, TABLES, TEXT, sent_columns
from queueber.sql.select.engine.allowed import check_tree
from queueber.sql.select.engine.frames import NO_MEMORY
from queueber.sql.select.engine.statement import Statement, written
from queueber.sql.select.needs import Need

_ROWS_TOGETHER = 2048
_INTEGERS = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
}  # fmt: skip
_TIMES = {"VARCHAR", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"}
_CONFIG = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "temp_directory": "",
    "threads": "1",
}
_ROWS = "rows_of"
_FOREIGN = re.compile(r"\b(ENUM|BIGNUM|VARIANT|GEOMETRY|TIME WITH TIME ZONE)\b")
"""Types that Arrow does not have: their values would come as something else."""
_QUOTED = re.compile(r"'[^']*'|" + r'"[^"]*"')
_TOO_DEEP = "sql: is nested too deeply"
_NAME_CHARS_MAX = 100
"""Of a column, in an error about it."""


class Database:
    def __init__(self, memory_bytes: int) -> None:
        self._connection = duckdb.connect(
            ":memory:", config={**_CONFIG, "memory_limit": f"{memory_bytes >> 10}KiB"}
        )
        for setting in (
            "python_enable_replacements = false",  # else a table may be a variable of ours
            "TimeZone = 'UTC'",
            "lock_configuration = true",
        ):
            self._connection.execute(f"SET {setting}")
        views = self._connection.execute("SELECT view_name FROM duckdb_views()").fetchall()
        self.own_names = frozenset(name.casefold() for (name,) in views)
        """Names that mean something here already."""
        self.is_broken = False
        """Whether a statement has damaged it: nothing can be asked of it any more."""

    # --- before there are rows --------------------------------------------------------------------

    def check(self, statement: Statement) -> None:
        """Refuse a statement that has more in it than a query may, or that fits no columns."""
        text = statement.sql
        serialized = self._rows("SELECT json_serialize_sql(?)", [text])[0][0]
        found = json.loads(serialized)
        if found["error"]:
            raise InvalidArgument(f"sql: {found.get('error_message', 'cannot be read')}")
        own = {each.private for each in statement.tables}
        check_tree(found["statements"], own | set(statement.ctes))

    def constant(self, node: exp.Expr, is_time: bool) -> int | str | None:
        """The value of an expression without columns; a time as microseconds since 1970."""
        text = written(node)
        try:
            ((kind, value),) = self._rows(f"SELECT typeof({text}), CAST({text} AS VARCHAR)")
            if not is_time:
                if kind in _INTEGERS and value is not None:
                    return int(value)
                return value if kind == "VARCHAR" else None
            if kind not in _TIMES:
                return None
            ((micros,),) = self._rows(f"SELECT epoch_us(TRY_CAST({text} AS TIMESTAMPTZ))")
        except duckdb.Error:
            return None  # the statement itself will say what is wrong
        return None if micros is None else int(micros)

    def _rows(self, text: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(text, parameters).fetchall()

    # --- tables and answers -----------------------------------------------------------------------

    def put(self, need: Need, batches: Sequence[pa.RecordBatch]) -> None:
        """A table with these rows, of the columns that are needed."""
        names = sent_columns(need.kind, need.columns)
        schema = pa.schema([TABLES[need.kind].field(name) for name in names])
        rows = pa.Table.from_batches(batches, schema)
        self._connection.register(_ROWS + need.table, rows)
        columns = ", ".join(_column(need.kind, name) for name in need.columns)
        self._connection.execute(
            f'CREATE TEMP VIEW "{need.table}" AS SELECT {columns} FROM "{_ROWS}{need.table}"'
        )

    def clear(self, needs: Sequence[Need]) -> None:
        """Drop these tables; a broken database keeps them."""
        try:
            for need in needs:
                self._connection.execute(f'DROP VIEW IF EXISTS "{need.table}"')
                self._connection.unregister(_ROWS + need.table)
        except duckdb.FatalException:  # told is what broke it, not that it is broken
            self.is_broken = True

    def bind(self, statement: Statement) -> list[tuple[str, str]]:
        """The names and types of the answer's columns."""
        relation = self._connection.sql(statement.sql)
        names, kinds = _distinct(relation.columns), [str(kind) for kind in relation.types]
        for name, kind in zip(names, kinds, strict=True):
            if foreign := _FOREIGN.search(_QUOTED.sub("", kind)):
                raise InvalidArgument(
                    f"sql: column {name[:_NAME_CHARS_MAX]!r} is of type {foreign[0]}, which "
                    "cannot be answered with; cast it to VARCHAR"
                )
        return list(zip(names, kinds, strict=True))

    def run(self, statement: Statement) -> Iterator[pa.RecordBatch]:
        relation = self._connection.sql(statement.sql)
        yield from relation.to_arrow_reader(_ROWS_TOGETHER)


def _distinct(names: Sequence[str]) -> list[str]:
    """`offset`, `offset_1`: rows are often read by the names of their columns."""
    taken = set(names)
    met: dict[str, int] = {}
    found = []
    for name in names:
        number = met.get(name, -1) + 1
        while number and f"{name}_{number}" in taken:
            number += 1
        met[name] = number
        found.append(f"{name}_{number}" if number else name)
    return found


def _column(kind: str, name: str) -> str:
    quoted, body = f'"{name}"', BODIES.get(kind)
    decoded = f'TRY(decode("{body}"))'
    if body is not None and name == TEXT:
        return f"{decoded} AS {quoted}"
    if body is not None and name == JSON:
        return f"CASE WHEN json_valid({decoded}) THEN CAST({decoded} AS JSON) END AS {quoted}"
    return f"CAST({quoted} AS JSON) AS {quoted}" if name in JSON_TEXTS else quoted


def as_error(error: BaseException) -> QueueberError:
    """What went wrong, in one sentence."""
    text = str(error).split("\n\nLINE ", 1)[0].split("\n\nPossible solutions", 1)[0]
    text = " ".join(text.split())[:600]
    kind, _, told = text.partition(": ")
    match error:
        case QueueberError():
            return error
        case MemoryError() | duckdb.OutOfMemoryException():
            return ResourceExhausted(NO_MEMORY)
        case OSError() if "Out of Memory" in text:  # while values become those of Arrow
            return ResourceExhausted(NO_MEMORY)
        case RecursionError():
            return InvalidArgument(_TOO_DEEP)
        case duckdb.ParserException() if "Max expression depth" in text:
            return InvalidArgument(_TOO_DEEP)
        case duckdb.InternalException() | duckdb.FatalException():
            return InvalidArgument(f"values: the query engine fails: {_brief(told or text)}")
        case duckdb.Error():
            # Of what is stored or given, or of the statement.
            about = "values" if isinstance(error, _OF_VALUES) else "sql"
            told = _with_hint(told if kind.endswith("Error") else text)
            return InvalidArgument(f"{about}: {told}")
    return Internal(f"the query engine failed: {type(error).__name__}: {text}")


def leaves_whole(error: BaseException) -> bool:
    """Whether the error is one of a statement alone, after which others can be asked."""
    if isinstance(error, _BREAKING):
        return False
    return isinstance(error, (QueueberError, duckdb.Error))


_OF_VALUES = (duckdb.DataError, duckdb.InvalidInputException)
_BREAKING = (duckdb.InternalException, duckdb.FatalException, duckdb.OutOfMemoryException)


def _brief(text: str) -> str:
    """Without what is for its developers: where it was, and that they would like to know."""
    text = text.partition(" Stack Trace:")[0].partition(" This error signals")[0]
    return text.rpartition("must call SetFallible(). Error: ")[2]


def _with_hint(text: str) -> str:
    if "BLOB" in text and ("->>" in text or "json" in text.casefold()):
        return f"{text}; the columns text and json have the same as text and as JSON"
    return text
