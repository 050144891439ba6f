"""What a statement tries, and must not reach: files, network, settings, other tables, this process.

Each is refused twice: by the lists of what a query may be made of, and, for a statement that would
get past them, by the engine's own settings and by the kernel.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import queueber
from queueber.errors import InvalidArgument, NotFound
from queueber.sql.select import Engines, SelectBounds
from queueber.sql.select.engine.allowed import FUNCTIONS, ROW_SOURCES, check_tree
from tests.sql.select.conftest import Run

FILE_QUERIES = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_csv_auto('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM read_json('/etc/passwd')",
    "SELECT * FROM read_parquet('/etc/passwd')",
    "SELECT * FROM parquet_metadata('/etc/passwd')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM '/etc/passwd'",
    'SELECT * FROM "/etc/passwd"',
    "FROM '/etc/passwd.csv'",
    "SELECT (SELECT content FROM read_text('/etc/passwd'))",
    "WITH x AS (FROM read_text('/etc/passwd')) FROM x",
    "SELECT * FROM topic('t'), LATERAL (SELECT * FROM read_text(topic.key))",
    "COPY (SELECT 1) TO '/tmp/x'",
    "COPY topic('t') TO '/tmp/x'",
    "ATTACH '/tmp/x.db'",
    "EXPORT DATABASE '/tmp/x'",
    "IMPORT DATABASE '/tmp/x'",
    "SELECT * FROM rEaD_tExT('/etc/passwd')",
    "SELECT \"read_text\"('/etc/passwd')",
    "SELECT \uff52ead_text('/etc/passwd')",
    "SELECT * FROM main.read_text('/etc/passwd')",
    "SELECT * FROM system.main.read_text('/etc/passwd')",
    "SELECT * FROM read_duckdb('/tmp/x.db')",
    "SELECT * FROM sqlite_scan('/tmp/x', 'y')",
    "SELECT * FROM ST_Read('/etc/passwd')",
    "SELECT * FROM topic(getenv('HOME'))",
    "SELECT list_aggregate(['/etc/passwd'], 'read_text')",
    "SELECT apply(range(10), x -> read_text('/etc/passwd'))",
    "SELECT list_transform(range(3), lambda x: getenv('HOME'))",
    "WITH x AS (COPY (SELECT 1) TO '/tmp/x') SELECT 1",
    "EXPLAIN COPY (SELECT 1) TO '/tmp/x'",
    "SELECT 1 INTO OUTFILE '/tmp/x'",
    "SELECT 1\u037e COPY (SELECT 1) TO '/tmp/x'",
]
OTHER_QUERIES = [
    "SELECT * FROM read_text('http://127.0.0.1/')",
    "SELECT * FROM 's3://bucket/key'",
    "SELECT * FROM 'https://example.com/a.parquet'",
    "SELECT * FROM read_json_auto('http://169.254.169.254/')",
    "SELECT * FROM postgres_scan('host=10.0.0.1', 'y', 'z')",
    "SELECT * FROM iceberg_scan('s3://x')",
    "SELECT system.main.getenv('HOME')",
    "SELECT enable_logging()",
    "SELECT * FROM duckdb_logs()",
    "SELECT * FROM arrow_scan(1, 2, 3)",
    "SELECT * FROM python_map_function(1)",
    "SELECT * FROM checkpoint()",
    "SELECT * FROM repeat('x', 10000000000)",
    "SELECT * FROM pg_timezone_names()",
    "SELECT * FROM json_execute_serialized_sql('x')",
    "SELECT * INTO x FROM system.topics",
    "SELECT * FROM (PIVOT topic('t') ON key USING count(*))",
    "MERGE INTO x USING x ON true WHEN MATCHED THEN DELETE",
    "SELECT json_structure(repeat('{\"a\":', 50000) || '1' || repeat('}', 50000))",
    "SELECT TIMESTAMPTZ '2026-01-01 00:00 Nowhere/Foo'",
    "SELECT bar(1, 0, 1, 2000000000)",
    "SELECT E'\\x00'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "FORCE INSTALL httpfs",
    "SELECT getenv('HOME')",
    "SELECT current_setting('memory_limit')",
    "SELECT getvariable('x')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_settings",
    "SELECT * FROM pragma_version()",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_catalog.pg_class",
    "SELECT * FROM sqlite_master",
    "WITH sqlite_master AS (SELECT 1) SELECT * FROM sqlite_master",
    "SELECT * FROM system.information_schema.tables",
    "SELECT * FROM system.secrets",
    "SELECT * FROM _qb_0",
    "WITH _qb_0 AS (SELECT 1) FROM _qb_0",
    "SELECT * FROM topic('t'), _qb_0",
    "SELECT * FROM rows_of_qb_0",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('_qb_0')",
    "SELECT json_serialize_sql('SELECT 1')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "SELECT pg_sleep(10)",
    "SELECT sleep_ms(10000)",
    "SELECT nextval('x')",
    "SELECT write_log('x')",
    "SELECT version()",
    "SELECT current_user",
    "SELECT * FROM sys",
    "SELECT * FROM __builtins__",
    "SELECT * FROM database",
    "SET memory_limit = '10GB'",
    "SET threads = 8",
    "RESET memory_limit",
    "PRAGMA memory_limit = '10GB'",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "CREATE TABLE x (a INT)",
    "CREATE MACRO f(a) AS a",
    "INSERT INTO x VALUES (1)",
    "UPDATE x SET a = 1",
    "DELETE FROM x",
    "DROP VIEW _qb_0",
    "BEGIN",
    "CHECKPOINT",
    "VACUUM",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE SELECT 1",
    "DESCRIBE topic('t')",
    "SUMMARIZE topic('t')",
    "SHOW TABLES",
    "SELECT * FROM (SHOW TABLES)",
    "SELECT * FROM (DESCRIBE topic('t'))",
    "PREPARE x AS SELECT 1",
    "EXECUTE x",
    "WITH x AS (DELETE FROM y RETURNING *) SELECT * FROM x",
    "WITH x AS (INSERT INTO y VALUES (1)) SELECT 1",
    "SELECT 1 INTO x",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP VIEW x",
    "",
    ";",
    "-- nothing",
    "SELEC 1",
    "SELECT (",
    "SELECT $1",
    "SELECT ?",
    "SELECT $name",
    "SELECT * FROM topic()",
    "SELECT * FROM topic('')",
    "SELECT * FROM topic('a', 'b')",
    "SELECT * FROM topic(1)",
    "SELECT * FROM topic('t' || 'x')",
    "SELECT * FROM main.topic('t')",
    "SELECT topic('t')",
    "SELECT nix FROM topic('t')",
    "SELECT 'a'::INT",
    "SELECT ['a'::ENUM('a')]",
    "SELECT 123456789012345678901234567890123456789012345678901234567890 AS n",
    "SELECT '12:00+05'::TIMETZ",
    "SELECT {'a': 1}::VARIANT",
    "SELECT 1 + 'a'",
    "SELECT 'infinity'::TIMESTAMP",
    "SELECT ['-infinity'::DATE]",
    "SELECT '290000-01-01'::DATE",
    "SELECT 1 \0",
    "SELECT '\ud800'",
]


@pytest.fixture(scope="module", autouse=True)
def topic(server: object, run: Run, connected: queueber.AsyncClient, loop: object) -> None:
    loop.run_until_complete(connected.topic("t").publish([b"1"]))  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", FILE_QUERIES + OTHER_QUERIES)
def test_statement_is_refused_with_a_reason(run: Run, text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        run(text)

    told = str(refused.value)
    assert told.startswith(("sql: ", "params: ", "values: "))
    assert len(told) < 700
    assert "Traceback" not in told


def test_functions_that_may_be_used_exist() -> None:
    with duckdb.connect() as connection:
        found = connection.execute("SELECT lower(function_name) FROM duckdb_functions()").fetchall()

    assert FUNCTIONS - {name for (name,) in found} == set()
    assert ROW_SOURCES < FUNCTIONS


def test_table_that_is_made_by_a_function_in_the_list_is_refused(run: Run) -> None:
    """There is a table of this name that reads any other one."""
    with pytest.raises(InvalidArgument, match="no table histogram"):
        run("SELECT * FROM histogram(_qb_0, key), topic('t')")
    with duckdb.connect() as connection:
        text = "SELECT * FROM histogram(_qb_0, key)"
        ((tree,),) = connection.execute("SELECT json_serialize_sql(?)", [text]).fetchall()
    with pytest.raises(InvalidArgument, match="no table histogram"):
        check_tree(json.loads(tree)["statements"], {"_qb_0"})


def test_topic_and_queue_that_are_not_there_are_not_found(run: Run) -> None:
    for text in ("SELECT * FROM topic('nix')", "SELECT * FROM queue('nix')"):
        with pytest.raises(NotFound, match="'nix' that you may read"):
            run(text)
    with pytest.raises(InvalidArgument):
        run("SELECT * FROM queue('no such name!')")


def test_parameters_must_fit_the_statement(run: Run) -> None:
    for text, params in (
        ("SELECT 1", (1,)),
        ("SELECT $1, $3", (1, 2, 3)),
        ("SELECT $2", (1,)),
        ("SELECT ?, $1", (1,)),
        ("SELECT $1", (object(),)),
        ("SELECT $1", ({"a": 1},)),
        ("SELECT $1", (1 << 200,)),
        ("SELECT $1", ("\0",)),
        ("SELECT $1", ("x" * 100_000,)),
        ("SELECT " + "x" * 100_000, ()),
    ):
        with pytest.raises(InvalidArgument):
            run(text, *params)


def test_deep_nesting_is_refused(run: Run) -> None:
    for text in (
        "SELECT " + "(" * 5_000 + "1" + ")" * 5_000,
        "SELECT " + "-" * 20_000 + "1",
        "SELECT " + "NOT " * 10_000 + "true",
        "SELECT " + "[" * 3_000 + "]" * 3_000,
        "SELECT * FROM " + "(SELECT * FROM " * 1_000 + "x" + ")" * 1_000,
    ):
        with pytest.raises(InvalidArgument):
            run(text)
    assert run("SELECT 1").rows == [(1,)]


# --- the second and third line, without the first -------------------------------------------------

JAILED = """
import os, socket, subprocess, sys
from queueber.sql.select.engine.database import Database
from queueber.sql.select.engine.jail import Jail
import duckdb
database = Database(64 << 20)
connection = database._connection
if sys.argv[1] == "jail":
    Jail(512 << 20)
