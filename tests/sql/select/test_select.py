"""SELECT over every table: what it shows, and how values come back."""

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

import queueber
from queueber.sql.select import Column
from tests.sql.select.conftest import Run


def rows(run: Run, text: str, *params: object) -> list[tuple[Any, ...]]:
    return run(text, *params).rows


def test_messages_are_grouped_by_key_and_time(client: queueber.Client, run: Run) -> None:
    messages = [queueber.NewMessage(b'{"eur": %d}' % n, key=f"k{n % 3}") for n in range(10)]
    client.create_topic("grouped", partitions=3)
    client.topic("grouped").publish(messages)

    found = run(
        "SELECT key, count(*), sum((json->>'$.eur')::INT) AS eur FROM topic('grouped') "
        "WHERE ts > now() - INTERVAL '1 minute' GROUP BY key ORDER BY key"
    )

    assert found.columns == [
        Column("key", "VARCHAR"), Column("count(*)", "BIGINT"), Column("eur", "HUGEINT"),
    ]  # fmt: skip
    assert found.rows == [("k0", 4, 18), ("k1", 3, 12), ("k2", 3, 15)]


def test_message_has_all_that_was_published(client: queueber.Client, run: Run) -> None:
    sent = [
        queueber.NewMessage(b'{"a": "\xc3\xa9"}', key="k", attributes={"region": "eu", "n": "1"}),
        queueber.NewMessage(b"\xff\x00"),
    ]
    published = client.topic("whole").publish(sent)
    read = client.topic("whole").read()

    found = rows(run, "SELECT * FROM topic('whole') ORDER BY offset")

    at = datetime.fromtimestamp(published.at_ms / 1000, UTC)
    assert found == [
        (
            0, 0, at, "k", b'{"a": "\xc3\xa9"}', '{"a": "é"}', '{"a": "é"}',
            {"region": "eu", "n": "1"}, read[0].id.hex(), read[0].sequence,
        ),
        (0, 1, at, None, b"\xff\x00", None, None, {}, read[1].id.hex(), read[1].sequence),
    ]  # fmt: skip


def test_items_of_a_queue_in_every_state(client: queueber.Client, run: Run) -> None:
    client.create_queue("states", attempts_max=1)
    queue = client.queue("states")
    queue.add([b"dead"], key="d")
    lease = queue.poll()
    lease.fail("broken")
    queue.add([b"leased"], key="l")
    held = queue.poll()
    queue.add([b"ready", b"later"], key=["r", "w"], batch="b", delay=[0, 60])

    found = rows(
        run,
        "SELECT key, state, text, batch, attempts, lease, last_error, queue.state = state "
        "FROM queue('states') AS queue ORDER BY key",
    )

    assert found == [
        ("d", "dead", "dead", None, 1, None, "broken", True),
        ("l", "leased", "leased", None, 0, held.id.hex(), None, True),
        ("r", "ready", "ready", "b", 0, None, None, True),
        ("w", "delayed", "later", "b", 0, None, None, True),
    ]
    assert rows(run, "SELECT key FROM dead('states')") == [("d",)]
    assert rows(run, "SELECT key FROM queue('states') WHERE batch = 'b' AND state = 'ready'") == [
        ("r",)
    ]


def test_items_that_wait_are_rows_with_what_they_wait_for(
    client: queueber.Client, run: Run
) -> None:
    queue = client.queue("awaited")
    [first] = queue.add([b"first"], batch="night")
    queue.add([b"second"], after=[first], after_batch="night")

    found = rows(run, "SELECT text, after, after_batch FROM queue('awaited') ORDER BY text")

    assert found == [("first", [], None), ("second", [first.hex()], "night")]


