"""A SELECT as it was written: one query, whose tables are ours.

What runs is never the text of the caller, but what was understood of it, written anew.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as its docs say

from queueber.errors import InvalidArgument, QueueberError
from queueber.limits import SELECT_TABLES_MAX
from queueber.sql.select.columns import NAMED, SYSTEM
from queueber.sql.select.engine.allowed import ROW_SOURCES
from queueber.sql.select.engine.dialect import DuckDBAsWritten
from queueber.sql.select.engine.literals import literal, time_literal

DIALECT = DuckDBAsWritten
PRIVATE = "_qb_"
"""What names of the engine's own tables begin with."""
_PIECES = re.compile(
    r"""--[^\n]*|/\*.*?\*/|\b[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|"""
    r"""\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$|(?P<number>\$\d+)(?=[^\s\d])""",
    re.DOTALL,
)
"""Comments, texts and quoted names, in which nothing is a parameter; and parameters."""
_WORD_CHARS_MAX = 40
"""Of the statement, in an error about it."""

_NOW = {"now", "get_current_timestamp", "transaction_timestamp"}
_HINT = "there are " + ", ".join([*(f"{name}('name')" for name in NAMED), *SYSTEM])


@dataclass(frozen=True, slots=True)
class Named:
    """A table that a statement names, once for each time that it does."""

    private: str
    kind: str
    subject: str
    node: exp.Table


class Statement:
    """A query whose tables have private names."""

    def __init__(self, tree: exp.Expr, tables: Sequence[Named], ctes: Collection[str]) -> None:
        self.tree = tree
        self.tables = tables
        self.ctes = ctes

    @property
    def sql(self) -> str:
        return written(self.tree)


def written(tree: exp.Expr) -> str:
    """Text for the engine. Every name is quoted, so `offset` is a name there, too."""
    try:
        return tree.sql(DIALECT, identify=True, comments=False)
    except (SqlglotError, ValueError) as error:
        raise InvalidArgument(f"sql: cannot be written anew: {_told(error)}") from None


def read_statement(
    text: str, parameters: Sequence[object], now_us: int, taken: Collection[str]
) -> Statement:
    """Raises `InvalidArgument`. `taken` are names that the engine has for itself."""
    try:
        numbered = _with_numbers(text)
        trees = [each for each in sqlglot.parse(numbered, dialect=DIALECT) if each is not None]
    except RecursionError:
        raise InvalidArgument("sql: is nested too deeply") from None
    except (SqlglotError, ValueError) as error:
        raise InvalidArgument(f"sql: {_told(error)}") from None
    if len(trees) != 1:
        raise InvalidArgument(f"sql: has {len(trees)} statements; SELECT takes one at a time")
    (tree,) = trees
    if not isinstance(tree, (exp.Query, exp.Values)):
        raise InvalidArgument(
            f"sql: is {type(tree).__name__.upper()}; only SELECT, WITH and VALUES read tables"
        )
    try:
        return _resolved(tree, parameters, now_us, taken)
    except RecursionError:
        raise InvalidArgument("sql: is nested too deeply") from None


def _resolved(
    tree: exp.Expr, parameters: Sequence[object], now_us: int, taken: Collection[str]
) -> Statement:
    # A query may hold what is none, such as `WITH x AS (DELETE ...)`.
    for node in tree.walk():
        if isinstance(node, (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Lock)) and not isinstance(
            node, (exp.Query, exp.CTE)
        ):
            raise InvalidArgument(f"sql: {type(node).__name__.upper()} is not part of a query")
    tree = _with_parameters(tree, parameters)
    tree = tree.transform(_with_time, now_us)
    ctes = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    for name in sorted(ctes):
        if name in taken or name.startswith(PRIVATE):
            raise InvalidArgument(f"sql: {name!r} cannot be the name of a WITH; choose another")
    tables = list(_tables(tree, ctes))
    if len(tables) > SELECT_TABLES_MAX:
        raise InvalidArgument(
            f"sql: names {len(tables)} tables; the limit is {SELECT_TABLES_MAX}; WITH reads a "
            "table once for several uses"
        )
    _name_columns(tree)
    return Statement(tree, tables, ctes)


def _tables(tree: exp.Expr, ctes: Collection[str]) -> Iterator[Named]:
    for at, node in enumerate(list(tree.find_all(exp.Table))):
        found = _named(node, ctes)
        if found is None:
            continue
        kind, subject = found
        private = f"{PRIVATE}{at}"
        if not node.alias:
            # So that `orders.key` or `topics.name` are columns of it.
            node.set("alias", exp.TableAlias(this=exp.to_identifier(_short_name(kind, subject))))
        node.set("this", exp.to_identifier(private))
        node.set("db", None)
        yield Named(private, kind, subject, node)


