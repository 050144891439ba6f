"""Texts to statements: what is read, what is refused, and where the mistake is."""

import contextlib
from time import process_time

import pytest
from hypothesis import example, given, settings

from queueber.errors import InvalidArgument
from queueber.sql import statements as made
from queueber.sql.bounds import Bounds
from queueber.sql.errors import EmptySql, InvalidParameter, InvalidSql, ParamsWithBatch
from queueber.sql.parser import parse
from queueber.sql.printer import printed
from tests.sql.strategies import PARAMS, STATEMENTS, TEXTS

READ = {
    "CREATE TOPIC app.new_messages;": made.CreateTopic("app.new_messages"),
    "create topic IF not EXISTS a-b/c PARTITIONS 4 WITH (retention_seconds = 60, alias = 'x')": (
        made.CreateTopic("a-b/c", 4, {"retention": 60, "alias": "x"}, may_exist=True)
    ),
    "CREATE TOPIC t WITH (retention_seconds = NULL, retention_max_bytes = 5,)": made.CreateTopic(
        "t", None, {"retention": 0, "retention_bytes": 5}
    ),
    "CREATE TOPIC t WITH (expires_at = '2026-11-18T09:00:00Z')": made.CreateTopic(
        "t", None, {"expires_at": 1794992400.0}
    ),
    'DROP TOPIC IF EXISTS "a b"': made.DropTopic("a b", may_lack=True),
    'DROP TOPIC "app"."new ""one"""': made.DropTopic('app.new "one"'),
    "DROP TOPIC `drop`": made.DropTopic("drop"),
    "CLEAR TOPIC t -- all of it": made.ClearTopic("t"),
    "ALTER TOPIC t SET (alias = other)": made.SetTopic("t", {"alias": "other"}),
    "ALTER TOPIC t SET PARTITIONS 8": made.SetTopic("t", {"partitions": 8}),
    "ALTER TOPIC t SET RETENTION WITH (retention_seconds = 1)": made.SetTopic(
        "t", {"retention": 1}, is_retention=True
    ),
    "ALTER TOPIC t CLEAR RETENTION": made.ClearRetention("t"),
    "ALTER TOPIC t ADD SOURCE q ON INSERT": made.AddSource("t", "q", "insert"),
    "ALTER TOPIC app.t\nADD SOURCE chat.q\nON UPDATE\nWHERE (a = true AND b = 42)\n"
    "PARTITION BY (user_id)\nWITH (payload = 'full');": made.AddSource(
        "app.t", "chat.q", "update", "(a = true AND b = 42)", "user_id", "full"
    ),
    "ALTER TOPIC t ADD SOURCE q ON DELETE WHERE a IN (1, 2) AND (partition = 1)": made.AddSource(
        "t", "q", "delete", "a IN (1, 2) AND (partition = 1)"
    ),
    "ALTER TOPIC t DROP SOURCE q": made.DropSource("t", "q"),
    "ALTER TOPIC t DROP SOURCE q ON DELETE": made.DropSource("t", "q", "delete"),
    "CONSUME FROM t": made.Consume("t"),
    "CONSUME FROM t GROUP 'ai-service' FROM OFFSET 12345 LIMIT 7": made.Consume(
        "t", "ai-service", 0, 12345, 7
    ),
    'CONSUME FROM t GROUP "g" FROM 12': made.Consume("t", "g", 0, 12),
    "CONSUME FROM t GROUP g PARTITION 3 FROM EARLIEST": made.Consume("t", "g", 3, "earliest"),
    "ACK t GROUP 'g' PARTITION 1 UPTO OFFSET 220": made.Ack("t", "g", 220, 1),
    "ACK t GROUP 'g' UPTO OFFSET 0": made.Ack("t", "g", 0),
    "RESET CONSUMER GROUP 'g' ON t TO 9": made.ResetGroup("t", "g", 9),
    "RESET CONSUMER GROUP 'g' ON t PARTITION 2 TO EARLIEST": made.ResetGroup(
        "t", "g", "earliest", 2
    ),
    "DROP CONSUMER GROUP 'it''s' ON t": made.DropGroup("t", "it's"),
    "SHOW TOPICS LIKE 'app.%'": made.Show("topics", like="app.%"),
    "SHOW CONSUMER GROUPS ON t": made.Show("groups", "t"),
    "SHOW SOURCES": made.Show("sources"),
    "DESC topic": None,
    "DESCRIBE TOPIC topic": made.Describe("topic", "topic"),
    "DESCRIBE system.topics": made.Describe("system.topics"),
    "SELECT ';' FROM \";\" /* ; */ -- ;": made.Select("SELECT ';' FROM \";\""),
    "WITH a AS (SELECT $tag$;$tag$) SELECT 1;;": made.Select(
        "WITH a AS (SELECT $tag$;$tag$) SELECT 1"
    ),
}


