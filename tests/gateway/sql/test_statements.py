"""`POST /v1/api/sql`: KalamDB's requests, answers and errors."""

import asyncio
import base64
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import queueber
from queueber.errors import Unavailable
from queueber.gateway.settings import GatewaySettings
from queueber.gateway.sql.failures import SqlProblem
from queueber.gateway.sql.statements import SqlRequest, run_sql
from queueber.testing import ServerProcess, running_server
from tests.support.callers import add_token
from tests.support.http import Answered, GatewayProcess, running_gateway


def ask(gateway: GatewayProcess, sql: str, *params: object) -> Answered:
    return gateway.ask("POST", "/v1/api/sql", {"sql": sql, "params": list(params)})


def test_success_has_a_result_for_each_statement(gateway: GatewayProcess, topic: str) -> None:
    answer = ask(gateway, f"CREATE TOPIC {topic}; SHOW TOPICS LIKE '{topic}'")

    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    told = answer.json
    assert told.pop("took") > 0
    assert told == {
        "status": "success",
        "results": [
            {"row_count": 1, "as_user": "", "message": f"topic {topic} created"},
            {
                "row_count": 1,
                "as_user": "",
                "schema": [
                    {"name": "topic", "data_type": "Text", "index": 0},
                    {"name": "alias", "data_type": "Text", "index": 1},
                    {"name": "partitions", "data_type": "Int", "index": 2},
                    {"name": "messages", "data_type": "BigInt", "index": 3},
                    {"name": "bytes", "data_type": "BigInt", "index": 4},
                    {"name": "groups", "data_type": "Int", "index": 5},
                    {"name": "sources", "data_type": "Int", "index": 6},
                    {"name": "closed", "data_type": "Boolean", "index": 7},
                ],
                "rows": [[topic, None, 1, "0", "0", 0, 0, False]],
            },
        ],
    }


@pytest.mark.parametrize(
    ("sql", "params", "status", "code", "message"),
    [
        ("", [], 400, "EMPTY_SQL", "there is no statement"),
        ("CREAT TOPIC a", [], 400, "INVALID_SQL", "line 1, column 1: 'CREAT' does not go here"),
        ("DROP TOPIC $1", [], 400, "INVALID_PARAMETER", "needs parameter 1"),
        ("DROP TOPIC $1", [{"a": 1}], 400, "INVALID_PARAMETER", "is of type dict"),
        ("DROP TOPIC $1; DROP TOPIC $1", ["a"], 400, "PARAMS_WITH_BATCH", "one statement"),
        ("DROP TOPIC nowhere", [], 404, "TABLE_NOT_FOUND", "none named nowhere"),
        ("CLEAR TOPIC nowhere", [], 404, "TABLE_NOT_FOUND", "nowhere"),
        ("CREATE TOPIC a PARTITIONS 1000", [], 400, "SQL_EXECUTION_ERROR", "partitions"),
        ("SELECT repeat('x', 2000000000)", [], 413, "SQL_EXECUTION_ERROR", "MiB of memory"),
        ("SELECT * FROM range(10001)", [], 413, "SQL_EXECUTION_ERROR", "more than 10000 rows"),
        ("SELECT 'a'::INT", [], 400, "SQL_EXECUTION_ERROR", "values: Could not convert string"),
        ("SELECT TIMESTAMP 'infinity'", [], 400, "SQL_EXECUTION_ERROR", "outside the years"),
        ("SELECT\n 1 +", [], 400, "INVALID_SQL", "line 2, column 4: something is missing"),
        ("SELECT 1 2", [], 400, "INVALID_SQL", "line 1, column 10: '2' does not go here"),
        ('SELECT 1 AS "a', [], 400, "INVALID_SQL", "has no end"),
        ('CREATE TOPIC "ä"', [], 400, "SQL_EXECUTION_ERROR", "is not the name of a topic"),
    ],
)
def test_errors_have_codes_and_a_sentence(
    gateway: GatewayProcess, sql: str, params: list[object], status: int, code: str, message: str
) -> None:
    answer = ask(gateway, sql, *params)

    told = answer.json
    assert (answer.status, answer.headers["content-type"]) == (status, "application/json")
    assert (told["status"], told["results"], told["error"]["code"]) == ("error", [], code)
    assert message in told["error"]["message"]
    assert told["error"]["details"] is None
    assert told["took"] >= 0


def test_the_statement_that_failed_is_told_and_those_before_have_happened(
    gateway: GatewayProcess, topic: str
) -> None:
    answer = ask(gateway, f"CREATE TOPIC {topic}; DROP TOPIC {topic}x; DROP TOPIC {topic}")

    assert (answer.status, answer.json["error"]["code"]) == (404, "TABLE_NOT_FOUND")
    assert answer.json["error"]["details"] == f"statement 2 of 3: DROP TOPIC {topic}x"
    assert ask(gateway, f"DESCRIBE {topic}").status == 200


