"""What all commands share: help, versions, exit codes, and a quick start."""

import os
import subprocess
import sys

import click
import pytest

import queueber
from queueber import errors
from queueber.cli import program
from queueber.cli.commands.loads import loads
from queueber.cli.commands.queues import queues
from queueber.cli.exits import FLAGS, failure_of
from queueber.cli.spark import spark
from queueber.errors import QueueberError
from tests.cli.conftest import Cli

CODES = {
    errors.InvalidArgument: 2,
    errors.Unavailable: 3,
    errors.NotFound: 4,
    errors.LeaseExpired: 4,
    errors.ResourceExhausted: 4,
    errors.Unauthenticated: 4,
    errors.PermissionDenied: 4,
    errors.Aborted: 4,
    errors.AlreadyExists: 4,
    errors.FailedPrecondition: 4,
    errors.OutOfRange: 4,
    errors.Internal: 4,
    errors.OutcomeUnknown: 4,
    errors.DataDirLocked: 5,
    errors.StorageCorrupt: 5,
    errors.StorageFailed: 5,
}


def commands_of(group: click.Group) -> dict[str, click.Command]:
    context = click.Context(group)
    names = group.list_commands(context)
    return {name: command for name in names if (command := group.get_command(context, name))}


def every_command(group: click.Group, *path: str) -> list[tuple[str, ...]]:
    found = []
    for name, command in commands_of(group).items():
        found.append((*path, name))
        if isinstance(command, click.Group):
            found += every_command(command, *path, name)
    return found


def test_there_are_as_many_commands_as_promised() -> None:
    assert set(commands_of(program)) - {"work"} == {
        "serve", "add", "poll", "extend", "remove", "complete", "fail", "release", "receipt",
        "results", "readers", "peek", "cancel", "reschedule", "run-now", "purge", "redrive",
        "pause", "resume", "top",
        "stats", "sql", "ping", "schedule", "forget", "callback", "show",
        "queues", "leases", "batches", "loads", "verify", "repair", "upgrade", "spark", "topics",
        "topic", "gateway", "token", "backup", "restore", "import",
    }  # fmt: skip


def test_each_command_is_found_by_its_own_name() -> None:
    assert [command.name for command in commands_of(program).values()] == [*commands_of(program)]


