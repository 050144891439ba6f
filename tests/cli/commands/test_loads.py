import json

import queueber
from queueber import PartRef, Rows
from tests.cli.conftest import Cli
from tests.support.loading import stage_part


def test_loads_are_listed_with_what_an_operator_needs_to_know(
    cli: Cli, queue: queueber.Queue
) -> None:
    load = queue.load("nightly\tone", batch="b", timeout=60)
    stage_part(load, PartRef(0, "a"), Rows([b"x"] * 1234))
    queue.load("other", epoch=7)

    listed = cli("loads", "-q", queue.name)
    same = cli("loads", "list", "-q", queue.name)

    assert (listed.code, listed.stderr) == (0, "")
    heading, first, second = sorted(listed.stdout.splitlines(), key=lambda line: line[:1] != "l")
    assert heading.split() == ["load", "epoch", "state", "batch", "rows", "began", "dropped", "at"]
    rows = {line.split()[0]: line.split() for line in (first, second)}
    assert rows['json:"nightly\\tone"'][1:5] == ["0", "staging", "b", "1,234"]
    assert rows["other"][1:4] == ["7", "staging", "0"]
    assert rows["other"][-1].endswith("Z")
    assert same.stdout == listed.stdout


def test_loads_as_json(cli: Cli, queue: queueber.Queue) -> None:
    load = queue.load("nightly", timeout=60)

    shown = cli("loads", "-q", queue.name, "--json")

    facts = load.facts
    assert json.loads(shown.stdout) == {
        "load": "nightly",
        "epoch": 0,
        "state": "staging",
        "batch": None,
        "rows": 0,
        "startedAtMs": facts.started_at_ms,
        "expiresAtMs": facts.expires_at_ms,
        "directory": facts.directory,
    }


def test_queue_without_loads_shows_none(cli: Cli, queue: queueber.Queue) -> None:
    table, as_json = cli("loads", "-q", queue.name), cli("loads", "-q", queue.name, "--json")

    assert (table.code, table.stdout.split()[0], len(table.stdout.splitlines())) == (0, "load", 1)
    assert (as_json.code, as_json.stdout) == (0, "")


def test_load_is_aborted_by_its_name_and_epoch(cli: Cli, queue: queueber.Queue) -> None:
    queue.load("nightly")
    queue.load("later", epoch=3)

    aborted = cli("loads", "abort", "nightly", "-q", queue.name)
    wrong = cli("loads", "abort", "later", "-q", queue.name)
    as_json = cli("loads", "abort", "later", "--epoch", "3", "-q", queue.name, "--json")
    again = cli("loads", "abort", "later", "--epoch", "3", "-q", queue.name, "--json")

    assert (aborted.code, aborted.stdout) == (0, "nightly  aborted\n")
    told = "later  not aborted: there is no such load in epoch 0, or it is committed\n"
    assert (wrong.code, wrong.stdout) == (1, told)
    assert (as_json.code, json.loads(as_json.stdout)) == (0, {"aborted": True})
    assert (again.code, json.loads(again.stdout)) == (1, {"aborted": False})
    assert queue.loads() == []


def test_bad_arguments_are_wrong_usage_and_abort_nothing(cli: Cli, queue: queueber.Queue) -> None:
    queue.load("nightly")

    for arguments, told in (
        (["abort", "nightly", "--epoch", "-1"], "'-1' is not a number from 0 to 2^63 - 1"),
        (["abort", ""], "load: it is empty"),
        (["abort"], "Missing argument 'NAME'"),
    ):
        shown = cli("loads", *arguments, "-q", queue.name)
        assert (shown.code, shown.stdout) == (2, "")
        assert told in shown.stderr

    assert len(queue.loads()) == 1


def test_queue_that_is_not_there_is_not_created(cli: Cli, client: queueber.Client) -> None:
    for arguments in (["list"], ["abort", "x"]):
        shown = cli("loads", *arguments, "-q", "no-such-queue")
        assert (shown.code, shown.stdout) == (4, "")

    assert "no-such-queue" not in [stats.name for stats in client.queues()]
