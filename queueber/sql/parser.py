"""A text of SQL as statements; `statements.lark` is the grammar."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from queueber.sql import statements as made
from queueber.sql.bounds import Bounds
from queueber.sql.errors import EmptySql, InvalidSql, ParamsWithBatch, at
from queueber.sql.parameters import Parameters
from queueber.sql.settings import CREATED, RETENTION, SOURCE, Allowed
from queueber.sql.syntax_errors import explained

_Tree = Tree[Token]
_Parts = dict[str, list[_Tree]]

_NAME_CHARS_MAX = 1000
"""Names are shorter; the server says by how much."""


@cache
def grammar() -> Lark:
    return Lark.open(
        "statements.lark",
        rel_to=__file__,
        parser="lalr",
        lexer="contextual",
        maybe_placeholders=False,
    )


def parse(
    text: str, params: Sequence[object] = (), bounds: Bounds | None = None
) -> list[made.Statement]:
    """The statements of a text, with the values of its parameters in their places.

    A query keeps its placeholders. Raises `InvalidSql`, or `InvalidParameter`.
    """
    bounds = bounds or Bounds()
    if not isinstance(text, str):
        raise InvalidSql(f"sql: {text!r} is not a text")
    if len(text) > bounds.chars_max:
        raise InvalidSql(f"sql: it has {len(text)} characters; the limit is {bounds.chars_max}")
    given = Parameters(params, bounds.params_max)
    try:
        tree = grammar().parse(text)
    except UnexpectedInput as error:
        raise explained(text, error) from None
    found: list[Any] = tree.children
    if not found:
        raise EmptySql("sql: there is no statement in it")
    if len(found) > bounds.statements_max:
        raise InvalidSql(
            f"sql: it has {len(found)} statements; the limit is {bounds.statements_max}"
        )
    if len(found) > 1 and params:
        raise ParamsWithBatch(
            f"params: they go with one statement, and there are {len(found)}; send each by itself"
        )
    given.number_marks(each for each in _tokens(tree) if each.type == "PARAM")
    read = [_Reader(text, given).read(each) for each in found]
    if not isinstance(read[0], made.Select):  # what a query uses, DuckDB knows
        given.check_all_used()
    return read


class _Reader:
    """Makes the value of one statement from its tree."""

    def __init__(self, text: str, given: Parameters) -> None:
        self._text = text
        self._given = given

    def read(self, tree: _Tree) -> made.Statement:
        rule = str(tree.data)
        if rule == "select":
            first, last = tree.children[0], tree.children[-1]
            assert isinstance(first, Token)
            assert isinstance(last, Token)
            return made.Select(self._text[first.start_pos : last.end_pos])
        parts: _Parts = {}
        for child in tree.children:
            if isinstance(child, Tree):
                parts.setdefault(str(child.data), []).append(child)
        read: made.Statement = getattr(self, f"_{rule}")(parts)
        return read

    # --- topics -----------------------------------------------------------------------------------

    def _create_topic(self, parts: _Parts) -> made.CreateTopic:
        partitions = self._number(parts, "partitions")
        settings = self._settings(parts, CREATED)
        if partitions is not None and "partitions" in settings:
            raise InvalidSql("partitions: PARTITIONS was given, too; give one of them")
        return made.CreateTopic(
            self._name(parts), partitions, settings, may_exist="if_not_exists" in parts
        )

    def _drop_topic(self, parts: _Parts) -> made.DropTopic:
        return made.DropTopic(self._name(parts), may_lack="if_exists" in parts)

    def _clear_topic(self, parts: _Parts) -> made.ClearTopic:
        return made.ClearTopic(self._name(parts))

    def _set_topic(self, parts: _Parts) -> made.SetTopic:
        partitions = self._number(parts, "partitions")
        settings = self._settings(parts, CREATED)
        if partitions is not None:
            if "partitions" in settings:
                raise InvalidSql("partitions: PARTITIONS was given, too; give one of them")
            settings["partitions"] = partitions
        return made.SetTopic(self._name(parts), settings)

    def _set_retention(self, parts: _Parts) -> made.SetTopic:
        return made.SetTopic(self._name(parts), self._settings(parts, RETENTION), is_retention=True)

    def _clear_retention(self, parts: _Parts) -> made.ClearRetention:
        return made.ClearRetention(self._name(parts))

    def _add_source(self, parts: _Parts) -> made.AddSource:
        settings = self._settings(parts, SOURCE)
        operation = self._operation(parts)
        assert operation is not None
        return made.AddSource(
            self._name(parts),
            self._name(parts, 1),
            operation,
            self._condition(parts, "where"),
            self._partition_by(parts),
            settings.get("payload", "key"),
        )

    def _drop_source(self, parts: _Parts) -> made.DropSource:
        return made.DropSource(self._name(parts), self._name(parts, 1), self._operation(parts))

    # --- groups -----------------------------------------------------------------------------------

    def _consume(self, parts: _Parts) -> made.Consume:
        group = parts["group"][0].children[0] if "group" in parts else None
        limit = self._number(parts, "limit")
        return made.Consume(
            self._name(parts),
            None if group is None else self._text_of(group),
            self._number(parts, "partition") or 0,
            self._place(parts, "position") if "position" in parts else "latest",
            100 if limit is None else limit,
        )

    def _ack(self, parts: _Parts) -> made.Ack:
        upto = self._number_of(parts["number"][0])
        return made.Ack(
            self._name(parts),
            self._text_of(parts["text"][0]),
            upto,
            self._number(parts, "partition") or 0,
        )

    def _reset_group(self, parts: _Parts) -> made.ResetGroup:
        return made.ResetGroup(
            self._name(parts),
            self._text_of(parts["text"][0]),
            self._place(parts, "to"),
            self._number(parts, "partition"),
        )

    def _drop_group(self, parts: _Parts) -> made.DropGroup:
        return made.DropGroup(
            self._name(parts), self._text_of(parts["text"][0]), may_lack="if_exists" in parts
        )

    def _create_namespace(self, parts: _Parts) -> made.CreateNamespace:
        return made.CreateNamespace(self._name(parts))

    # --- looking ----------------------------------------------------------------------------------

    def _show(self, parts: _Parts) -> made.Show:
        listed: Any = str(parts["listed"][0].children[0]).lower()
        like = parts["like"][0].children[0] if "like" in parts else None
        return made.Show(listed, like=None if like is None else self._text_of(like))

    def _show_sources(self, parts: _Parts) -> made.Show:
        return made.Show("sources", self._on_topic(parts))

    def _show_groups(self, parts: _Parts) -> made.Show:
        return made.Show("groups", self._on_topic(parts))

    def _on_topic(self, parts: _Parts) -> str | None:
        if "on_topic" not in parts:
            return None
        return self._name({"name": [_child(parts["on_topic"][0])]})

    def _describe(self, parts: _Parts) -> made.Describe:
        kind: Any = str(parts["kind"][0].children[0]).lower() if "kind" in parts else None
        return made.Describe(self._name(parts), kind)

    # --- parts of statements ----------------------------------------------------------------------

    def _name(self, parts: _Parts, at_index: int = 0) -> str:
        tree = parts["name"][at_index]
        first = _token(tree)
        if first.type == "PARAM":
            return self._given.text(first)
        found = ".".join(_unquoted(_token(tree, each)) for each in range(len(tree.children)))
        if not 0 < len(found) <= _NAME_CHARS_MAX:
            raise at(
                first.line or 1, first.column or 1, f"a name has 1 to {_NAME_CHARS_MAX} characters"
            )
        return found

    def _text_of(self, tree: Any) -> str:
        token = _token(tree)
        return self._given.text(token) if token.type == "PARAM" else _unquoted(token)

    def _number(self, parts: _Parts, rule: str) -> int | None:
        return self._number_of(_child(parts[rule][0])) if rule in parts else None

    def _number_of(self, tree: _Tree) -> int:
        token = _token(tree)
        if token.type == "PARAM":
            return self._given.number(token)
        if not token.isdigit() or len(token) > 19 or int(token) >= 1 << 63:
            raise at(
                token.line or 1, token.column or 1, f"{token} is no whole number from 0 to 2^63 - 1"
            )
        return int(token)

    def _place(self, parts: _Parts, rule: str) -> made.At:
        child = parts[rule][0].children[0]
        if isinstance(child, Tree):
            return self._number_of(child)
        return "latest" if child.type == "LATEST" else "earliest"

    def _operation(self, parts: _Parts) -> made.Operation | None:
        if "on" not in parts:
            return None
        operation: made.Operation = str(parts["on"][0].children[0]).lower()  # type: ignore[assignment]
        return operation

    def _settings(self, parts: _Parts, allowed: Allowed) -> dict[str, Any]:
        listed = parts.get("setting", [])
        if "options" in parts:
            listed = [each for each in parts["options"][0].children if isinstance(each, Tree)]
        found: dict[str, Any] = {}
        for each in listed:
            word, value = _token(each), _token(_child(each, 1))
            name, read = allowed.read(word, self._value(value))
            if name in found:
                raise at(word.line or 1, word.column or 1, f"{word} is given twice")
            found[name] = read
        return found

    def _value(self, token: Token) -> object:
        match token.type:
            case "PARAM":
                return self._given.value(token)
            case "NUMBER":
                # Beyond what any setting takes, and quicker than a number of thousands of digits.
                return (
                    int(token)
                    if token.lstrip("+-").isdigit() and len(token) <= 20
                    else float(token)
                )
            case "TRUE" | "FALSE":
                return token.type == "TRUE"
            case "NULL":
                return None
            case _:
                return _unquoted(token)

    def _condition(self, parts: _Parts, rule: str) -> str:
        """What was written, with the values of parameters in it."""
        if rule not in parts:
            return ""
        tokens = _tokens(parts[rule][0])
        written, end = "", tokens[0].start_pos or 0
        for token in (each for each in tokens if each.type == "PARAM"):
            written += self._text[end : token.start_pos] + self._given.literal(token)
            end = token.end_pos or 0
        return written + self._text[end : tokens[-1].end_pos]

    def _partition_by(self, parts: _Parts) -> str:
        written = self._condition(parts, "partition_by")
        return written[1:-1].strip() if written.startswith("(") else written


def _tokens(tree: _Tree) -> list[Token]:
    """All tokens below a tree in order, however deep it is."""
    found, left = list[Token](), list[Token | _Tree]([tree])
    while left:
        each = left.pop()
        if isinstance(each, Token):
            found.append(each)
        else:
            left += reversed(each.children)
    return found


def _child(tree: _Tree, at_index: int = 0) -> _Tree:
    child = tree.children[at_index]
    assert isinstance(child, Tree)
    return child


def _token(tree: Any, at_index: int = 0) -> Token:
    token = tree.children[at_index]
    assert isinstance(token, Token)
    return token


def _unquoted(token: Token) -> str:
    match token.type:
        case "STRING":
            return str(token[1:-1]).replace("''", "'")
        case "QUOTED":
            return str(token[1:-1]).replace('""', '"')
        case "BACKTICKED":
            return str(token[1:-1])
        case _:
            return str(token)