def test_results_are_what_is_done_and_what_is_dead(client: queueber.Client, run: Run) -> None:
    client.create_queue("results", attempts_max=1)
    queue = client.queue("results")
    queue.add([b"1", b"2", b"3"], key=["a", "b", "c"], batch="night")
    lease = queue.poll(3)
    queue.complete(lease.ids[:2], [b'{"n": 1}', b'{"n": 2}'], lease=lease.id)
    queue.fail(lease.ids[2:], "broken", lease=lease.id)

    found = rows(
        run, "SELECT offset, key, status, json->>'n', error FROM results('results') ORDER BY key"
    )

    assert found == [
        (0, "a", "done", "1", None),
        (1, "b", "done", "2", None),
        (None, "c", "dead", None, "broken"),
    ]
    assert rows(run, "SELECT key FROM results('results') WHERE status = 'dead'") == [("c",)]
    assert rows(run, "SELECT key FROM results('results') WHERE offset >= 1") == [("b",)]
    assert rows(run, "SELECT key FROM results('results') WHERE batch = 'day'") == []


def test_system_tables_tell_of_topics_and_groups(client: queueber.Client, run: Run) -> None:
    client.create_topic("told", partitions=2, retention=3600, alias="told-too")
    topic = client.topic("told")
    topic.create_group("g")
    topic.publish([b"1", b"2", b"3"], partition=1)
    topic.ack("g", 2, partition=1)

    (found,) = rows(
        run,
        "SELECT topic_id, alias, partitions, retention_seconds, messages, groups, "
        "json_array_length(routes), is_closed FROM system.topics WHERE name = 'told'",
    )
    offsets = rows(
        run,
        "SELECT group_id, partition_id, last_acked_offset, lag, kind, updated_at FROM "
        "system.topic_offsets WHERE topic_id = $1 ORDER BY ALL",
        "told",
    )

    assert found == ("told", "told-too", 2, 3600, 3, ["g"], 0, False)
    assert offsets == [
        ("g", 0, None, 0, "ordered", None),
        ("g", 1, 1, 1, "ordered", None),
    ]


def test_system_topics_tell_of_routes_in_both_languages(client: queueber.Client, run: Run) -> None:
    client.create_queue("routed")
    client.topic("routed").add_source(
        "routed", on="update", where="attempt > 1", partition_by="contents.a", payload="full"
    )

    ((sources, routes),) = rows(
        run, "SELECT sources, routes FROM system.topics WHERE topic_id = 'routed'"
    )

    assert json.loads(sources) == [
        {
            "queue": "routed",
            "on": "update",
            "where": "attempt > 1",
            "partition_by": "contents.a",
            "payload": "full",
        }
    ]
    assert json.loads(routes) == [
        {
            "table_id": "routed",
            "op": "Update",
            "payload_mode": "Full",
            "filter_expr": "attempt > 1",
            "partition_key_expr": "contents.a",
        }
    ]


def test_system_tables_tell_of_queues(client: queueber.Client, run: Run) -> None:
    client.create_queue("told", attempts_max=1)
    queue = client.queue("told")
    queue.add([b"1", b"2", b"3"], batch="b")
    queue.poll().fail("broken")
    lease = queue.poll()

    where = "WHERE queue = 'told'"
    counts = rows(
        run,
        "SELECT ready, leased, dead, is_paused, settings->>'attempts_max' FROM system.queues "
        "WHERE name = 'told'",
    )
    leases = rows(run, f"SELECT lease, holder_name, holder_host, items FROM system.leases {where}")
    batches = rows(run, f"SELECT batch, added, dead, live, is_complete FROM system.batches {where}")
    dead = rows(run, f"SELECT queue, text, last_error FROM system.dead_letters {where}")

    assert counts == [(1, 1, 1, False, "1")]
    assert leases == [(lease.id.hex(), "tests", "127.0.0.1", 1)]
    assert batches == [("b", 3, 1, 2, False)]
    assert dead == [("told", "1", "broken")]


def test_topics_tell_when_they_were_created_and_changed(client: queueber.Client, run: Run) -> None:
    client.create_topic("changed")
    query = "SELECT updated_at = created_at, updated_at FROM system.topics WHERE name = 'changed'"
    assert rows(run, query)[0][0] is True

    client.create_queue("changes-it")
    client.topic("changed").add_source("changes-it", on="insert")

    ((is_same, updated_at),) = rows(run, query)
    assert (is_same, updated_at.tzinfo is not None) == (False, True)


