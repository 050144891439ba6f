"""The validation checklist of KalamDB's document on topics, line by line, through SQL over HTTP."""

import base64
import time
from typing import Any

import pytest

import queueber
from queueber.testing import ServerProcess
from tests.gateway.sql.test_statements import ask
from tests.support.http import GatewayProcess


def rows(gateway: GatewayProcess, sql: str, *params: object) -> list[dict[str, Any]]:
    """The rows of the last statement, by the names of its columns."""
    answer = ask(gateway, sql, *params)
    assert answer.status == 200, answer.body
    result = answer.json["results"][-1]
    names = [column["name"] for column in result.get("schema", [])]
    return [dict(zip(names, row, strict=True)) for row in result.get("rows", [])]


@pytest.fixture
def client(server: ServerProcess) -> Any:
    with queueber.connect(server.address) as connected:
        yield connected


def offsets_of(found: list[dict[str, Any]]) -> list[int]:
    return [int(each["offset"]) for each in found]


def test_system_tables_exist_and_are_queryable(gateway: GatewayProcess) -> None:
    topics = rows(gateway, "DESCRIBE system.topics")
    assert {each["column_name"] for each in topics} >= {
        "topic_id", "name", "alias", "partitions", "retention_seconds", "retention_max_bytes",
        "routes", "created_at",
    }  # fmt: skip
    offsets = rows(gateway, "DESCRIBE system.topic_offsets")
    assert {each["column_name"] for each in offsets} >= {
        "topic_id", "group_id", "partition_id", "last_acked_offset", "updated_at",
    }  # fmt: skip
    assert rows(gateway, "SELECT count(*) AS n FROM system.topics")[0]["n"].isdigit()


def test_create_topic_persists_metadata(
    gateway: GatewayProcess, server: ServerProcess, topic: str
) -> None:
    rows(
        gateway,
        f"CREATE TOPIC {topic} PARTITIONS 4 WITH (retention_seconds = 3600, "
        f"retention_max_bytes = 1000000, alias = '{topic}.alias')",
    )
    server.kill()
    server.start()

    [found] = rows(gateway, "SELECT * FROM system.topics WHERE name = $1", topic)

    assert (found["partitions"], found["alias"]) == (4, f"{topic}.alias")
    assert (int(found["retention_seconds"]), int(found["retention_max_bytes"])) == (3600, 1_000_000)


def test_alter_topic_add_source_creates_a_route(
    gateway: GatewayProcess, client: queueber.Client, topic: str
) -> None:
    queue = f"{topic}.messages"
    client.create_queue(queue)
    rows(gateway, f"CREATE TOPIC {topic}")
    rows(
        gateway,
        f"ALTER TOPIC {topic} ADD SOURCE {queue} ON INSERT WHERE (is_visible = true AND "
        "channel_id = 42) PARTITION BY (user_id) WITH (payload = 'key')",
    )

    assert rows(gateway, f"SHOW SOURCES ON {topic}") == [
        {
            "topic": topic,
            "queue": queue,
            "op": "insert",
            "payload_mode": "key",
            "filter_expr": "(is_visible = true AND channel_id = 42)",
            "partition_key_expr": "user_id",
        }
    ]
    again = ask(gateway, f"ALTER TOPIC {topic} ADD SOURCE {queue} ON INSERT")
    assert (again.status, again.json["error"]["code"]) == (409, "SQL_EXECUTION_ERROR")
    bad = ask(gateway, f"ALTER TOPIC {topic} ADD SOURCE {queue} ON UPDATE WHERE a = = 1")
    assert bad.status == 400


def test_change_events_append_to_topic_logs(
    gateway: GatewayProcess, client: queueber.Client, topic: str
) -> None:
    queue = client.queue(f"{topic}.q")
    client.create_queue(queue.name)
    for operation in ("INSERT", "UPDATE", "DELETE"):
        rows(
            gateway,
            f"CREATE TOPIC IF NOT EXISTS {topic}; ALTER TOPIC {topic} ADD SOURCE {queue.name} "
            f"ON {operation} WITH (payload = 'full')",
        )

    queue.add(b"work")
    lease = queue.poll()
    assert lease is not None
    lease.fail("no answer", delay=0)
    queue.poll().remove()

    found = rows(gateway, f"CONSUME FROM {topic} FROM EARLIEST")
    assert [each["op"] for each in found] == ["insert", "update", "delete"]
    assert offsets_of(found) == [0, 1, 2]
    assert base64.b64decode(found[0]["payload"]) == b"work"


