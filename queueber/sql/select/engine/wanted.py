"""Which columns and rows of each table a statement can need, from its text alone.

Sure, not clever: what is not understood is read whole. A condition that is found stays in the
statement, so reading too much never changes an answer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from queueber.sql.select.columns import TABLES
from queueber.sql.select.engine.statement import Named, Statement
from queueber.sql.select.needs import Need

Constant = Callable[[exp.Expr, bool], int | str | None]
"""Computes an expression without columns: a whole number, a text, or microseconds since 1970 if it
is to be a time; None if it is something else."""

_CHEAPEST = {"topic": "partition", "queue": "priority", "dead": "priority", "results": "attempts"}
"""What is read to count rows, if no column is used."""

_TIMES = {"ts"}
_NUMBERS = {"partition", "offset", *_TIMES}
_ORDERED = {"offset", "ts", "sequence"}
"""Columns of a topic that rise together in each partition."""
_EQUAL = {
    "topic": {"partition"},
    "queue": {"state", "batch"},
    "results": {"status", "batch"},
    "dead": {"batch"},
    "system.topics": {"name", "topic_id"},
    "system.topic_offsets": {"topic_id"},
    "system.queues": {"name"},
    "system.leases": {"queue", "topic"},
    "system.batches": {"queue"},
    "system.dead_letters": {"queue", "topic", "batch"},
}
_RANGES = {"topic": {"partition", "offset", "ts"}, "results": {"offset"}}

_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.EQ: exp.EQ,
}
_CONSTANT = (
    exp.Literal, exp.Boolean, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Cast, exp.TryCast,
    exp.Interval, exp.DataType, exp.DataTypeParam, exp.Var, exp.TimestampTrunc, exp.DateTrunc,
    exp.IntervalSpan,
)  # fmt: skip
_PLAIN = (
    exp.Column, exp.Identifier, exp.Star, exp.Alias, exp.Literal, exp.Cast, exp.DataType,
    exp.JSONExtract, exp.JSONExtractScalar, exp.JSONPath, exp.JSONPathRoot, exp.JSONPathKey,
    exp.Paren, exp.Bracket,
)  # fmt: skip
"""What projections may be made of, so that each row read is one row of the answer."""
_PLAIN_JOINS = {"", "INNER", "CROSS", "OUTER"}


def needs_of(statement: Statement, constant: Constant, rows_max: int) -> list[Need]:
    """`rows_max`: as many rows as an answer may have, and one more is an error."""
    names = _used_names(statement.tree)
    return [_need(statement, table, names, constant, rows_max) for table in statement.tables]


def whole_needs(statement: Statement) -> list[Need]:
    """All columns and rows, as if nothing was understood."""
    return [
        Need(each.private, each.kind, each.subject, tuple(TABLES[each.kind].names))
        for each in statement.tables
    ]


def _used_names(tree: exp.Expr) -> set[str] | None:
    """Every name in the statement; None if it has something that means columns without naming
    them."""
    names: set[str] = set()
    for node in tree.walk():
        if isinstance(node, exp.Identifier):
            names.add(node.name.casefold())
        elif _means_all(node):
            return None
    return names


def _means_all(node: exp.Expr) -> bool:
    match node:
        case exp.Star():
            return not isinstance(node.parent, exp.Count)
        case exp.Join():
            return bool(node.args.get("method"))  # NATURAL, for one
    return isinstance(node, (exp.Columns, exp.Pivot, exp.PositionalColumn))


def _need(
    statement: Statement,
    table: Named,
    names: set[str] | None,
    constant: Constant,
    rows_max: int,
) -> Need:
    every = TABLES[table.kind].names
    has_own_names = bool(table.node.args["alias"].args.get("columns"))
    # A whole row is named by its table: SELECT t FROM topic('a') AS t.
    if names is None or has_own_names or _is_row(statement.tree, table):
        columns = tuple(every)
    else:
        columns = tuple(name for name in every if name in names)
    columns = columns or (_CHEAPEST.get(table.kind, every[0]),)
    need = Need(table.private, table.kind, table.subject, columns)
    select = _select_of(table.node)
    if select is None or has_own_names or _is_changed(table.node):
        return need
    sources = _sources(select)
    if sources is None:
        return need
    need = _narrowed(need, table, select, len(sources) == 1, constant)
    if len(sources) == 1:
        is_answer = select is statement.tree
        need = _counted(need, table, select, rows_max if is_answer else None)
    return need


def _is_row(tree: exp.Expr, table: Named) -> bool:
    alias = table.node.alias.casefold()
    return any(
        not node.table and node.name.casefold() == alias for node in tree.find_all(exp.Column)
    )


def _select_of(node: exp.Table) -> exp.Select | None:
    """The query in whose FROM the table stands."""
    parent = node.parent
    if isinstance(parent, (exp.From, exp.Join)) and isinstance(parent.parent, exp.Select):
        return parent.parent
    return None


def _is_changed(node: exp.Table) -> bool:
    """Whether there is more to the table than its name: a sample, a pivot, a join of its own."""
    return any(value for name, value in node.args.items() if name not in {"this", "alias", "db"})


def _sources(select: exp.Select) -> list[exp.Expr] | None:
    """What its rows come from; None if some joins look at rows that do not match."""
    joins = select.args.get("joins") or []
    if select.args.get("laterals") or select.args.get("sample") or select.args.get("pivots"):
        return None
    for join in joins:
        if join.args.get("method") or join.kind not in _PLAIN_JOINS or join.args.get("pivots"):
            return None
    source = select.args.get("from_")
    return [] if source is None else [source.this, *(join.this for join in joins)]


# --- conditions -----------------------------------------------------------------------------------


def _narrowed(
    need: Need, table: Named, select: exp.Select, is_alone: bool, constant: Constant
) -> Need:
    where = select.args.get("where")
    if where is None:
        return need
    made = {each.alias.casefold() for each in select.expressions if isinstance(each, exp.Alias)}

    def column_of(node: exp.Expr) -> str | None:
        if not isinstance(node, exp.Column) or node.args.get("db"):
            return None
        of = node.table.casefold()
        name = node.name.casefold()
        if of == table.node.alias.casefold() or (not of and is_alone and name not in made):
            return name if name in TABLES[need.kind].names else None
        return None

    equal, least, most = dict(need.equal), dict(need.least), dict(need.most)
    equals, ranges = _EQUAL.get(need.kind, set()), _RANGES.get(need.kind, set())

    def value(column: str, node: exp.Expr) -> int | str | None:
        if not all(isinstance(each, _CONSTANT) for each in node.walk()):
            return None
        found = constant(node, column in _TIMES)
        return found if isinstance(found, int if column in _NUMBERS else str) else None

    def narrow(column: str, *, low: int | None = None, high: int | None = None) -> None:
        if low is not None:
            least[column] = max(least.get(column, low), low)
        if high is not None:
            most[column] = min(most.get(column, high), high)

    for condition in _conditions(where.this):
        match condition:
            case exp.Between(this=this) if not condition.args.get("symmetric"):
                column = column_of(this)
                if column in ranges:
                    low, high = (value(column, condition.args[end]) for end in ("low", "high"))
                    narrow(column, low=_whole(low), high=_whole(high))
            case exp.In(this=this) if not condition.args.get("query"):
                column, found = column_of(this), condition.expressions
                if column in equals and found and not condition.args.get("unnest"):
                    values = [value(column, each) for each in found]
                    _keep(equal, column, values)
            case exp.GT() | exp.GTE() | exp.LT() | exp.LTE() | exp.EQ():
                kind: type[exp.Expr] = type(condition)
                left, right = condition.this, condition.expression
                column = column_of(left)
                if column is None:
                    kind, column, right = _MIRRORED[kind], column_of(right), left
                if column is None or column not in equals | ranges:
                    continue
                got = value(column, right)
                if kind is exp.EQ and column in equals:
                    _keep(equal, column, [got])
                elif column in ranges and isinstance(got, int):
                    # A message at the bound itself is read and then left out.
                    is_low, is_high = kind in (exp.GT, exp.GTE), kind in (exp.LT, exp.LTE)
                    narrow(column, low=None if is_high else got, high=None if is_low else got)
    return replace(need, equal=equal, least=least, most=most)


def _whole(value: int | str | None) -> int | None:
    return value if isinstance(value, int) else None


def _keep(
    equal: dict[str, tuple[str | int, ...]], column: str, values: Sequence[int | str | None]
) -> None:
    found = tuple(each for each in values if each is not None)
    if len(found) == len(values):
        both = equal.get(column)
        equal[column] = found if both is None else tuple(each for each in both if each in found)


def _conditions(node: exp.Expr) -> Iterator[exp.Expr]:
    """What must all hold."""
    left = [node]
    while left:
        node = left.pop()
        if isinstance(node, exp.And):
            left += [node.this, node.expression]
        elif isinstance(node, exp.Paren):
            left.append(node.this)
        else:
            yield node


# --- numbers of rows ------------------------------------------------------------------------------


def _counted(need: Need, table: Named, select: exp.Select, rows_max: int | None) -> Need:
    """How many rows are enough, if each row that is read is one of the answer."""
    taken = {"expressions", "from_", "limit", "offset", "order", "kind", "hint", "with_"}
    if any(value for name, value in select.args.items() if name not in taken):
        return need
    if not all(isinstance(node, _PLAIN) for each in select.expressions for node in each.walk()):
        return need
    limit, skipped = _number(select.args.get("limit")), _number(select.args.get("offset"))
    if skipped is None or limit is None:
        return need
    if not select.args.get("limit"):
        if rows_max is None:
            return need
        limit = rows_max + 1
    order = select.args.get("order")
    if order is None:
        return replace(need, rows=limit + skipped)
    if need.kind != "topic" or len(order.expressions) != 1:
        return need
    (key,) = order.expressions
    column = key.this
    made = {each.alias.casefold() for each in select.expressions if isinstance(each, exp.Alias)}
    if not isinstance(column, exp.Column) or column.name.casefold() not in _ORDERED - made:
        return need
    is_last = bool(key.args.get("desc"))
    return replace(need, rows=limit + skipped, is_each=True, is_last=is_last)


def _number(node: exp.Expr | None) -> int | None:
    """The number of a LIMIT or OFFSET; 0 if there is none, None if it is computed."""
    if node is None:
        return 0
    if any(value for name, value in node.args.items() if name not in {"this", "expression"}):
        return None
    value = node.expression
    if isinstance(value, exp.Literal) and not value.is_string and value.name.isdecimal():
        return min(int(value.name[:18]), 1 << 40)
    return None