def test_a_command_starts_without_the_modules_of_others() -> None:
    """They would take longer than it runs."""
    code = """
import sys
from queueber.cli import program
program(["ping", "--help"], standalone_mode=False)
print(*sys.modules, file=sys.stderr)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = told.stderr.split()
    assert "queueber.cli.commands.ping" in loaded
    assert [name for name in loaded if name.startswith("queueber.cli.commands.")] == [
        "queueber.cli.commands.ping"
    ]
    assert {"lark", "importlib.metadata"}.isdisjoint(loaded)


def test_help_tells_the_exit_codes(cli: Cli) -> None:
    told = cli("--help")

    assert told.code == 0
    for code in {0, 1, 70, 130, *CODES.values()}:
        assert f"\n    {code} " in told.stdout


def test_help_cuts_no_summary_short(cli: Cli) -> None:
    summaries = cli("--help").stdout.partition("Commands:\n")[2].partition("\n\n")[0]

    assert len(summaries.splitlines()) == len(commands_of(program))
    assert "..." not in summaries


@pytest.mark.parametrize("path", every_command(program), ids=" ".join)
def test_help_of_every_command_has_an_example(cli: Cli, path: tuple[str, ...]) -> None:
    told = cli(*path, "--help")

    assert told.code == 0
    assert f"    queueber {' '.join(path)}" in told.stdout


def test_version_is_that_of_the_package(cli: Cli) -> None:
    told = cli.run("--version")

    assert (told.code, told.stderr) == (0, "")
    assert told.stdout == f"queueber {queueber.__version__}\n"


def test_every_error_has_an_exit_code() -> None:
    assert set(CODES) == set(QueueberError.__subclasses__())
    for error, code in CODES.items():
        failure = failure_of(error("a sentence"))
        assert (failure.exit_code, failure.message) == (code, "a sentence")


def test_every_flag_that_a_refusal_may_name_exists() -> None:
    known = {
        name
        for group in (program, queues, loads, spark)
        for each in commands_of(group).values()
        for option in each.params
        for name in option.opts
    }

    assert set(FLAGS.values()) <= known
    assert failure_of(errors.InvalidArgument("count: 9")).message == "--count: 9"
    assert failure_of(errors.InvalidArgument("batch: empty")).message == "batch: empty"
    too_long = "wait: 400 s is too long; the limit of this server is 300"
    assert failure_of(errors.InvalidArgument(too_long)).message == f"--{too_long}"


@pytest.mark.parametrize(
    "arguments",
    [
        ["add", "x"],
        ["poll"],
        ["remove", "00" * 16, "11" * 16],
        ["extend", "00" * 16],
        ["complete", "00" * 16, "11" * 16, "--result", "x"],
        ["fail", "00" * 16, "11" * 16],
        ["release", "00" * 16, "11" * 16],
        ["receipt", "x"],
        ["results"],
        ["readers"],
        ["readers", "drop", "x"],
        ["peek"],
        ["cancel", "00" * 16],
        ["purge", "--state", "dead", "--yes"],
        ["redrive", "--all"],
        ["pause"],
        ["resume"],
        ["stats"],
        ["stats", "--watch"],
        ["ping"],
        ["loads"],
        ["loads", "abort", "x"],
        ["queues"],
        ["queues", "show", "x"],
        ["queues", "configure", "x", "--items-max", "1"],
        ["queues", "create", "x"],
        ["queues", "delete", "x", "--yes"],
        ["topics"],
        ["topic", "create", "x"],
        ["topic", "publish", "x", "y"],
        ["topic", "read", "x"],
        ["topic", "tail", "x"],
        ["topic", "describe", "x"],
        ["topic", "groups", "x"],
        ["topic", "create-group", "x", "y"],
        ["topic", "delete-group", "x", "y"],
        ["topic", "reset", "x", "y", "--to", "earliest"],
        ["topic", "trim", "x", "--to", "1", "--yes"],
        ["topic", "close", "x"],
        ["topic", "fork", "x", "y"],
        ["topic", "delete", "x", "--yes"],
        ["topic", "configure", "x", "--retention", "1"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_server_that_is_not_there_is_exit_code_3(arguments: list[str]) -> None:
    outcome = Cli("127.0.0.1:1")(*arguments, "--connect-timeout", "0")

    assert (outcome.code, outcome.stdout) == (3, "")
    assert outcome.stderr.startswith("Error: cannot reach a server at 127.0.0.1:1")


@pytest.mark.parametrize(
    "arguments",
    [
        ["extend", "00" * 16],
        ["remove", "00" * 16, "11" * 16],
        ["complete", "00" * 16, "11" * 16, "--result", "x"],
        ["fail", "00" * 16, "11" * 16],
        ["release", "00" * 16, "11" * 16],
        ["stats"],
        ["stats", "--watch"],
        ["receipt", "x"],
        ["results"],
        ["readers"],
        ["readers", "drop", "x"],
        ["peek"],
        ["cancel", "00" * 16],
        ["purge", "--state", "dead", "--yes"],
        ["redrive", "--all"],
        ["pause"],
        ["resume"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_queue_that_is_not_there_is_not_created(
    cli: Cli, client: queueber.Client, arguments: list[str]
) -> None:
    outcome = cli(*arguments, "-q", "mistyped")

    assert (outcome.code, outcome.stdout) == (4, "")
    assert outcome.stderr == "Error: there is no queue 'mistyped'; create it, or check the name\n"
    assert "mistyped" not in [each.name for each in client.queues()]


@pytest.mark.parametrize(
    "arguments", [["add", "x"], ["add", "x", "--producer", "p"], ["poll"], ["work", "json:loads"]]
)
def test_must_exist_refuses_a_queue_that_would_be_created(
    cli: Cli, client: queueber.Client, arguments: list[str]
) -> None:
    outcome = cli(*arguments, "-q", "mistyped", "--must-exist")

    assert (outcome.code, outcome.stdout) == (4, "")
    assert "there is no queue 'mistyped'; create it, or check the name" in outcome.stderr
    assert "mistyped" not in [each.name for each in client.queues()]


def test_an_address_that_is_none_is_wrong_usage() -> None:
    outcome = Cli("localhost")("stats")

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "'localhost' is not host:port" in outcome.stderr


def test_address_flag_wins_over_the_environment(cli: Cli) -> None:
    assert Cli("127.0.0.1:1")("stats", "--address", cli.address).code == 0


def test_commands_of_a_client_need_no_server_libraries() -> None:
    """They start fast, and run where RocksDB is not installed."""
    program = (
        "import sys, queueber.cli\n"
        "heavy = {'rocksdict', 'rich', 'queueber.app', 'queueber.db', 'queueber.engine'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )

    imported = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert (imported.returncode, imported.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("queueber pu", ["purge"]),
        ("queueber stats --wa", ["--watch"]),
        ("queueber topic res", ["reset", "resume-group"]),
        ("queueber queues c", ["configure", "create"]),
        ("queueber queues --connect-timeout 1 --js", ["--json"]),
        ("queueber schedule p", ["pause"]),
        ("queueber peek --state d", ["delayed", "dead"]),
        ("queueber purge --state a", ["all"]),
    ],
)
def test_a_shell_completes_commands_and_flags(words: str, expected: list[str]) -> None:
    """As docs/cli.md says: click answers what the shell's function asks."""
    asked = {"_QUEUEBER_COMPLETE": "bash_complete", "COMP_WORDS": words}
    completed = subprocess.run(
        [sys.executable, "-c", "from queueber.cli import main; main()"],
        env={**os.environ, **asked, "COMP_CWORD": str(words.count(" "))},
        capture_output=True,
        text=True,
        check=True,
    )

    assert completed.stdout.split() == [f"plain,{word}" for word in expected]