def _named(node: exp.Table, ctes: Collection[str]) -> tuple[str, str] | None:
    """The kind and the subject of a table of ours; None for other sources of rows."""
    if node.args.get("catalog"):
        raise InvalidArgument(f"sql: there is no table {written(node)}; {_HINT}")
    schema = node.db.casefold()
    if isinstance(node.this, exp.Func):
        call = node.this
        name = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
        name = name.casefold()
        if schema or (name not in NAMED and name not in ROW_SOURCES and not _is_series(call)):
            raise InvalidArgument(f"sql: there is no table {name}(); {_HINT}")
        return (name, _subject(name, call)) if name in NAMED else None
    name = node.name.casefold()
    if f"{schema}.{name}" in SYSTEM:
        return f"{schema}.{name}", ""
    if not schema and name in ctes:
        return None
    shown = f"{schema}.{name}" if schema else name
    raise InvalidArgument(f"sql: there is no table {shown}; {_HINT}")


def _is_series(call: exp.Func) -> bool:
    return isinstance(call, exp.GenerateSeries)


def _subject(name: str, call: exp.Func) -> str:
    match call.expressions:
        case [exp.Literal(is_string=True) as text] if text.name:
            return str(text.name)
    kind = "topic" if name == "topic" else "queue"
    raise InvalidArgument(f"sql: {name}() takes the name of a {kind}, as text: {name}('orders')")


def _short_name(kind: str, subject: str) -> str:
    return kind.partition(".")[2] or subject


# --- parameters and time --------------------------------------------------------------------------


def _with_numbers(text: str) -> str:
    """Each `?` as `$1`, `$2` and so on, in the order of the text."""
    text = _PIECES.sub(_apart, text)
    tokens = sqlglot.tokenize(text, dialect=DIALECT)
    holes = [each for each in tokens if each.token_type is TokenType.PLACEHOLDER]
    if holes and any(each.token_type is TokenType.PARAMETER for each in tokens):
        raise InvalidArgument("sql: has parameters of both kinds, ? and $1; use one of them")
    for number, hole in reversed(list(enumerate(holes, 1))):
        text = f"{text[: hole.start]}${number} {text[hole.end + 1 :]}"
    return text


def _apart(piece: re.Match[str]) -> str:
    """With a space behind a parameter: of `$1,$2` sqlglot takes `$1,$` for the begin of a text."""
    return f"{piece[0]} " if piece["number"] else piece[0]


def _with_parameters(tree: exp.Expr, parameters: Sequence[object]) -> exp.Expr:
    """Values instead of `$1`, as the engine writes them."""
    used: set[int] = set()
    for hole in list(tree.find_all(exp.Placeholder, exp.Parameter)):
        name = str(hole.name)
        if not name.isdecimal():
            raise InvalidArgument(f"sql: parameter {name!r} has no number; parameters are $1, $2")
        number = int(name[:9])
        if not 1 <= number <= len(parameters):
            raise InvalidArgument(
                f"params: the statement has parameter ${number}, and there are {len(parameters)}"
            )
        used.add(number)
        hole.replace(literal(number, parameters[number - 1]))
    if len(used) != len(parameters):
        raise InvalidArgument(
            f"params: there are {len(parameters)}, and the statement uses {len(used)} of them"
        )
    return tree


def _with_time(node: exp.Expr, now_us: int) -> exp.Expr:
    """The same moment wherever a statement asks for the time, and in all that is read for it."""
    is_now = isinstance(node, exp.CurrentTimestamp) or (
        isinstance(node, exp.Anonymous) and node.name.casefold() in _NOW and not node.expressions
    )
    if is_now:
        return time_literal(now_us)
    if isinstance(node, exp.CurrentDate) and node.this is None:
        return exp.cast(time_literal(now_us), "DATE")
    return node


def _name_columns(tree: exp.Expr) -> None:
    """Columns of the answer that have no name get the expression for one: `count(*)`."""
    select = tree
    while isinstance(select, (exp.SetOperation, exp.Subquery)):
        select = select.this
    if not isinstance(select, exp.Select):
        return
    # All at once: to replace one of thousands looks at all of them.
    select.set("expressions", [_with_name(each) for each in select.expressions])


def _with_name(column: exp.Expr) -> exp.Expr:
    if not isinstance(column, (exp.Func, exp.Binary, exp.Cast, exp.Window, exp.Literal, exp.Case)):
        return column
    text = column.sql(DIALECT, comments=False, normalize_functions="lower")
    return exp.alias_(column.copy(), text[:80], quoted=True)


def _told(error: Exception) -> str:
    """What is wrong with the text, and where."""
    match error:
        case QueueberError():
            return error.sentence
        case ParseError(errors=[{"line": int(line), "col": int(column), **found}, *_]):
            what = str(found.get("description"))
            if what.startswith("Required keyword"):
                what = "something is missing"
            elif word := found.get("highlight"):
                what = f"{str(word)[:_WORD_CHARS_MAX]!r} does not go here"
            return f"line {line}, column {column}: {what}"
        case TokenError():
            end = str(error).removeprefix("Error tokenizing ")[-_WORD_CHARS_MAX:]
            return f"cannot be read near {end}: a text, a name or a comment may have no end"
    return str(error).split("\n", 1)[0][:300]
