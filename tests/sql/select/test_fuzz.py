"""Whatever the text is, there is an answer or an error with a code: nothing else ever comes out."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import queueber
from queueber.sql.select.engine.allowed import FUNCTIONS
from tests.sql.select.conftest import Run

BOUNDS = {"rows": 200, "seconds": 5, "table_rows": 1000}

SEEDS = [
    "SELECT key, count(*) FROM topic('fuzz') WHERE ts > now() - INTERVAL '1 minute' GROUP BY key",
    "WITH x AS (SELECT * FROM queue('fuzz')) SELECT key, json->>'$.a' FROM x ORDER BY ALL LIMIT 3",
    "SELECT * FROM system.topics t LEFT JOIN system.topic_offsets o USING (topic_id)",
    "VALUES (1, 'a'), (2, NULL)",
    "SELECT * EXCLUDE (payload) REPLACE (1 AS key) FROM topic('fuzz') QUALIFY rank() OVER () < 3",
    "FROM topic('fuzz') SELECT DISTINCT ON (key) key, offset ORDER BY key, offset DESC",
    "SELECT list_transform([1, 2], x -> x + 1), {'a': 1}.a, MAP {'k': 1}['k'], [1, 2][1:2], $$x$$",
    "SELECT CASE WHEN a THEN 1 END, a IN (SELECT 1), EXISTS (SELECT 1), a::INT FROM (SELECT 1 a)",
    "PIVOT (SELECT key, offset FROM topic('fuzz')) ON key USING count(*)",
    "SELECT unnest(range(5)), generate_series(1, 3), date_trunc('day', now()), ? FROM range(3)",
    "SELECT sum(offset) OVER (PARTITION BY key ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 2 "
    "FOLLOWING) FROM topic('fuzz') TABLESAMPLE 50%",
    "SELECT 1 UNION ALL BY NAME SELECT 2 EXCEPT SELECT 3 INTERSECT SELECT 4",
]
WORDS = sorted(
    {word for seed in SEEDS for word in seed.replace("(", " ( ").replace(")", " ) ").split()}
    | {
        "'",
        '"',
        "--",
        "/*",
        "*/",
        ";",
        "$1",
        "\\",
        "\x00",
        "é",
        "🙂",
        "1e400",
        "x'ff'",
        "%",
        "::",
        "@",
    }
    | {f"{name}(" for name in FUNCTIONS if name.isidentifier()}
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A statement of which some words are left out, replaced, repeated or added."""
    words = draw(st.sampled_from(SEEDS)).split(" ")
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(words)))
        match draw(st.integers(0, 3)):
            case 0:
                del words[at : at + draw(st.integers(1, 4))]
            case 1:
                words[at : at + 1] = [draw(st.sampled_from(WORDS))]
            case 2:
                words[at:at] = words[: draw(st.integers(0, len(words)))]
            case _:
                words.insert(at, draw(st.text(max_size=5)))
    return " ".join(words)


ODD = [
    b"",
    b"[" * 200 + b"]" * 200,
    b'{"a":' * 150 + b"[]" + b"}" * 150,
    b'{"a": 1, "a": 2, "": 3, "a.b": 4}',
    b'"\\ud800"',
    b"1e999",
    b"-" + b"9" * 400,
    b'[{"a": [1]}, {"a": {"b": null}}, "x"]',
    b"\0",
    "\u202eä🙂\ufeff".encode(),
]
"""Contents that are nested, of no value, or of more than one meaning."""

calls = st.builds(
    "SELECT {}({}) FROM topic('{}') t".format,
    st.sampled_from(sorted(name for name in FUNCTIONS if name.isidentifier())),
    st.lists(
        st.sampled_from(
            ["key", "offset", "payload", "ts", "text", "json", "attributes", "NULL", "1", "-1",
             "1e300", "[1, 2]", "INTERVAL 1 DAY", "*", "DISTINCT key", "x -> x", "'a'",
             "9223372036854775807"]
        ),
        max_size=4,
    ).map(", ".join),
    st.sampled_from(["fuzz", "odd"]),
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def published(server: object) -> None:
    with queueber.connect(server.address) as client:  # type: ignore[attr-defined]
        client.topic("fuzz").publish([queueber.NewMessage(b'{"a": 1}', key="k"), b"\xff"])
        client.topic("odd").publish(ODD)
        client.queue("fuzz").add([b"1"])


def check(run: Run, text: str) -> None:
    try:
        found = run(text, **BOUNDS)
    except queueber.QueueberError as error:
        told = error
    else:
        assert all(len(row) == len(found.columns) for row in found.rows)
        return
    assert not isinstance(told, queueber.Internal), (text, str(told))
    assert 0 < len(str(told)) < 1000
    assert run("SELECT 1").rows == [(1,)], text


JSON_CALLS = [
    *(f"{name}(json)" for name in FUNCTIONS if name.startswith("json")),
    "CAST(json AS VARCHAR[])", "CAST(json AS INTEGER)", "json::STRUCT(a JSON[])", "json->'$..a'",
    "json->>'a.b'", "json->0", "json_transform(json, '{\"a\": [\"VARCHAR\"]}')",
]  # fmt: skip


@pytest.mark.long
def test_odd_contents_are_answered_or_refused(run: Run) -> None:
    for call in JSON_CALLS:
        check(run, f"SELECT {call} FROM topic('odd')")


@given(st.one_of(mutated(), mutated(), calls, st.text(max_size=40)))
@settings(max_examples=120, deadline=None)
def test_any_text_is_answered_or_refused(run: Run, text: str) -> None:
    check(run, text)


@pytest.mark.long
@given(
    st.one_of(
        mutated(),
        mutated(),
        calls,
        st.text(max_size=100),
        st.lists(st.sampled_from(WORDS)).map(" ".join),
    )
)
@settings(max_examples=3000, deadline=None)
def test_any_text_is_answered_or_refused_for_long(run: Run, text: str) -> None:
    check(run, text)


@given(
    st.lists(
        st.one_of(
            st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(max_size=50),
            st.datetimes(), st.dates(), st.decimals(), st.lists(st.integers(), max_size=3),
            st.times(), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
        ),
        max_size=3,
    )
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_any_parameters_are_taken_or_refused(run: Run, params: list[object]) -> None:
    text = "SELECT " + (", ".join("?" for _ in params) or "1")
    try:
        found = run(text, *params)
    except queueber.InvalidArgument as error:
        told = str(error)
    else:
        assert len(found.rows) == 1
        return
    assert told.startswith(("params: ", "sql: ", "values: "))