def test_a_namespace_has_no_effect(gateway: GatewayProcess, topic: str) -> None:
    body = {"sql": f"CREATE NAMESPACE app; CREATE TOPIC {topic}", "namespace_id": "other"}

    answer = gateway.ask("POST", "/v1/api/sql", body)

    assert [each["row_count"] for each in answer.json["results"]] == [0, 1]


@pytest.mark.parametrize("body", [{}, {"sql": 5}, {"sql": "SHOW TABLES", "params": "a"}, []])
def test_a_body_of_another_form_is_refused(gateway: GatewayProcess, body: object) -> None:
    answer = gateway.ask("POST", "/v1/api/sql", raw=json.dumps(body).encode(),
                         headers={"content-type": "application/json"})  # fmt: skip

    assert (answer.status, answer.json["error"]["code"]) == (400, "INVALID_PARAMETER")


def test_a_large_answer_comes_whole(
    gateway: GatewayProcess, server: ServerProcess, topic: str
) -> None:
    payloads = [b"%d" % at * 1000 for at in range(3000)]
    with queueber.connect(server.address) as client:
        client.topic(topic).publish(payloads)

    answer = ask(gateway, f"SELECT payload FROM topic('{topic}') ORDER BY \"offset\"")

    [result] = answer.json["results"]
    assert [base64.b64decode(row[0]) for row in result["rows"]] == payloads


def test_queries_are_answered_with_their_types(gateway: GatewayProcess) -> None:
    sql = "SELECT 1 AS a, 2::BIGINT AS b, 'x' AS c, [1] AS d, TIMESTAMPTZ '2026-11-18 09:00Z' AS e"

    [result] = ask(gateway, sql).json["results"]

    assert [each["data_type"] for each in result["schema"]] == [
        "Int", "BigInt", "Text", "Json", "DateTime",
    ]  # fmt: skip
    assert result["rows"] == [[1, "2", "x", [1], "2026-11-18T09:00:00+00:00"]]
    assert ask(gateway, "SELECT $1::INTEGER+$2::INTEGER AS n", 1, 2).json["results"][0]["rows"] == [
        [3]
    ]


@pytest.mark.parametrize(
    ("sql", "params", "code"),
    [
        ("SELECT FROM WHERE", [], "INVALID_SQL"),
        ("SELECT * FROM topic('nowhere')", [], "TABLE_NOT_FOUND"),
        ("SELECT * FROM system.nowhere", [], "TABLE_NOT_FOUND"),
        ("SELECT $1", [], "INVALID_PARAMETER"),
        ("SELECT nowhere FROM system.topics", [], "INVALID_SQL"),
    ],
)
def test_queries_that_cannot_be_answered(
    gateway: GatewayProcess, sql: str, params: list[object], code: str
) -> None:
    answer = ask(gateway, sql, *params)

    assert answer.json["error"]["code"] == code, answer.body


CHANGES = (
    "CREATE TOPIC u",
    "DROP TOPIC t",
    "CLEAR TOPIC t",
    "ALTER TOPIC t SET PARTITIONS 2",
    "ALTER TOPIC t SET RETENTION WITH (retention_seconds = 1)",
    "ALTER TOPIC t CLEAR RETENTION",
    "ALTER TOPIC t ADD SOURCE q ON INSERT",
    "ALTER TOPIC t DROP SOURCE q",
    "DROP CONSUMER GROUP IF EXISTS g ON t",
    "RESET CONSUMER GROUP g ON t TO EARLIEST",
)
USES = ("CONSUME FROM t GROUP g", "ACK t GROUP g UPTO OFFSET 0")
LOOKS = (
    "CONSUME FROM t FROM EARLIEST",
    "SHOW GROUPS ON t",
    "DESCRIBE TOPIC t",
    "DESCRIBE QUEUE q",
    "SELECT * FROM topic('t')",
)


