"""A statement as text: what is printed can be parsed, and is the same statement."""

import re
from collections.abc import Mapping
from typing import Any

from queueber.sql import statements as made

_PLAIN = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_.]|[/-](?=[A-Za-z0-9_.]))*")
_WORDS = {"if", "topic", "queue", "table"}
"""Names that could be taken for a word of the statement where they stand."""


def printed(statement: made.Statement) -> str:
    """The statement on one line, without a semicolon."""
    match statement:
        case made.CreateTopic(topic, partitions, settings, may_exist):
            exists = "IF NOT EXISTS " if may_exist else ""
            count = "" if partitions is None else f" PARTITIONS {partitions}"
            return f"CREATE TOPIC {exists}{name(topic)}{count}{_with(settings)}"
        case made.DropTopic(topic, may_lack):
            return f"DROP TOPIC {'IF EXISTS ' if may_lack else ''}{name(topic)}"
        case made.ClearTopic(topic):
            return f"CLEAR TOPIC {name(topic)}"
        case made.SetTopic(topic, settings, is_retention):
            return f"ALTER TOPIC {name(topic)} SET{' RETENTION' * is_retention}{_with(settings)}"
        case made.ClearRetention(topic):
            return f"ALTER TOPIC {name(topic)} CLEAR RETENTION"
        case made.AddSource() | made.DropSource():
            return _source(statement)
        case made.Consume() | made.Ack() | made.ResetGroup() | made.DropGroup():
            return _group(statement)
        case made.CreateNamespace(namespace):
            return f"CREATE NAMESPACE {name(namespace)}"
        case made.Show(listed, topic, like):
            on = "" if topic is None else f" ON {name(topic)}"
            return f"SHOW {listed.upper()}{on}{'' if like is None else f' LIKE {text(like)}'}"
        case made.Describe(named, kind):
            return f"DESCRIBE {'' if kind is None else f'{kind.upper()} '}{name(named)}"
        case made.Select(query):
            return query


def _source(statement: made.AddSource | made.DropSource) -> str:
    begin = f"ALTER TOPIC {name(statement.topic)}"
    if isinstance(statement, made.DropSource):
        on = "" if statement.on is None else f" ON {statement.on.upper()}"
        return f"{begin} DROP SOURCE {name(statement.queue)}{on}"
    parts = [f"{begin} ADD SOURCE {name(statement.queue)} ON {statement.on.upper()}"]
    if statement.where:
        parts.append(f"WHERE {statement.where}")
    if statement.partition_by:
        parts.append(f"PARTITION BY ({statement.partition_by})")
    return " ".join([*parts, f"WITH (payload = {text(statement.payload)})"])


def _group(statement: made.Consume | made.Ack | made.ResetGroup | made.DropGroup) -> str:
    topic = name(statement.topic)
    match statement:
        case made.Consume(_, group, partition, start, limit):
            named = "" if group is None else f" GROUP {text(group)}"
            return (
                f"CONSUME FROM {topic}{named} PARTITION {partition} FROM {_place(start)} "
                f"LIMIT {limit}"
            )
        case made.Ack(_, group, upto, partition):
            return f"ACK {topic} GROUP {text(group)} PARTITION {partition} UPTO OFFSET {upto}"
        case made.ResetGroup(_, group, to, partition):
            where = "" if partition is None else f" PARTITION {partition}"
            return f"RESET CONSUMER GROUP {text(group)} ON {topic}{where} TO {_place(to)}"
        case made.DropGroup(_, group, may_lack):
            exists = "IF EXISTS " if may_lack else ""
            return f"DROP CONSUMER GROUP {exists}{text(group)} ON {topic}"


def name(of: str) -> str:
    """A name, in quotes if it needs them."""
    if _PLAIN.fullmatch(of) and of.lower() not in _WORDS:
        return of
    return '"' + of.replace('"', '""') + '"'


def text(of: str) -> str:
    return "'" + of.replace("'", "''") + "'"


def _place(at: made.At) -> str:
    return f"OFFSET {at}" if isinstance(at, int) else at.upper()


def _with(settings: Mapping[str, Any]) -> str:
    listed = ", ".join(f"{each} = {_value(value)}" for each, value in settings.items())
    return f" WITH ({listed})" if listed else ""


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return text(value) if isinstance(value, str) else repr(value)
