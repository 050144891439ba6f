import json

import queueber
from tests.cli.conftest import Cli


def test_leases_are_listed_with_who_holds_them(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"x"] * 3)
    lease = queue.poll(2, lease=60)

    shown = cli("leases", "-q", queue.name)
    as_json = cli("leases", "-q", queue.name, "--json")

    heading, row = shown.stdout.splitlines()
    assert heading.split() == ["lease", "items", "polled", "expires", "holder"]
    assert row.split()[:2] == [lease.id.hex(), "2"]
    assert "127.0.0.1:" in row
    told = json.loads(as_json.stdout)
    assert "127.0.0.1:" in told.pop("holder")
    assert told.pop("expiresAtMs") - told.pop("polledAtMs") == 60_000
    assert told == {"lease": lease.id.hex(), "items": 2}


def test_more_leases_and_batches_than_a_page_are_listed_up_to_the_limit(
    cli: Cli, queue: queueber.Queue
) -> None:
    for number in range(260):
        queue.add(b"x", batch=f"batch {number}")
        queue.poll(1, lease=60)

    for command, field in (("leases", "lease"), ("batches", "batch")):
        shown = cli(command, "-q", queue.name, "--limit", "255", "--json").stdout.splitlines()
        assert len({json.loads(line)[field] for line in shown}) == 255


def test_batches_are_listed_newest_first_with_how_far_they_are(
    cli: Cli, queue: queueber.Queue
) -> None:
    queue.add([b"x"] * 3, batch="first")
    queue.add(b"y", batch="second\n")
    queue.poll(2, lease=60).remove()

    shown = cli("batches", "-q", queue.name)
    as_json = cli("batches", "-q", queue.name, "--json")

    assert [line.split() for line in shown.stdout.splitlines()] == [
        ["batch", "added", "done", "dead", "live", "ended"],
        ['json:"second\\n"', "1", "0", "0", "1", "0%"],
        ["first", "3", "2", "0", "1", "66%"],
    ]
    second, first = map(json.loads, as_json.stdout.splitlines())
    receipt = queue.receipt("first")
    assert second["batch"] == "second\n"
    assert first == {
        "number": 1,
        "batch": "first",
        "added": 3,
        "done": 2,
        "dead": 0,
        "live": 1,
        "addedDigest": receipt.added_digest.hex(),
        "doneDigest": receipt.done_digest.hex(),
        "deadDigest": receipt.dead_digest.hex(),
        "complete": False,
    }


def test_a_queue_without_leases_and_batches_shows_none(cli: Cli, queue: queueber.Queue) -> None:
    for command in ("leases", "batches"):
        table = cli(command, "-q", queue.name)
        assert (table.code, len(table.stdout.splitlines())) == (0, 1)
        assert cli(command, "-q", queue.name, "--json").stdout == ""
