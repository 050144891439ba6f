import json
import os
import signal

import pytest

import queueber
from tests.cli.conftest import Cli


def complete(queue: queueber.Queue, *results: bytes) -> list[bytes]:
    queue.add([b"x"] * len(results))
    lease = queue.poll(len(results))
    lease.complete(list(results))
    return lease.ids


def test_results_are_printed_with_offset_and_id(cli: Cli, queue: queueber.Queue) -> None:
    ids = complete(queue, b"plain", b"two\nlines", b"\xff")
    queue.add(b"y", key="order-17", batch="night")
    queue.poll().fail("once", delay=0)
    lease = queue.poll()
    lease.complete(b"retried")

    shown = cli("results", "-q", queue.name)

    assert (shown.code, shown.stderr) == (0, "")
    assert shown.stdout.splitlines() == [
        f"0  {ids[0].hex()}  plain",
        f'1  {ids[1].hex()}  json:"two\\nlines"',
        f"2  {ids[2].hex()}  base64:/w==",
        f"3  {lease.ids[0].hex()}  retried",
        "    attempt 2, key order-17, batch night",
    ]


def test_results_json_has_every_field(cli: Cli, queue: queueber.Queue) -> None:
    [item_id] = complete(queue, "größer".encode())

    shown = cli("results", "-q", queue.name, "--json")

    [result] = queue.results()
    assert shown.code == 0
    assert json.loads(shown.stdout) == {
        "offset": 0,
        "id": item_id.hex(),
        "result": "größer",
        "resultBase64": "Z3LDtsOfZXI=",
        "completedAtMs": result.completed_at_ms,
        "attempt": 1,
        "key": None,
        "batch": None,
        "attributes": {},
    }


def test_results_from_an_offset_up_to_a_limit(cli: Cli, queue: queueber.Queue) -> None:
    complete(queue, b"0", b"1", b"2", b"3")

    shown = cli("results", "-q", queue.name, "--from", "1", "--limit", "2", "--raw")
    nothing = cli("results", "-q", queue.name, "--from", "4")
    beyond = cli("results", "-q", queue.name, "--from", "5")

    assert (shown.code, shown.stdout) == (0, "1\n2\n")
    assert (nothing.code, nothing.stdout) == (1, "")
    assert nothing.stderr == f"There is no result in queue {queue.name!r} to read.\n"
    assert (beyond.code, beyond.stdout) == (2, "")
    assert "the limit is 4" in beyond.stderr


def test_results_of_several_pages(cli: Cli, queue: queueber.Queue) -> None:
    for start in range(0, 2500, 500):
        complete(queue, *(b"%d" % n for n in range(start, start + 500)))

    everything = cli("results", "-q", queue.name, "--raw")
    limited = cli("results", "-q", queue.name, "--raw", "--limit", "1200", "--reader", "r")

    assert everything.stdout.split() == [str(n) for n in range(2500)]
    assert limited.stdout.split() == [str(n) for n in range(1200)]
    assert queue.results_stats().readers == {"r": 1200}


def test_results_of_a_reader_go_on_where_it_stopped(cli: Cli, queue: queueber.Queue) -> None:
    command = ["results", "-q", queue.name, "--reader", "gallery", "--raw"]

    nothing = cli(*command)
    complete(queue, b"0", b"1", b"2")
    first = cli(*command, "--limit", "2")
    second = cli(*command)
    third = cli(*command)

    assert (nothing.code, nothing.stdout, nothing.stderr) == (1, "", "")
    assert (first.code, first.stdout) == (0, "0\n1\n")
    assert (second.code, second.stdout) == (0, "2\n")
    assert (third.code, third.stdout) == (1, "")


def test_results_are_kept_for_a_reader_that_found_none(cli: Cli, queue: queueber.Queue) -> None:
    """Its first command makes it known, so that another reader does not use up its results."""
    cli("results", "-q", queue.name, "--reader", "slow")
    complete(queue, b"0")
    cli("results", "-q", queue.name, "--reader", "fast")

    shown = cli("results", "-q", queue.name, "--reader", "slow", "--raw")

    assert (shown.code, shown.stdout, shown.stderr) == (0, "0\n", "")


def test_results_that_nobody_reads_are_not_acknowledged(cli: Cli, queue: queueber.Queue) -> None:
    complete(queue, b"precious")
    reading_end, writing_end = os.pipe()

    reading = cli.start("results", "-q", queue.name, "--reader", "r", "--raw", stdout=writing_end)
    os.close(writing_end)
    os.close(reading_end)
    _, stderr = reading.communicate(timeout=30)

    assert (reading.returncode, stderr) == (141, b"")
    assert queue.results_stats().readers == {}