def test_leases_of_shared_groups_are_told_beside_those_of_queues(
    client: queueber.Client, run: Run
) -> None:
    client.queue("leased").add(b"1")
    client.topic("leased").publish([b"1", b"2", b"3"])
    of_queue = client.queue("leased").poll()
    window = client.topic("leased").consume("workers", limit=2, start="earliest")
    of_group = ("leased", "workers", window.lease.hex(), 2)

    of_both = (
        "SELECT queue, topic, group_id, lease, items FROM system.leases "
        "WHERE queue = 'leased' OR topic = 'leased' ORDER BY queue"
    )
    found = rows(run, of_both)
    only = rows(run, "SELECT topic, group_id, lease, items FROM system.leases WHERE topic='leased'")
    queues = rows(run, "SELECT topic, lease FROM system.leases WHERE queue = 'leased'")

    assert found == [("leased", None, None, of_queue.id.hex(), 1), (None, *of_group)]
    assert only == [of_group]
    assert queues == [(None, of_queue.id.hex())]


def test_dead_letters_of_shared_groups_are_told_beside_those_of_queues(
    client: queueber.Client, run: Run
) -> None:
    client.create_queue("dying", attempts_max=1)
    client.queue("dying").add(b"1", batch="b")
    client.queue("dying").poll().fail("of a queue")
    topic = client.topic("dying")
    topic.create_group("workers", kind="shared", attempts_max=1, start="earliest")
    topic.create_group("alive", kind="shared", start="earliest")
    topic.publish(queueber.NewMessage(b'{"n": 1}', key="k", attributes={"a": "1"}), partition=0)
    topic.publish([b"2"] * 250, partition=0)
    (read,) = topic.read(limit=1).messages
    while lease := topic.group("workers").poll(100, wait=0):
        lease.fail("of a group")

    dead = "FROM system.dead_letters WHERE"
    both = rows(
        run,
        f"SELECT queue, topic, group_id, last_error, count(*) {dead} queue = 'dying' "
        "OR topic = 'dying' GROUP BY ALL ORDER BY queue",
    )
    first = rows(
        run,
        "SELECT partition, row, key, json->>'n', state, attempts, attributes, batch, lease, "
        f"added_at, after {dead} topic = 'dying' ORDER BY row LIMIT 1",
    )
    queues = rows(run, f"SELECT topic, text {dead} queue = 'dying'")
    of_batch = rows(run, f"SELECT topic, text {dead} batch = 'b' AND queue = 'dying'")
    limited = rows(run, "SELECT row FROM system.dead_letters WHERE topic = 'dying' LIMIT 3")

    assert both == [
        ("dying", None, None, "of a queue", 1),
        (None, "dying", "workers", "of a group", 251),
    ]
    assert first == [(0, 0, "k", "1", "dead", 1, {"a": "1"}, None, None, read.timestamp, [])]
    assert queues == of_batch == [(None, "1")]
    assert len(limited) == 3


def test_tables_are_joined(client: queueber.Client, run: Run) -> None:
    client.topic("left").publish([queueber.NewMessage(b"1", key="a"), queueber.NewMessage(b"2")])
    client.queue("right").add([b"x", b"y"], key=["a", "b"])

    found = rows(
        run,
        "WITH q AS (SELECT key, text FROM queue('right')) "
        "SELECT q.key, m.text FROM q LEFT JOIN topic('left') m USING (key) ORDER BY q.key",
    )

    assert found == [("a", "1"), ("b", None)]


def test_values_of_every_type_come_back_plain(run: Run) -> None:
    ((*values,),) = rows(
        run,
        "SELECT 1, 9007199254740993, 170141183460469231731687303715884105727::HUGEINT, 1.50, "
        "0.5::DOUBLE, 'nan'::DOUBLE, true, NULL, 'é', '\\xFF'::BLOB, DATE '2026-01-02', "
        "TIMESTAMPTZ '2026-01-02 03:04:05.006+01', TIMESTAMP '2026-01-02 03:04:05', "
        "INTERVAL '1 month 2 days 3.5 seconds', [1, NULL], {'a': [2]}, MAP {'k': 1}, "
        "'{\"a\": 1}'::JSON",
    )

    assert math.isnan(values.pop(5))
    assert values == [
        1, 9007199254740993, 170141183460469231731687303715884105727, Decimal("1.50"), 0.5, True,
        None, "é", b"\xff", date(2026, 1, 2), datetime(2026, 1, 2, 2, 4, 5, 6000, UTC),
        datetime(2026, 1, 2, 3, 4, 5), "P1M2DT3.5S", [1, None], {"a": [2]}, {"k": 1}, '{"a": 1}',  # noqa: DTZ001
    ]  # fmt: skip