for text in sys.argv[2:]:
    try:
        connection.execute(text).fetchall()
    except Exception as error:
        print(type(error).__name__, flush=True)
    else:
        print("RAN", text, flush=True)
if sys.argv[1] == "jail":
    for act in (
        lambda: open("/etc/passwd"),
        lambda: socket.socket(),
        lambda: subprocess.run(["/bin/true"]),
    ):
        try:
            act()
        except OSError as error:
            print(error.errno, flush=True)
os._exit(0)
"""


def test_the_engine_itself_reaches_no_file_and_changes_no_setting(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    queries = [
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM '{secret}'",
        f"SELECT * FROM glob('{tmp_path}/*')",
        f"COPY (SELECT 1) TO '{tmp_path}/out'",
        f"ATTACH '{tmp_path}/x.db'",
        f"EXPORT DATABASE '{tmp_path}/x'",
        "LOAD httpfs",
        "INSTALL httpfs",
        "SELECT getenv('HOME')",
        "SELECT * FROM database",
        "SET enable_external_access = true",
        "SET memory_limit = '10GB'",
        "SET python_enable_replacements = true",
    ]

    told = subprocess.run(
        [sys.executable, "-c", JAILED, "free", *queries],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout.split("\n")  # fmt: skip

    assert len(told) == len(queries) + 1
    assert [line for line in told if line.startswith("RAN")] == []
    assert sorted(each.name for each in tmp_path.iterdir()) == ["secret.csv"]


def test_the_kernel_lets_the_engine_open_nothing() -> None:
    told = subprocess.run(
        [sys.executable, "-c", JAILED, "jail", "SELECT 1"],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout.split()  # fmt: skip

    too_many_open_files = "24"
    assert told == ["RAN", "SELECT", "1"] + [too_many_open_files] * 3


def test_the_engine_gets_no_secret_of_the_environment(
    engines: Engines, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUEUEBER_TOKEN", "secret-token")
    own = Engines()
    try:
        engine = own._take()
        engine.ask("SELECT 1", "[]", SelectBounds())
        found = Path(f"/proc/{engine.pid}/environ").read_bytes()
        engine.end()
    finally:
        own.close()

    assert b"secret-token" not in found
    assert b"MALLOC_ARENA_MAX" in found


def test_the_engine_has_no_descriptor_of_the_program(run: Run, engines: Engines) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        run("SELECT 1")
        (engine,) = list(engines._idle)[:1]
        open_files = sorted(int(each) for each in os.listdir(f"/proc/{engine.pid}/fd"))

    assert open_files == [0, 1, 2]
