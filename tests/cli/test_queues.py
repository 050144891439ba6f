import json

import pytest

import queueber
from queueber.model import QueueSettings
from tests.cli.conftest import Cli


def names(client: queueber.Client) -> list[str]:
    return [each.name for each in client.queues()]


def settings_of(client: queueber.Client, name: str) -> QueueSettings:
    return client.queue(name).stats().settings


def test_stats_shows_a_queue_in_numbers(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"12345"] * 1200)
    queue.poll(200)

    shown = cli("stats", "-q", queue.name)

    rows = dict(line.rsplit(maxsplit=1) for line in shown.stdout.splitlines()[1:])
    assert (shown.code, shown.stderr) == (0, "")
    assert rows["ready"] == "1,000"
    assert rows["in progress"] == "200"
    assert rows["bytes"] == "6,000"
    assert rows["items, limit"] == "none"


def test_stats_json_has_every_field(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"12345", delay=1000)

    shown = cli("stats", "-q", queue.name, "--json")

    stats = queue.stats()
    assert (shown.code, shown.stderr) == (0, "")
    assert json.loads(shown.stdout) == {
        "name": queue.name,
        "settings": {"itemsMax": 0, "bytesMax": 0, "itemBytesMax": 0},
        "createdAtMs": stats.created_at_ms,
        "ready": 0,
        "delayed": 1,
        "inProgress": 0,
        "leases": 0,
        "contentsBytes": 5,
        "oldestAgeMs": 0,
        "waitingPolls": 0,
        "addedTotal": 1,
        "polledTotal": 0,
        "removedTotal": 0,
        "expiredTotal": 0,
        "extendedTotal": 0,
    }


def test_stats_of_an_unknown_queue_does_not_create_it(cli: Cli, client: queueber.Client) -> None:
    shown = cli("stats", "-q", "mistyped")

    assert (shown.code, shown.stdout) == (4, "")
    assert shown.stderr == "Error: there is no queue 'mistyped'\n"
    assert "mistyped" not in names(client)


@pytest.mark.parametrize("command", [["queues"], ["queues", "list"]])
def test_queues_lists_them_in_order_of_name(
    cli: Cli, client: queueber.Client, command: list[str]
) -> None:
    shown = cli(*command)
    as_json = cli(*command, "--json")

    headings, *rows = shown.stdout.splitlines()
    assert (shown.code, shown.stderr) == (0, "")
    assert headings.split()[:3] == ["queue", "ready", "delayed"]
    assert [row.split()[0] for row in rows] == names(client)
    assert [json.loads(line)["name"] for line in as_json.stdout.splitlines()] == names(client)


def test_queues_create_with_limits(cli: Cli, client: queueber.Client) -> None:
    limits = ["--items-max", "10", "--bytes-max", "2000", "--item-bytes-max", "300"]

    created = cli("queues", "create", "limited", *limits)
    again = cli("queues", "create", "limited", *limits, "--json")
    other = cli("queues", "create", "limited", "--items-max", "11")

    assert (created.code, created.stdout, created.stderr) == (0, "limited  created\n", "")
    assert (again.code, again.stdout) == (0, '{"created": false}\n')
    assert (other.code, other.stdout) == (4, "")
    assert "exists with other settings" in other.stderr
    assert settings_of(client, "limited") == QueueSettings(10, 2000, 300)


@pytest.mark.parametrize("value", ["-1", "many", str(1 << 64)])
def test_queues_create_with_a_bad_limit_creates_nothing(
    cli: Cli, client: queueber.Client, value: str
) -> None:
    created = cli("queues", "create", "never", "--items-max", value)

    assert (created.code, created.stdout) == (2, "")
    assert "is not a number from 0" in created.stderr
    assert "never" not in names(client)


def test_queues_configure_changes_what_is_given(cli: Cli, client: queueber.Client) -> None:
    client.create_queue("changing", items_max=1, bytes_max=2, item_bytes_max=3)

    changed = cli("queues", "configure", "changing", "--bytes-max", "2000")
    as_json = cli("queues", "configure", "changing", "--items-max", "0", "--json")

    assert (changed.code, changed.stderr) == (0, "")
    assert changed.stdout == "changing  items 1, bytes 2,000, item bytes 3\n"
    assert json.loads(as_json.stdout) == {"itemsMax": 0, "bytesMax": 2000, "itemBytesMax": 3}
    assert settings_of(client, "changing") == QueueSettings(0, 2000, 3)


def test_queues_configure_refuses_an_unknown_queue_and_no_change(
    cli: Cli, client: queueber.Client, queue: queueber.Queue
) -> None:
    unknown = cli("queues", "configure", "mistyped", "--items-max", "1")
    nothing = cli("queues", "configure", queue.name)

    assert (unknown.code, unknown.stdout) == (4, "")
    assert unknown.stderr == "Error: there is no queue 'mistyped'\n"
    assert "mistyped" not in names(client)
    assert (nothing.code, nothing.stdout) == (2, "")
    assert "give --items-max" in nothing.stderr


def test_queues_delete_asks_first(cli: Cli, client: queueber.Client, queue: queueber.Queue) -> None:
    queue.add(b"a")

    said_no = cli("queues", "delete", queue.name, stdin="n\n")
    nobody = cli("queues", "delete", queue.name)
    assert queue.name in names(client)
    said_yes = cli("queues", "delete", queue.name, stdin="y\n")

    assert (said_no.code, said_no.stdout) == (1, f"{queue.name}  not deleted\n")
    assert f"Delete queue {queue.name!r} with 1 item?" in said_no.stderr
    assert (nobody.code, nobody.stdout) == (2, "")
    assert "give --yes" in nobody.stderr
    assert (said_yes.code, said_yes.stdout) == (0, f"{queue.name}  deleted\n")
    assert queue.name not in names(client)


def test_queues_delete_without_asking(
    cli: Cli, client: queueber.Client, queue: queueber.Queue
) -> None:
    deleted = cli("queues", "delete", queue.name, "--yes", "--json")
    again = cli("queues", "delete", queue.name, "--yes")
    default = cli("queues", "delete", "default", "--yes")

    assert (deleted.code, deleted.stdout, deleted.stderr) == (0, '{"deleted": true}\n', "")
    assert (again.code, again.stdout) == (1, f"{queue.name}  not deleted\n")
    assert (default.code, default.stdout) == (2, "")
    assert "default" in names(client)
    assert queue.name not in names(client)
