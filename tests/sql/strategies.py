"""Random statements, and texts that are almost statements."""

from typing import Any

from hypothesis import strategies as st

from queueber.sql import statements as made
from queueber.sql.printer import printed

NAMES = st.one_of(
    st.sampled_from(
        ["orders", "app.orders", "a-b/c", "topic", "if", "Queue", "LIMIT", "2024", "ä"]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20),
)
_NUMBERS = st.integers(0, (1 << 63) - 1)
_PLACES = st.one_of(_NUMBERS, st.sampled_from(["earliest", "latest"]))
_OPERATIONS = st.sampled_from(["insert", "update", "delete"])
_CONDITIONS = st.sampled_from(
    [
        "",
        "a = 1",
        "(is_visible = true AND channel_id = 42)",
        "item.attempt > 3 OR attributes.region IN ('eu', 'with')",
        "name LIKE '%;%' AND (partition = 3)",
        "note <> 'it''s -- no comment'",
    ]
)
_FIELDS = st.sampled_from(["", "user_id", "contents.a.b, attributes.region", '"a b"'])
_RETENTION: dict[str, st.SearchStrategy[Any]] = {
    "retention": st.one_of(st.integers(0, 10**9), st.floats(0, 1e9)),
    "retention_bytes": _NUMBERS,
    "retention_messages": _NUMBERS,
}
_SETTINGS: dict[str, st.SearchStrategy[Any]] = _RETENTION | {
    "alias": st.one_of(st.just(""), NAMES),
    "content_type": st.sampled_from(["", "application/json"]),
    "deletes_acknowledged": st.booleans(),
    "keeps_last_per_key": st.booleans(),
    "expires_at": st.floats(0, 1e9),
}


def _some(settings: dict[str, st.SearchStrategy[Any]], least: int = 0) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=settings).filter(lambda found: len(found) >= least)


TOPIC_STATEMENTS = st.one_of(
    st.builds(
        made.CreateTopic, NAMES, st.none() | _NUMBERS, _some(_SETTINGS), may_exist=st.booleans()
    ),
    st.builds(made.DropTopic, NAMES, may_lack=st.booleans()),
    st.builds(made.ClearTopic, NAMES),
    st.builds(made.SetTopic, NAMES, _some(_SETTINGS, 1)),
    st.builds(made.SetTopic, NAMES, _some(_RETENTION, 1), is_retention=st.just(True)),
    st.builds(made.ClearRetention, NAMES),
    st.builds(
        made.AddSource, NAMES, NAMES, _OPERATIONS, _CONDITIONS, _FIELDS,
        st.sampled_from(["key", "full", "diff"]),
    ),
    st.builds(made.DropSource, NAMES, NAMES, st.none() | _OPERATIONS),
)  # fmt: skip
OTHER_STATEMENTS = st.one_of(
    st.builds(made.Consume, NAMES, st.none() | NAMES, _NUMBERS, _PLACES, _NUMBERS),
    st.builds(made.Ack, NAMES, NAMES, _NUMBERS, _NUMBERS),
    st.builds(made.ResetGroup, NAMES, NAMES, _PLACES, st.none() | _NUMBERS),
    st.builds(made.DropGroup, NAMES, NAMES, may_lack=st.booleans()),
    st.builds(made.CreateNamespace, NAMES),
    st.builds(made.Show, st.sampled_from(["topics", "queues", "tables"]), like=st.none() | NAMES),
    st.builds(made.Show, st.just("sources"), st.none() | NAMES),
    st.builds(made.Show, st.just("groups"), NAMES),
    st.builds(made.Describe, NAMES, st.none() | st.sampled_from(["topic", "queue", "table"])),
)
QUERIES = st.sampled_from(
    [
        "SELECT 1",
        "SELECT ';' AS \"a;b\", $$;$$ /* ; */ FROM system.topics WHERE name = 'it''s'",
        "WITH a AS (SELECT 1) SELECT * FROM a -- ;\n WHERE TRUE",
        "VALUES (1, E'\\';')",
    ]
).map(made.Select)
STATEMENTS = st.one_of(TOPIC_STATEMENTS, OTHER_STATEMENTS, QUERIES)

_PIECES = st.sampled_from(
    [
        "'", '"', "`", ";", "(", ")", ",", "=", ".", "--", "/*", "*/", "$1", "?", "$$", "\n", "\0",
        "SELECT", "FROM", "WHERE", "WITH", "TOPIC", "NULL", "-1", "1e400", "9" * 40, "ä",
        "\U0001f600", "\ud800", "LIMIT", "OFFSET", "GROUP", "IF NOT EXISTS", " ", "E'", "\\",
        "0x1f", "system.topics",
    ]
)  # fmt: skip


@st.composite
def almost_statements(draw: st.DrawFn) -> str:
    """A valid text in which pieces are deleted, doubled and put in."""
    text = "; ".join(printed(each) for each in draw(st.lists(STATEMENTS, min_size=1, max_size=3)))
    for _ in range(draw(st.integers(0, 4))):
        begin = draw(st.integers(0, len(text)))
        end = draw(st.integers(begin, min(len(text), begin + 12)))
        text = text[:begin] + draw(st.just("") | _PIECES) + text[end:]
    return text


TEXTS = st.one_of(almost_statements(), st.lists(_PIECES, max_size=30).map(" ".join), st.text())
PARAMS = st.lists(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), NAMES),
    max_size=4,
)