@pytest.mark.parametrize("text", [text for text, found in READ.items() if found is not None])
def test_a_statement_is_read(text: str) -> None:
    assert parse(text) == [READ[text]]


def test_several_statements_are_read_in_order() -> None:
    found = parse("; CREATE TOPIC a;; -- one\nSELECT ';' ;\n/* two; */ DROP TOPIC a ;")

    assert found == [made.CreateTopic("a"), made.Select("SELECT ';'"), made.DropTopic("a")]


REFUSED = {
    "CREATE TOPC t": "line 1, column 8: 'TOPC' does not go here; expected NAMESPACE or TOPIC",
    "CREATE TOPIC a;\n  DROP TOPICS a": "line 2, column 8: 'TOPICS' does not go here; expected "
    "CONSUMER or TOPIC",
    "CREATE TOPIC": "line 1, column 13: the text ends here; expected IF or a name or a parameter",
    "CREATETOPIC t": "line 1, column 1: 'CREATETOPIC' does not go here; expected ACK or ",
    "CREATE TOPIC 't": "line 1, column 14: what begins with ' has no end",
    "SELECT 1; SELECT '": "line 1, column 18: what begins with ' has no end",
    "SELECT 1 /* and": "line 1, column 10: what begins with /* has no end",
    "CREATE TOPIC t PARTITIONS four": "line 1, column 27: 'four' does not go here; expected a "
    "number or a parameter",
    "CONSUME FROM t LIMIT -1": "line 1, column 22: -1 is no whole number from 0 to 2^63 - 1",
    f"CONSUME FROM t LIMIT {1 << 63}": "line 1, column 22: ",
    "CREATE TOPIC t WITH (nope = 1)": "line 1, column 22: 'nope' is no setting of a topic; these "
    "are: alias, ",
    "CREATE TOPIC t WITH (retention = 1, retention_seconds = 2)": "line 1, column 37: "
    "retention_seconds is given twice",
    "CREATE TOPIC t WITH (retention = 'long')": "line 1, column 22: retention is a number",
    "CREATE TOPIC t WITH (retention = 1e400)": "line 1, column 22: retention is a number",
    "CREATE TOPIC t PARTITIONS 2 WITH (partitions = 3)": "partitions: PARTITIONS was given, too",
    "ALTER TOPIC t SET RETENTION WITH (alias = 'x')": "line 1, column 35: 'alias' is no setting of "
    "retention",
    "ALTER TOPIC t ADD SOURCE q ON INSERT WITH (payload = 'all')": "line 1, column 44: payload is "
    "'key', 'full' or 'diff'",
    "ALTER TOPIC t ADD SOURCE q ON TRUNCATE": "line 1, column 31: 'TRUNCATE' does not go here; "
    "expected DELETE or INSERT or UPDATE",
    "SHOW GROUPS": "line 1, column 12: the text ends here; expected ON",
    'DROP TOPIC ""': "line 1, column 12: a name has 1 to ",
    "INSERT INTO t VALUES (1)": "line 1, column 1: 'INSERT' does not go here",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_mistake_is_told_with_its_place(text: str) -> None:
    with pytest.raises(InvalidSql) as refused:
        parse(text)

    assert refused.value.sentence.startswith(REFUSED[text]), refused.value.sentence


@pytest.mark.parametrize("text", ["", " \n", ";;", "-- nothing", "/* nothing */ ;"])
def test_a_text_without_a_statement_is_empty(text: str) -> None:
    with pytest.raises(EmptySql):
        parse(text)


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mark", ["$1 GROUP $2 FROM OFFSET $3 LIMIT $4", "? GROUP ? FROM ? LIMIT ?"]
)
def test_parameters_stand_for_names_texts_and_numbers(mark: str) -> None:
    found = parse(f"CONSUME FROM {mark}", ["a b", "it's; --", 7, 2.0])

    assert found == [made.Consume("a b", "it's; --", 0, 7, 2)]