def test_rights_are_those_of_the_caller(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    held = {role: add_token(tokens, role) for role in ("reader", "admin", "user", "service", "dba")}
    with (
        running_server("--tokens-file", str(tokens)) as server,
        queueber.connect(server.address, token=held["admin"]) as admin,
        running_gateway(server.address) as gateway,
    ):

        def as_role(role: str, sql: str) -> Answered:
            gateway.headers["authorization"] = f"Bearer {held[role]}"
            return ask(gateway, sql)

        admin.create_queue("q")
        assert as_role("admin", "CREATE TOPIC t").json["results"][0]["as_user"] == "admin"
        admin.topic("t").publish([b"a"])
        refused = {
            "reader": (*CHANGES, *USES),
            "user": (*CHANGES, *USES, *LOOKS),
            "service": CHANGES,
        }
        for role, texts in refused.items():
            for sql in texts:
                answer = as_role(role, sql)
                code = "TABLE_NOT_FOUND" if sql.startswith("SELECT") else "PERMISSION_DENIED"
                assert answer.json["error"]["code"] == code, (role, sql, answer.body)
        allowed = {"reader": LOOKS, "service": (*LOOKS, *USES), "dba": (*LOOKS, *USES, CHANGES[0])}
        for role, texts in allowed.items():
            for sql in texts:
                assert as_role(role, sql).status == 200, (role, sql)
        assert as_role("reader", "SHOW TOPICS").json["results"][0]["row_count"] == 2
        assert as_role("user", "SHOW TOPICS").json["results"][0]["row_count"] == 0
        del gateway.headers["authorization"]
        assert ask(gateway, "SHOW TOPICS").status == 401


def test_consume_leases_for_as_long_as_the_gateway_is_set_to(server: ServerProcess) -> None:
    with (
        running_gateway(server.address, "--consume-lease-ms", "200") as gateway,
        queueber.connect(server.address) as client,
    ):
        client.topic("leased-by-sql").publish([b"a", b"b"])
        consume = "CONSUME FROM leased-by-sql GROUP g FROM EARLIEST LIMIT 1"

        def payloads() -> list[bytes]:
            rows = ask(gateway, consume).json["results"][0]["rows"]
            return [base64.b64decode(row[4]) for row in rows]

        assert [payloads(), payloads(), payloads()] == [[b"a"], [b"b"], []]
        give_up_at = time.monotonic() + 20
        while not (again := payloads()):
            assert time.monotonic() < give_up_at
        assert again == [b"a"]


def test_what_was_consumed_is_given_back_if_the_caller_hangs_up(
    gateway: GatewayProcess, server: ServerProcess, topic: str
) -> None:
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r"
    consume = f"CONSUME FROM {topic} GROUP g FROM EARLIEST; CREATE TOPIC {topic}.consumed"
    body = {"sql": f"{consume}; {endless}"}
    with queueber.connect(server.address) as client:
        client.topic(topic).publish([b"a", b"b"])

        def wait_for(is_so: Callable[[], bool]) -> None:
            give_up_at = time.monotonic() + 20
            while not is_so():
                assert time.monotonic() < give_up_at

        calling = gateway.connection()
        json_type = {"content-type": "application/json"}
        calling.request("POST", "/v1/api/sql", json.dumps(body), json_type)
        wait_for(lambda: f"{topic}.consumed" in client.topics(topic))
        calling.close()
        group = client.topic(topic)
        wait_for(lambda: group.describe_group("g").leased == 0)  # their lease is that of a minute


def test_who_calls_is_asked_before_a_statement_has_taken_effect() -> None:
    class Lost:
        """A client without its server; it has no other methods."""

        async def who_am_i(self) -> None:
            raise Unavailable("the server is away")

    asked = SqlRequest("DROP TOPIC t")
    call: Any = SimpleNamespace(settings=GatewaySettings(), body=asked, state={}, client=Lost())

    with pytest.raises(SqlProblem) as refused:
        asyncio.run(run_sql(call))

    assert (refused.value.status, refused.value.detail) == (503, "the server is away")


def test_more_calls_than_the_bound_are_told_to_come_later(server: ServerProcess) -> None:
    with running_gateway(server.address, "--sql-calls-max", "1") as gateway:
        with ThreadPoolExecutor(8) as threads:
            many = ";".join(["SHOW TOPICS"] * 50)
            answers = list(threads.map(lambda _: ask(gateway, many), range(24)))

        assert {each.status for each in answers} == {200, 429}
        refused = next(each for each in answers if each.status == 429)
        assert refused.json["error"]["code"] == "RATE_LIMIT_EXCEEDED"
        assert refused.headers["retry-after"] == "1"
        assert ask(gateway, "SHOW TABLES").status == 200


def test_statements_are_ended_after_their_time(server: ServerProcess) -> None:
    with running_gateway(server.address, "--sql-timeout-ms", "100") as gateway:
        ask(gateway, ";".join(f"CREATE TOPIC IF NOT EXISTS many.t{at}" for at in range(100)))
        answer = ask(gateway, ";".join(["SHOW TOPICS"] * 100))

        assert (answer.status, answer.json["error"]["code"]) == (413, "SQL_EXECUTION_ERROR")
        assert "longer than 0.1 seconds" in answer.json["error"]["message"]
