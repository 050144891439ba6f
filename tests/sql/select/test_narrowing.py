"""Reading less never changes an answer: the same statement with and without it, over random rows.

And a group by, against one in plain Python.
"""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queueber
from tests.sql.select.conftest import Run

EXAMPLES = 60

KEYS = ["a", "b", "c", ""]


@pytest.fixture(scope="module")
def published(server: Any) -> list[queueber.Message]:
    """A topic of three partitions, in many publishes, and a queue in all states."""
    with queueber.connect(server.address) as client:
        client.create_topic("random", partitions=3)
        topic = client.topic("random")
        for n in range(40):
            body = json.dumps({"n": n, "even": n % 2 == 0}).encode() if n % 5 else b"\xff%d" % n
            topic.publish([queueber.NewMessage(body, key=KEYS[n % 4])] * (1 + n % 3))
        client.create_queue("random", attempts_max=1)
        queue = client.queue("random")
        queue.add([b"%d" % n for n in range(12)], batch="x", key=[f"k{n}" for n in range(12)])
        lease = queue.poll(8)
        queue.complete(lease.ids[:4], [b'{"r": 1}'] * 4, lease=lease.id)
        queue.fail(lease.ids[4:6], "broken", lease=lease.id)
        queue.add([b"y"] * 3, batch="y", delay=600)
        messages = [each for p in range(3) for each in topic.messages(p)]
    return messages


numbers = st.integers(-2, 40)
comparisons = st.sampled_from(["=", "<", "<=", ">", ">=", "<>"])
in_partition = st.one_of(
    st.builds("partition {} {}".format, comparisons, st.integers(-1, 3)),
    st.builds("{1} {0} t.partition".format, comparisons, st.integers(-1, 3)),
    st.lists(st.integers(-1, 3), min_size=1, max_size=3).map(
        lambda several: f"partition IN ({', '.join(map(str, several))})"
    ),
    st.just("partition = '1'"),
    st.just("partition = 1.5"),
    st.just("partition IN (0, NULL)"),
)
of_offset = st.one_of(
    st.builds("offset {} {}".format, comparisons, numbers),
    st.builds("t.offset {} {} + 1".format, comparisons, numbers),
    st.builds("offset BETWEEN {} AND {}".format, numbers, numbers),
    st.builds("offset NOT BETWEEN {} AND {}".format, numbers, numbers),
    st.builds("offset {} {}.5".format, comparisons, st.integers(0, 40)),
    st.builds("offset {} partition".format, comparisons),
    st.builds("offset + 1 {} {}".format, comparisons, numbers),
)
times = st.integers(0, 39).map(lambda n: f"@{n}")
"""Replaced by the time of a message."""
of_time = st.one_of(
    st.builds("ts {} '{}'".format, comparisons, times),
    st.builds("ts {} TIMESTAMPTZ '{}' + INTERVAL 1 MILLISECOND".format, comparisons, times),
    st.builds("t.ts {} CAST('{}' AS TIMESTAMP)".format, comparisons, times),
    st.builds("ts BETWEEN '{}' AND '{}'".format, times, times),
    st.builds("ts {} now() - INTERVAL {} MINUTE".format, comparisons, st.integers(0, 3)),
    st.builds("ts {} current_date".format, comparisons),
)
other = st.sampled_from(
    [
        "key = 'a'",
        "key IS NULL",
        "text LIKE '%1%'",
        "json->>'even' = 'true'",
        "NOT offset > 5",
        "true",
    ]
)
simple = st.one_of(in_partition, of_offset, of_time, other)
conditions = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds("{} AND {}".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
        st.builds("({})".format, inner),
    ),
    max_leaves=4,
)
where = st.one_of(st.just(""), conditions.map("WHERE {}".format))
limits = st.one_of(
    st.just(""),
    st.builds("LIMIT {}".format, st.integers(0, 12)),
    st.builds("LIMIT {} OFFSET {}".format, st.integers(0, 12), st.integers(0, 12)),
)
orders = st.sampled_from(
    ["", "ORDER BY sequence", "ORDER BY sequence DESC", "ORDER BY t.sequence DESC NULLS FIRST",
     "ORDER BY key, sequence", "ORDER BY -sequence", "ORDER BY sequence + 0"]
)  # fmt: skip
projections = st.sampled_from(
    ["*", "offset, partition", "text", "t.*", "offset AS ts, ts AS offset", "json->>'n' AS n, key",
     "DISTINCT key", "t", "row_number() OVER (ORDER BY sequence), offset", "unnest([1, 2]), offset",
     "COLUMNS('o.*')", "key AS sequence, offset"]
)  # fmt: skip
plain_queries = st.builds(
    "SELECT {} FROM topic('random') AS t {} {} {}".format, projections, where, orders, limits
)
groups = st.builds(
    "SELECT key, count(*), min(offset), max(text) FROM topic('random') t {} GROUP BY key "
    "HAVING count(*) > {} ORDER BY key".format,
    where,
    st.integers(0, 3),
)
joins = st.builds(
    "SELECT t.offset, u.offset, u.partition FROM topic('random') t {} {} ORDER BY t.sequence, "
    "u.sequence".format,
    st.sampled_from(
        [f"{kind} topic('random') u ON t.sequence = u.sequence AND u.offset > 3"
         for kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "INNER JOIN")]
        + ["ASOF JOIN topic('random') u ON t.partition = u.partition AND t.sequence >= u.sequence",
           "ASOF LEFT JOIN topic('random') u ON t.sequence > u.sequence",
           "POSITIONAL JOIN topic('random') u", "CROSS JOIN topic('random') u",
           "SEMI JOIN (SELECT * FROM topic('random') u WHERE u.offset < 9) u USING (sequence)"]
    ),
    st.sampled_from(
        ["", "WHERE u.offset > 7", "WHERE t.offset < 9 AND u.partition = 1", "WHERE u.offset < 5"]
    ),
)  # fmt: skip
nested = st.builds(
    "WITH x AS (SELECT * FROM topic('random') t {} {} {}) SELECT count(*), sum(offset) FROM x "
    "WHERE offset < {}".format,
    where, orders, limits, numbers,
)  # fmt: skip
items = st.builds(
    "SELECT key, state, batch, text FROM queue('random') {} ORDER BY id {}".format,
    st.sampled_from(
        ["", "WHERE state = 'ready'", "WHERE state IN ('dead', 'leased', 'nix')",
         "WHERE batch = 'x'",
         "WHERE batch = 'nix'", "WHERE batch IN ('x', 'y') AND state <> 'dead'", "WHERE batch = ''",
         "WHERE state = 'ready' AND state = 'dead'", "WHERE batch IS NULL OR state = 'ready'"]
    ),
    limits,
)  # fmt: skip
results = st.builds(
    "SELECT offset, key, status FROM results('random') {} ORDER BY id {}".format,
    st.sampled_from(
        ["", "WHERE status = 'done'", "WHERE status = 'dead' AND batch = 'x'", "WHERE offset > 1",
         "WHERE offset BETWEEN 1 AND 2 OR status = 'dead'", "WHERE NOT offset > 1"]
    ),
    limits,
)  # fmt: skip
queries = st.one_of(plain_queries, plain_queries, joins, groups, joins, nested, items, results)