def test_parameters_in_a_condition_are_literals_that_cannot_end_it() -> None:
    text = "ALTER TOPIC t ADD SOURCE q ON INSERT WHERE a = ? AND (b < ? OR c = ?) AND d IS NOT ?"

    [found] = parse(text, ["x' OR 'x' = 'x", -1.5, True, None])

    assert isinstance(found, made.AddSource)
    assert found.where == "a = 'x'' OR ''x'' = ''x' AND (b < -1.5 OR c = TRUE) AND d IS NOT NULL"


@pytest.mark.parametrize(
    ("text", "params", "sentence"),
    [
        ("DROP TOPIC $2", ["a"], "line 1, column 12 needs parameter 2, and 1 were given"),
        ("DROP TOPIC a", ["a"], "the statement does not use parameter 1"),
        ("DROP TOPIC $1", [5], "5 for $1 (line 1, column 12) is not a text"),
        ("CONSUME FROM t LIMIT ?", [-1], "-1 for ? (line 1, column 22) is not a whole number"),
        ("CONSUME FROM t LIMIT ?", [True], "True for ?"),
        ("CONSUME FROM $1 LIMIT ?", ["t", 1], "a statement has either ? or $1, not both"),
        ("DROP TOPIC $1", [["a"]], "parameter 1 is of type list"),
        ("DROP TOPIC $1", ["a" * 100_000], "the limit is 65536"),
        ("DROP TOPIC $1", ["a"] * 101, "there are 101; the limit is 100"),
        ("CONSUME FROM t LIMIT ?", [1 << 64], "parameter 1 does not fit into 64 bits"),
    ],
)
def test_a_parameter_that_does_not_fit_is_refused(
    text: str, params: list[object], sentence: str
) -> None:
    with pytest.raises(InvalidParameter) as refused:
        parse(text, params)

    assert sentence in refused.value.sentence


def test_parameters_with_several_statements_are_refused() -> None:
    with pytest.raises(ParamsWithBatch):
        parse("DROP TOPIC $1; DROP TOPIC $2", ["a", "b"])


# --- bounds ---------------------------------------------------------------------------------------


def test_a_long_text_and_many_statements_are_refused() -> None:
    with pytest.raises(InvalidSql, match="has 65537 characters; the limit is 65536"):
        parse("-" * 65_537)
    with pytest.raises(InvalidSql, match="has 101 statements; the limit is 100"):
        parse("DROP TOPIC a;" * 101)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 60_000,
        "ALTER TOPIC t ADD SOURCE q ON INSERT WHERE " + "(" * 30_000 + "a" + ")" * 30_000,
        "DROP TOPIC " + ".".join(["a"] * 30_000),
        "SELECT " + "/*" * 30_000,
        "SELECT " + "$a$" * 20_000,
        "SELECT '" + "''" * 30_000,
        "CREATE TOPIC t WITH (" + "retention = 1," * 4_000 + ")",
        "CONSUME FROM t LIMIT " + "9" * 60_000,
    ],
    ids=lambda text: text[:24],
)
def test_the_longest_texts_take_little_time(text: str) -> None:
    begun = process_time()
    with contextlib.suppress(InvalidArgument):
        parse(text)
    assert process_time() - begun < 5


# --- any text -------------------------------------------------------------------------------------


@given(STATEMENTS)
@settings(deadline=None, max_examples=150)
def test_what_is_printed_is_read_again(statement: made.Statement) -> None:
    assert parse(printed(statement)) == [statement]


@given(TEXTS, PARAMS)
@example("\ud800", [])
@example("DROP TOPIC $0", ["a"])
@settings(deadline=None, max_examples=250)
def test_any_text_is_read_or_refused_with_a_sentence(text: str, params: list[object]) -> None:
    try:
        found = parse(text, params)
    except InvalidArgument as error:
        sentence, found = error.sentence, []
    else:
        sentence = "it was read"
    assert 0 < len(sentence) < 2000
    assert [parse(printed(each)) for each in found] == [[each] for each in found]


def test_bounds_may_be_wider() -> None:
    found = parse("DROP TOPIC a;" * 6_000, bounds=Bounds(chars_max=1 << 20, statements_max=10_000))

    assert len(found) == 6_000