def test_numbers_and_bits_that_arrow_does_not_have_come_back_as_they_are(run: Run) -> None:
    largest = (1 << 128) - 1

    assert rows(run, f"SELECT {largest}::UHUGEINT, 5::UHUGEINT, '010101'::BIT") == [
        (largest, 5, "010101"),
    ]


@pytest.mark.parametrize(
    "value",
    [
        "it's", "", "$1 ? é \n", 0, -5, 1 << 100, 1.5, float("inf"), True, None, b"\x00\xff'",
        b"", Decimal("-12.340"), date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
        [1, 2, 3], ["a", "b'"],
    ],
)  # fmt: skip
def test_parameter_comes_back_as_it_was(run: Run, value: object) -> None:
    assert rows(run, "SELECT $1, $1", value) == [(value, value)]
    assert rows(run, "SELECT ?", value) == [(value,)]


def test_parameters_are_numbered_in_the_order_of_the_text(
    client: queueber.Client, run: Run
) -> None:
    client.topic("numbered").publish([b"a", b"b", b"c"])

    found = rows(
        run,
        "SELECT offset, ? FROM topic(?) WHERE text > ? ORDER BY offset LIMIT ?",
        "x", "numbered", "a", 1,
    )  # fmt: skip

    assert found == [(1, "x")]
    many = list(range(1, 12))
    assert rows(run, f"SELECT {','.join(f'${each}' for each in many)}", *many) == [tuple(many)]
    text = (
        """SELECT 'b' IN(?,?)AND 'c'=?,'$1,$2',"$1,$",$$$1,$$,e'\\'$1,'/*$1,*/"""
        """FROM(SELECT 0 "$1,$")"""
    )
    assert rows(run, text, "a", "b", "c") == [(True, "$1,$2", 0, "$1,", "'$1,")]


@pytest.mark.parametrize(
    ("path", "found"),
    [("->>'a.b'", "1"), ("->>'$.a.b'", "2"), ("->>'$..c'", ["3"]), ("->'d'->>-1", "5"),
     ("->>'/d/0'", "4"), ("->>'$.d[#-1]'", "5"), ("->>'it''s'", "6")],
)  # fmt: skip
def test_paths_into_json_are_those_of_duckdb(run: Run, path: str, found: object) -> None:
    json = """'{"a.b": 1, "a": {"b": 2, "x": {"c": 3}}, "d": [4, 5], "it''s": 6}'::JSON"""

    assert run(f"SELECT ({json}){path}").rows == [(found,)]


def test_columns_of_one_name_are_numbered(run: Run) -> None:
    found = run("SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS a, 5 AS b")

    assert [each.name for each in found.columns] == ["a", "a_2", "a_1", "a_3", "b"]
    assert len({each.name for each in run(f"SELECT 1{', 1' * 2000}").columns}) == 2001


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT TIMESTAMP '2026-11-19 08:30'::DATE", date(2026, 11, 19)),
        ("SELECT DATE '2026-11-19'::TIMESTAMP::VARCHAR", "2026-11-19 00:00:00"),
        ("SELECT TIMESTAMP '2026-11-19 08:30'::TIME::VARCHAR", "08:30:00"),
        ("SELECT round(jaro_winkler_similarity('abc', 'abd', 0.95), 4)", 0.0),
    ],
)
def test_a_statement_means_what_it_means_to_duckdb(run: Run, text: str, found: object) -> None:
    assert run(text).rows == [(found,)]


def test_the_time_is_the_same_in_the_whole_statement(run: Run) -> None:
    ((first, second, day),) = rows(
        run, "SELECT now(), (SELECT max(current_timestamp) FROM range(1000)), current_date"
    )

    assert (first, first.date()) == (second, day)
    assert abs((datetime.now(UTC) - first).total_seconds()) < 60
