"""Statements against a real server, through `client.sql`, blocking and awaited."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import trio

import queueber
from queueber import AlreadyExists, InvalidArgument, NotFound, OutOfRange
from queueber.sql.bounds import Bounds
from queueber.sql.execute import RUNS, execute
from queueber.sql.select.columns import SYSTEM
from queueber.sql.statements import Consume, Select, Statement
from queueber.sql.system_tables import SYSTEM_TABLES
from queueber.testing import ServerProcess


def test_every_statement_has_its_function() -> None:
    assert {*RUNS, Consume, Select} == set(Statement.__args__)


def test_create_topic_stores_every_setting(client: queueber.Client, topic: str) -> None:
    answer = client.sql(
        f"CREATE TOPIC {topic} PARTITIONS 3 WITH (retention_seconds = 60,"
        f" retention_max_bytes = 1000, retention_messages = 5, alias = '{topic}.alias',"
        " content_type = 'application/json', deletes_acknowledged = TRUE, ttl = NULL,"
        " dedup_window = 1.5, expires_at = '2099-01-01T00:00:00Z')"
    )

    assert answer.message == f"topic {topic} created"
    info = client.describe_topic(f"{topic}.alias")
    settings = info.config.settings
    assert (info.config.partitions, info.config.content_type) == (3, "application/json")
    assert (settings.retention_ms, settings.retention_bytes) == (60_000, 1000)
    assert (settings.retention_messages, settings.deletes_acknowledged) == (5, True)
    assert (settings.ttl_ms, settings.dedup_window_ms) == (0, 1500)
    assert settings.expires_at_ms == 4_070_908_800_000


def test_create_topic_that_exists_is_refused_unless_that_is_said(
    client: queueber.Client, topic: str
) -> None:
    client.sql(f"CREATE TOPIC {topic}")

    for text in (f"CREATE TOPIC {topic}", f"CREATE TOPIC {topic} PARTITIONS 2"):
        with pytest.raises(AlreadyExists):
            client.sql(text)
    assert "exists" in client.sql(f"CREATE TOPIC IF NOT EXISTS {topic} PARTITIONS 2").message
    assert client.describe_topic(topic).config.partitions == 1


def test_drop_topic_that_is_not_there_is_refused_unless_that_is_said(
    client: queueber.Client, topic: str
) -> None:
    client.sql(f"CREATE TOPIC {topic}; DROP TOPIC {topic}")

    with pytest.raises(NotFound):
        client.sql(f"DROP TOPIC {topic}")
    assert client.sql(f"DROP TOPIC IF EXISTS {topic}").results[0].row_count == 0


def test_clear_topic_deletes_its_messages_and_keeps_its_offsets(
    client: queueber.Client, topic: str
) -> None:
    client.sql(f"CREATE TOPIC {topic}")
    client.topic(topic).publish([b"a", b"b"])

    assert client.sql(f"CLEAR TOPIC {topic}").results[0].row_count == 2

    [partition] = client.describe_topic(topic).partitions
    assert (partition.first_offset, partition.next_offset) == (2, 2)


def test_retention_is_set_kept_and_cleared(client: queueber.Client, topic: str) -> None:
    client.sql(f"CREATE TOPIC {topic} WITH (retention_messages = 9)")

    client.sql(f"ALTER TOPIC {topic} SET RETENTION WITH (retention_seconds = 60)")
    client.sql(f"ALTER TOPIC {topic} SET RETENTION WITH (retention_max_bytes = 7)")
    settings = client.describe_topic(topic).config.settings
    found = (settings.retention_ms, settings.retention_bytes, settings.retention_messages)
    assert found == (60_000, 7, 9)

    client.sql(f"ALTER TOPIC {topic} CLEAR RETENTION")
    settings = client.describe_topic(topic).config.settings
    found = (settings.retention_ms, settings.retention_bytes, settings.retention_messages)
    assert found == (0, 0, 0)


def test_alter_topic_sets_partitions_and_other_settings(
    client: queueber.Client, topic: str
) -> None:
    client.sql(f"CREATE TOPIC {topic}")

    client.sql(f"ALTER TOPIC {topic} SET PARTITIONS 4 WITH (keeps_last_per_key = TRUE)")

    config = client.describe_topic(topic).config
    assert (config.partitions, config.settings.keeps_last_per_key) == (4, True)


def test_groups_are_shown_reset_and_dropped(client: queueber.Client, topic: str) -> None:
    client.sql(f"CREATE TOPIC {topic} PARTITIONS 2")
    handle = client.topic(topic)
    for partition in (0, 1):
        handle.publish([b"a", b"b", b"c"], partition=partition)
    handle.create_group("g", start="latest")

    def cursors() -> Any:
        return client.sql(f"SHOW GROUPS ON {topic}").dicts()[0]["cursors"]

    assert cursors() == "3,3"
    client.sql(f"RESET CONSUMER GROUP 'g' ON {topic} TO 1")
    assert cursors() == "1,3"
    client.sql(f"RESET CONSUMER GROUP 'g' ON {topic} PARTITION 1 TO OFFSET 2")
    assert cursors() == "1,2"
    client.sql(f"RESET CONSUMER GROUP g ON {topic} TO EARLIEST")
    assert cursors() == "0,0"
    with pytest.raises(OutOfRange):
        client.sql(f"RESET CONSUMER GROUP g ON {topic} TO 99")
    client.sql(f"DROP CONSUMER GROUP g ON {topic}")
    assert client.sql(f"SHOW GROUPS ON {topic}").rows == []
    with pytest.raises(NotFound):
        client.sql(f"DROP CONSUMER GROUP g ON {topic}")


def test_topics_and_queues_are_listed_and_described(client: queueber.Client, topic: str) -> None:
    client.sql(f"CREATE TOPIC {topic} PARTITIONS 2 WITH (alias = '{topic}.short')")
    client.topic(topic).publish([b"abc"])
    client.queue("mail").add(b"hello")

    [row] = client.sql("SHOW TOPICS LIKE $1", topic).dicts()
    assert (row["topic"], row["alias"], row["partitions"]) == (topic, f"{topic}.short", 2)
    assert (row["messages"], row["groups"], row["closed"]) == (1, 0, False)
    [row] = client.sql("SHOW QUEUES LIKE 'm_il'").dicts()
    assert (row["queue"], row["ready"], row["paused"]) == ("mail", 1, False)
    told = dict(client.sql(f"DESCRIBE {topic}").rows)
    assert (told["topic"], told["partitions"]) == (topic, "2")
    assert dict(client.sql("DESCRIBE mail").rows)["ready"] == "1"
    assert dict(client.sql("DESCRIBE QUEUE mail").rows)["queue"] == "mail"
    with pytest.raises(NotFound, match="no topic, queue or system table named nowhere"):
        client.sql("DESCRIBE nowhere")
    with pytest.raises(NotFound, match="SHOW TABLES"):
        client.sql("DESCRIBE TABLE mail")
    assert ("system.topics",) in client.sql("SHOW TABLES").rows


def test_the_first_failure_ends_a_text_and_says_where(client: queueber.Client, topic: str) -> None:
    with pytest.raises(NotFound) as failed:
        client.sql(f"CREATE TOPIC {topic}; DROP TOPIC {topic}x; DROP TOPIC {topic}")

    assert failed.value.__notes__ == [f"statement 2 of 3: DROP TOPIC {topic}x"]
    assert client.describe_topic(topic).name == topic


def test_a_mistake_in_the_last_statement_runs_none(client: queueber.Client, topic: str) -> None:
    with pytest.raises(InvalidArgument, match="line 1, column"):
        client.sql(f"CREATE TOPIC {topic}; DROP TOPC {topic}")

    with pytest.raises(NotFound):
        client.describe_topic(topic)


@pytest.mark.parametrize("run", [asyncio.run, trio.run])
def test_awaited_in_asyncio_and_in_trio(run: Any, server: ServerProcess, topic: str) -> None:
    async def main() -> tuple[str, list[Any]]:
        async with queueber.connect_async(server.address) as client:
            made = await client.sql("CREATE TOPIC $1 PARTITIONS $2", topic, 2)
            return made.message, (await client.sql("SHOW TOPICS LIKE ?", topic)).dicts()

    message, [row] = run(main) if run is trio.run else run(main())

    assert (message, row["partitions"]) == (f"topic {topic} created", 2)


def _executed(server: ServerProcess, text: str, bounds: Bounds) -> Coroutine[Any, Any, Any]:
    async def main() -> Any:
        async with queueber.connect_async(server.address) as client:
            return await execute(client, text, (), bounds)

    return main()


def test_an_answer_beyond_its_bytes_is_refused(server: ServerProcess) -> None:
    with pytest.raises(queueber.ResourceExhausted, match="more than 10 bytes; ask for less"):
        asyncio.run(_executed(server, "SHOW TABLES", Bounds(answer_bytes_max=10)))


def test_statements_that_take_too_long_are_ended(server: ServerProcess, topic: str) -> None:
    with pytest.raises(queueber.ResourceExhausted, match="longer than 0 seconds; ask for less"):
        asyncio.run(_executed(server, "SHOW TOPICS", Bounds(seconds_max=0)))
    with pytest.raises(queueber.OutcomeUnknown, match="may or may not have taken effect"):
        asyncio.run(_executed(server, f"CREATE TOPIC {topic}", Bounds(seconds_max=0)))


def test_the_system_tables_are_those_of_queries() -> None:
    assert {*SYSTEM} == {*SYSTEM_TABLES}


def test_a_group_consumes_and_acknowledges_each_partition_by_itself(
    client: queueber.Client, topic: str
) -> None:
    client.sql(f"CREATE TOPIC {topic} PARTITIONS 2")
    for partition in (0, 1):
        client.topic(topic).publish([b"%d" % partition] * 3, partition=partition)

    def consumed(partition: int, limit: int) -> list[Any]:
        sql = "CONSUME FROM $1 GROUP 'g' PARTITION $2 FROM EARLIEST LIMIT $3"
        found = client.sql(sql, topic, partition, limit).dicts()
        assert {each["payload"] for each in found} <= {b"%d" % partition}
        return [each["offset"] for each in found]

    assert (consumed(1, 2), consumed(0, 1)) == ([0, 1], [0])
    assert client.sql(f"ACK {topic} GROUP 'g' PARTITION 1 UPTO OFFSET 1").dicts() == [
        {"topic": topic, "group_id": "g", "partition": 1, "committed_offset": 1}
    ]
    assert client.sql(f"SHOW GROUPS ON {topic}").dicts()[0]["cursors"] == "0,2"
    assert (consumed(1, 9), consumed(0, 9)) == ([2], [1, 2])


def _consume(topic: str, limit: int) -> str:
    return f"CONSUME FROM {topic} GROUP g FROM EARLIEST LIMIT {limit}"


def _leased(client: queueber.Client, topic: str) -> int:
    return client.topic(topic).describe_group("g").leased


@pytest.mark.parametrize("later", ["DROP TOPIC nowhere", "SELECT nowhere", "SHOW TABLES"])
def test_what_was_consumed_is_given_back_if_a_later_statement_fails(
    server: ServerProcess, client: queueber.Client, topic: str, later: str
) -> None:
    client.topic(topic).publish([b"a", b"b", b"c"])
    bounds = Bounds(answer_bytes_max=250)
    text = f"{_consume(topic, 1)}; {_consume(topic, 2)}; {later}"

    with pytest.raises(queueber.QueueberError) as refused:
        asyncio.run(_executed(server, text, bounds))

    assert refused.value.__notes__ == [f"statement 3 of 3: {later}"]
    assert _leased(client, topic) == 0
    assert [row[2] for row in client.sql(_consume(topic, 9))] == [0, 1, 2]


def test_what_was_acknowledged_stays_so_if_a_later_statement_fails(
    client: queueber.Client, topic: str
) -> None:
    client.topic(topic).publish([b"a", b"b", b"c"])

    with pytest.raises(NotFound):
        client.sql(f"{_consume(topic, 2)}; ACK {topic} GROUP g UPTO OFFSET 0; DROP TOPIC nowhere")

    assert [row[2] for row in client.sql(_consume(topic, 9))] == [1, 2]


def test_consume_leases_no_more_than_the_answer_has_room_for(
    server: ServerProcess, client: queueber.Client, topic: str
) -> None:
    client.topic(topic).publish([bytes(1000)] * 9)
    text = "; ".join([_consume(topic, 3)] * 2)

    first, second = asyncio.run(_executed(server, text, Bounds(answer_bytes_max=5000)))

    assert [row[2] for row in (*first.rows, *second.rows)] == [0, 1, 2, 3]
    assert _leased(client, topic) == 4
    with pytest.raises(queueber.ResourceExhausted, match="more than 900 bytes"):
        asyncio.run(_executed(server, _consume(topic, 9), Bounds(answer_bytes_max=900)))
    with pytest.raises(queueber.ResourceExhausted, match="more than 3000 bytes"):
        asyncio.run(_executed(server, f"{text}; {text}", Bounds(answer_bytes_max=3000)))
    assert _leased(client, topic) == 4


def test_who_published_a_message_is_its_user(client: queueber.Client, topic: str) -> None:
    named = queueber.NewMessage(b"a", attributes={"queueber.user": "ann"})
    client.topic(topic).publish([named, b"b"])

    found = client.sql(f"CONSUME FROM {topic} FROM EARLIEST").dicts()

    assert [each["user_id"] for each in found] == ["ann", None]


def test_ack_and_reset_create_the_group_that_there_is_not(
    client: queueber.Client, topic: str
) -> None:
    client.topic(topic).publish([b"a", b"b", b"c"])

    assert client.sql(f"ACK {topic} GROUP a UPTO OFFSET 1").rows == [(topic, "a", 0, 1)]
    client.sql(f"RESET CONSUMER GROUP r ON {topic} TO 2")
    client.sql(f"RESET CONSUMER GROUP e ON {topic} TO EARLIEST")

    found = {each: client.sql(f"CONSUME FROM {topic} GROUP {each}").rows for each in "are"}
    assert {name: len(rows) for name, rows in found.items()} == {"a": 1, "r": 1, "e": 3}
    with pytest.raises(OutOfRange, match="offset is 9; partition 0 of"):
        client.sql(f"RESET CONSUMER GROUP x ON {topic} TO 9")
    assert [each.name for each in client.topic(topic).groups()] == ["a", "e", "r"]
    with pytest.raises(NotFound):
        client.sql("ACK nowhere GROUP g UPTO OFFSET 0")