def test_consume_supports_earliest_latest_and_offset(
    gateway: GatewayProcess, client: queueber.Client, topic: str
) -> None:
    rows(gateway, f"CREATE TOPIC {topic} WITH (alias = '{topic}.alias')")
    client.topic(topic).publish([b"a", b"b", b"c"])

    assert offsets_of(rows(gateway, f"CONSUME FROM {topic} FROM EARLIEST")) == [0, 1, 2]
    assert offsets_of(rows(gateway, f"CONSUME FROM {topic} FROM LATEST")) == []
    assert offsets_of(rows(gateway, f"CONSUME FROM {topic}")) == []
    assert offsets_of(rows(gateway, f"CONSUME FROM {topic} FROM OFFSET 1")) == [1, 2]
    assert offsets_of(rows(gateway, f"CONSUME FROM {topic} FROM 1 LIMIT 1")) == [1]
    assert offsets_of(rows(gateway, f"CONSUME FROM {topic} FROM EARLIEST LIMIT 0")) == []
    assert offsets_of(rows(gateway, f"CONSUME FROM {topic}.alias FROM EARLIEST LIMIT 2")) == [0, 1]
    refused = ask(gateway, f"CONSUME FROM {topic} FROM OFFSET 99")
    assert (refused.status, refused.json["error"]["code"]) == (416, "SQL_EXECUTION_ERROR")


def test_ack_updates_offsets_correctly(
    gateway: GatewayProcess, client: queueber.Client, topic: str
) -> None:
    rows(gateway, f"CREATE TOPIC {topic}")
    client.topic(topic).publish([b"%d" % at for at in range(6)])
    consume = f"CONSUME FROM {topic} GROUP 'ai-service' FROM EARLIEST LIMIT 2"

    def stored() -> list[int]:
        found = rows(
            gateway,
            "SELECT last_acked_offset FROM system.topic_offsets WHERE topic_id = $1",
            topic,
        )
        return [int(each["last_acked_offset"]) for each in found]

    assert offsets_of(rows(gateway, consume)) == [0, 1]
    assert offsets_of(rows(gateway, consume)) == [2, 3]  # what is leased is not delivered twice
    [acked] = rows(gateway, f"ACK {topic} GROUP 'ai-service' PARTITION 0 UPTO OFFSET 3")
    assert acked == {
        "topic": topic,
        "group_id": "ai-service",
        "partition": 0,
        "committed_offset": "3",
    }
    assert stored() == [3]
    [back] = rows(gateway, f"ACK {topic} GROUP 'ai-service' UPTO OFFSET 1")
    assert back["committed_offset"] == "3"  # it never goes back
    assert offsets_of(rows(gateway, consume)) == [4, 5]
    rows(gateway, f"RESET CONSUMER GROUP 'ai-service' ON {topic} TO 1")
    assert offsets_of(rows(gateway, consume)) == [1, 2]


def test_retention_prunes_old_log_entries(
    gateway: GatewayProcess, client: queueber.Client, topic: str
) -> None:
    rows(gateway, f"CREATE TOPIC {topic}")
    for _ in range(3):
        client.topic(topic).publish([bytes(1000)])

    rows(gateway, f"ALTER TOPIC {topic} SET RETENTION WITH (retention_max_bytes = 1100)")
    client.topic(topic).publish([bytes(1000)])
    assert offsets_of(rows(gateway, f"CONSUME FROM {topic} GROUP g FROM EARLIEST")) == [2, 3]

    rows(gateway, f"ALTER TOPIC {topic} SET RETENTION WITH (retention_seconds = 0.1)")
    give_up_at = time.monotonic() + 20
    while rows(gateway, f"SHOW TOPICS LIKE '{topic}'")[0]["messages"] != "0":
        assert time.monotonic() < give_up_at
    rows(gateway, f"ALTER TOPIC {topic} CLEAR RETENTION")
    assert offsets_of(rows(gateway, f"CONSUME FROM {topic} FROM EARLIEST")) == []