def test_results_that_follow_come_as_they_are_made(cli: Cli, queue: queueber.Queue) -> None:
    following = cli.start("results", "-q", queue.name, "--reader", "r", "--follow", "--raw")
    assert following.stdout is not None

    complete(queue, b"first")
    first = following.stdout.readline()
    complete(queue, b"second")
    second = following.stdout.readline()
    following.send_signal(signal.SIGINT)
    _, stderr = following.communicate(timeout=30)

    assert (first, second) == (b"first\n", b"second\n")
    assert (following.returncode, stderr) == (130, b"")


def test_results_that_follow_end_at_the_limit(cli: Cli, queue: queueber.Queue) -> None:
    complete(queue, b"first")
    following = cli.start("results", "-q", queue.name, "--follow", "--limit", "2", "--json")
    assert following.stdout is not None

    first = json.loads(following.stdout.readline())
    complete(queue, b"second", b"third")
    stdout, _ = following.communicate(timeout=30)

    assert first["result"] == "first"
    assert (following.returncode, json.loads(stdout)["result"]) == (0, "second")


def test_results_that_were_deleted_are_counted(cli: Cli, queue: queueber.Queue) -> None:
    complete(queue, b"0", b"1")
    queue.ack_results("r", 2)
    while queue.results_stats().first_offset < 2:
        pass
    complete(queue, b"2")

    shown = cli("results", "-q", queue.name, "--raw")

    assert (shown.code, shown.stdout) == (0, "2\n")
    assert shown.stderr == (
        "Deleted: 2 earlier results. All readers have acknowledged them, or they exceeded "
        "--result-age or --result-bytes-max of the queue.\n"
    )


def test_results_that_a_reader_has_missed_are_counted(cli: Cli, client: queueber.Client) -> None:
    client.create_queue("little-kept", result_bytes_max=1)
    queue = client.queue("little-kept")
    queue.ack_results("r", 0)
    complete(queue, b"0")
    complete(queue, b"1")
    while queue.results_stats().first_offset < 1:
        pass

    shown = cli("results", "-q", queue.name, "--reader", "r")

    assert shown.stderr.startswith("Deleted before they were read: ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--reader", "r", "--from", "0"], "give --from or --reader"),
        (["--reader", ""], "reader: it is empty"),
        (["--limit", "0"], "'--limit'"),
        (["--from", "-1"], "'-1' is not a number"),
        (["--raw", "--json"], "--raw and --json do not go together"),
    ],
)
def test_results_with_wrong_usage(
    cli: Cli, queue: queueber.Queue, arguments: list[str], told: str
) -> None:
    complete(queue, b"x")

    shown = cli("results", "-q", queue.name, *arguments)

    assert (shown.code, shown.stdout) == (2, "")
    assert told in shown.stderr
    assert queue.results_stats().readers == {}


@pytest.mark.parametrize("command", [["readers"], ["readers", "list"]])
def test_readers_are_listed_with_how_far_they_are_behind(
    cli: Cli, queue: queueber.Queue, command: list[str]
) -> None:
    complete(queue, *[b"x"] * 1000)
    complete(queue, *[b"x"] * 500)
    queue.ack_results("slow one", 100)
    queue.ack_results("fast", 1500)

    shown = cli(*command, "-q", queue.name)
    as_json = cli(*command, "-q", queue.name, "--json")

    assert (shown.code, shown.stderr) == (0, "")
    assert [line.rsplit(maxsplit=2) for line in shown.stdout.splitlines()] == [
        ["reader", "offset", "behind"],
        ["fast", "1,500", "0"],
        ["slow one", "100", "1,400"],
    ]
    assert [json.loads(line) for line in as_json.stdout.splitlines()] == [
        {"reader": "fast", "offset": 1500, "behind": 0},
        {"reader": "slow one", "offset": 100, "behind": 1400},
    ]


def test_readers_drop_forgets_one(cli: Cli, queue: queueber.Queue) -> None:
    queue.ack_results("r", 0)

    dropped = cli("readers", "drop", "r", "-q", queue.name)
    again = cli("readers", "drop", "r", "-q", queue.name)
    as_json = cli("readers", "drop", "r", "-q", queue.name, "--json")

    assert (dropped.code, dropped.stdout, dropped.stderr) == (0, "r  dropped\n", "")
    assert (again.code, again.stdout) == (1, "r  not dropped: there is no such reader\n")
    assert (as_json.code, as_json.stdout) == (1, '{"dropped": false}\n')
    assert queue.results_stats().readers == {}
