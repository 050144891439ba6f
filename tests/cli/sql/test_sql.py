"""`queueber sql` with statements from arguments, files and pipes."""

import json
from itertools import count
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

_numbers = count()


@pytest.fixture
def topic() -> str:
    return f"sql.t{next(_numbers)}"


def test_statements_of_arguments_are_run_in_order(cli: Cli, topic: str) -> None:
    outcome = cli("sql", "-c", f"CREATE TOPIC {topic} PARTITIONS 2", "-c", f"CLEAR TOPIC {topic}")

    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.stdout == f"topic {topic} created\ntopic {topic} cleared: 0 messages deleted\n"


def test_rows_are_a_table(cli: Cli, topic: str) -> None:
    outcome = cli("sql", "-c", f"CREATE TOPIC {topic}; SHOW TOPICS LIKE '{topic}'")

    assert outcome.stdout.splitlines()[1:] == [
        f"{'topic':{len(topic)}}  alias  partitions  messages  bytes  groups  sources  closed",
        f"{topic}  NULL            1         0      0       0        0  false",
        "(1 row)",
    ]


def test_rows_are_json_or_comma_separated(cli: Cli, topic: str) -> None:
    cli("sql", "-c", f"CREATE TOPIC {topic}")
    shown = ("-c", f"SHOW TOPICS LIKE '{topic}'; DROP TOPIC {topic}")

    as_csv = cli("sql", "--csv", *shown)
    assert as_csv.stdout.splitlines() == [
        "topic,alias,partitions,messages,bytes,groups,sources,closed",
        f"{topic},,1,0,0,0,0,false",
    ]
    assert as_csv.stderr == f"topic {topic} dropped\n"
    cli("sql", "-c", f"CREATE TOPIC {topic}")
    row, message = map(json.loads, cli("sql", "--json", *shown).stdout.splitlines())
    assert (row["topic"], row["alias"], row["closed"]) == (topic, None, False)
    assert message == {"message": f"topic {topic} dropped"}
    numbers = cli("sql", "--json", "-c", "SELECT 1/0 AS a, ['nan'::DOUBLE, 0.5] AS b").stdout
    assert numbers == '{"a": "inf", "b": ["nan", 0.5]}\n', "JSON has no such numbers"


def test_control_characters_of_values_do_not_reach_a_terminal(cli: Cli) -> None:
    name = "\x1b[31mred\n"

    outcome = cli("sql", "-c", f"SHOW TABLES LIKE '{name}'; DESCRIBE \"{name}\"")

    assert outcome.code == 2
    assert "\x1b" not in outcome.stdout + outcome.stderr


def test_statements_of_files_and_of_the_standard_input(
    cli: Cli, topic: str, tmp_path: Path
) -> None:
    script = tmp_path / "setup.sql"
    script.write_text(f"-- topics\nCREATE TOPIC {topic};\n")

    assert cli("sql", str(script)).stdout == f"topic {topic} created\n"
    assert cli("sql", stdin=f"DROP TOPIC {topic}").stdout == f"topic {topic} dropped\n"
    assert cli("sql", "-", stdin=f"DROP TOPIC IF EXISTS {topic};").code == 0


def test_a_long_file_is_run(cli: Cli, tmp_path: Path) -> None:
    """Longer than what a gateway takes."""
    script = tmp_path / "long.sql"
    script.write_text("SHOW TABLES LIKE 'none';\n" * 300 + "-- " + "x" * 100_000)

    outcome = cli("sql", "--json", str(script))

    assert (outcome.code, outcome.stdout) == (0, "")


@pytest.mark.parametrize(
    ("sql", "code", "sentence"),
    [
        ("DROP TOPC a", 2, "line 1, column 6: 'TOPC' does not go here"),
        ("", 2, "there is no statement"),
        ("DROP TOPIC sql.nowhere", 4, "topic: there is none named sql.nowhere"),
        ("DROP TOPIC $1", 2, "needs parameter 1, and 0 were given"),
    ],
)
def test_a_failure_is_a_sentence_and_an_exit_code(
    cli: Cli, sql: str, code: int, sentence: str
) -> None:
    outcome = cli("sql", "-c", sql)

    assert (outcome.code, outcome.stdout) == (code, "")
    assert sentence in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_the_first_failure_ends_it_and_is_named(cli: Cli, topic: str) -> None:
    sql = f"CREATE TOPIC {topic}; DROP TOPIC {topic}x; DROP TOPIC {topic}"

    outcome = cli("sql", "-c", sql, "-c", "SHOW TABLES")

    assert (outcome.code, outcome.stdout) == (4, f"topic {topic} created\n")
    assert f"in statement 2 of 3: DROP TOPIC {topic}x" in outcome.stderr


@pytest.mark.parametrize("arguments", [("--json", "--csv", "-c", "SHOW TABLES"), ("nofile.sql",)])
def test_wrong_usage(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli("sql", *arguments).code == 2


def test_a_server_that_is_away(topic: str) -> None:
    assert Cli()("sql", "--connect-timeout", "0", "-c", "SHOW TABLES").code == 3