def outcome(run: Callable[..., Any], text: str, **bounds: int) -> object:
    try:
        return run(text, **bounds).rows
    except queueber.InvalidArgument as error:
        return str(error)


@given(queries)
@settings(max_examples=EXAMPLES, deadline=None)
def test_answer_is_the_same_if_less_is_read(
    run: Run, published: list[queueber.Message], text: str
) -> None:
    for n in range(39, -1, -1):
        text = text.replace(f"@{n}", published[n].timestamp.isoformat())

    narrowed, whole = outcome(run, text), outcome(run, text, narrows=False)

    if "ORDER BY" not in text and isinstance(whole, list) and isinstance(narrowed, list):
        # Any of its orders is right, and with a LIMIT so are the first rows of it.
        assert sorted(map(repr, narrowed)) == sorted(map(repr, whole))
    else:
        assert narrowed == whole


@given(st.integers(0, 40), st.sampled_from([*KEYS, None]))
@settings(max_examples=15, deadline=None)
def test_group_by_is_what_python_counts(
    run: Run, published: list[queueber.Message], least: int, key: str | None
) -> None:
    found = run(
        "SELECT coalesce(key, ''), count(*), sum(offset), max(octet_length(payload)) "
        "FROM topic('random') WHERE offset >= $1 AND ($2 IS NULL OR coalesce(key, '') = $2) "
        "GROUP BY ALL",
        least, key,
    )  # fmt: skip

    chosen = [m for m in published if m.offset >= least and key in (None, m.key)]
    counts = Counter(m.key for m in chosen)
    assert {row[0]: row[1:] for row in found.rows} == {
        each: (
            count,
            sum(m.offset for m in chosen if m.key == each),
            max(len(m.payload) for m in chosen if m.key == each),
        )
        for each, count in counts.items()
    }
