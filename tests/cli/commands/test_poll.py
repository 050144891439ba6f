import json
import os
import signal

import pytest

import queueber
from queueber.cli.output import to_time
from tests.cli.conftest import Cli


def test_poll_prints_the_lease_then_ids_and_contents(cli: Cli, queue: queueber.Queue) -> None:
    ids = queue.add([b"plain", "größer".encode(), b"two\nlines \x1b[31m", b"\xff\x00", b""])

    polled = cli("poll", "-q", queue.name, "-n", "10")

    lease, *items = polled.stdout.splitlines()
    assert (polled.code, polled.stderr) == (0, "")
    assert items == [
        f"{ids[0].hex()}  plain",
        f"{ids[1].hex()}  größer",
        f'{ids[2].hex()}  json:"two\\nlines \\u001b[31m"',
        f"{ids[3].hex()}  base64:/wA=",
        f"{ids[4].hex()}  ",
    ]
    assert lease.startswith("lease ")
    assert queue.remove(ids, lease=bytes.fromhex(lease.removeprefix("lease "))) == [True] * 5


def test_poll_json_has_the_contents_as_text_and_as_bytes(cli: Cli, queue: queueber.Queue) -> None:
    ids = queue.add(["größer".encode(), b"\xff"])

    polled = cli("poll", "-q", queue.name, "-n", "2", "--json")

    answer = json.loads(polled.stdout)
    assert (polled.code, polled.stderr) == (0, "")
    assert answer == {
        "lease": answer["lease"],
        "items": [
            {
                "id": ids[0].hex(),
                "contents": "größer",
                "contentsBase64": "Z3LDtsOfZXI=",
                "attempt": 1,
                "deliveries": 1,
                "key": None,
                "attributes": {},
                "batch": None,
                "timeout": None,
            },
            {
                "id": ids[1].hex(),
                "contents": None,
                "contentsBase64": "/w==",
                "attempt": 1,
                "deliveries": 1,
                "key": None,
                "attributes": {},
                "batch": None,
                "timeout": None,
            },
        ],
    }
    assert queue.extend(60, lease=bytes.fromhex(answer["lease"]))


def test_poll_tells_what_else_there_is_of_an_item(cli: Cli, queue: queueber.Queue) -> None:
    attributes = {"trace": "a1, b2", "line": "1\n2"}
    queue.add(b"x", key="order-17", batch="night", attributes=attributes)
    queue.poll().fail("once", delay=0)

    polled = cli("poll", "-q", queue.name)
    lease, item, details = polled.stdout.splitlines()
    queue.poll()
    queue.fail(bytes.fromhex(item[:32]), "twice", lease=bytes.fromhex(lease[6:]), delay=0)
    as_json = json.loads(cli("poll", "-q", queue.name, "--json").stdout)
    queue.release(bytes.fromhex(item[:32]), lease=bytes.fromhex(as_json["lease"]))
    raw = cli("poll", "-q", queue.name, "--raw")

    assert details == '    attempt 2, key order-17, batch night, trace=a1, b2, json:"line=1\\n2"'
    [item_json] = as_json["items"]
    assert (item_json["attempt"], item_json["key"], item_json["batch"]) == (3, "order-17", "night")
    assert item_json["attributes"] == attributes
    assert item_json["deliveries"] == 3
    assert raw.stdout == "x\n"


def test_poll_lease_is_that_of_the_queue_unless_given(cli: Cli, client: queueber.Client) -> None:
    client.create_queue("short-leases", lease=5)
    queue = client.queue("short-leases")
    queue.add([b"short", b"long"])

    cli("poll", "-q", queue.name)
    cli("poll", "-q", queue.name, "--lease", "1000")

    short, long = queue.peek("leased").items
    assert short.at_ms < short.added_at_ms + 60_000
    assert long.at_ms > long.added_at_ms + 900_000


def test_poll_raw_with_remove_hands_the_bytes_on(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"a", b"\xff\x00", b"c"])

    polling = cli.start("poll", "-q", queue.name, "-n", "9", "--raw", "--remove")
    stdout, stderr = polling.communicate(timeout=30)

    assert (polling.returncode, stdout, stderr) == (0, b"a\n\xff\x00\nc\n", b"")
    assert queue.stats().removed_total == 3


def test_poll_that_nobody_reads_removes_nothing(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"precious")
    reading_end, writing_end = os.pipe()

    polling = cli.start("poll", "-q", queue.name, "--raw", "--remove", stdout=writing_end)
    os.close(writing_end)
    os.close(reading_end)
    _, stderr = polling.communicate(timeout=30)

    assert (polling.returncode, stderr) == (141, b"")
    assert (queue.stats().removed_total, queue.stats().leased) == (0, 1)


def test_poll_of_nothing_ends_with_1(cli: Cli, queue: queueber.Queue) -> None:
    polled = cli("poll", "-q", queue.name, "--remove")
    as_json = cli("poll", "-q", queue.name, "--json")
    raw = cli("poll", "-q", queue.name, "--raw")

    assert (polled.code, polled.stdout) == (1, "")
    assert polled.stderr == f"Nothing is ready in queue {queue.name!r}.\n"
    assert (as_json.code, as_json.stderr) == (1, "")
    assert json.loads(as_json.stdout) == {"lease": None, "items": []}
    assert (raw.code, raw.stdout, raw.stderr) == (1, "", "")


def test_poll_of_a_paused_queue_says_so(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"a", b"b"])

    queue.pause()
    endless = cli("poll", "-q", queue.name)
    queue.pause(600)
    until = to_time(queue.stats().paused_until_ms)
    ending = cli("poll", "-q", queue.name)
    as_json = cli("poll", "-q", queue.name, "--json")

    more = f"with 2 items ready. To resume: queueber resume -q {queue.name}\n"
    assert (endless.code, endless.stdout) == (1, "")
    assert endless.stderr == f"Queue {queue.name!r} is paused until it is resumed, {more}"
    assert ending.stderr == f"Queue {queue.name!r} is paused until {until}, {more}"
    assert (as_json.code, as_json.stderr) == (1, "")


def test_poll_creates_its_queue_and_its_help_says_so(cli: Cli, client: queueber.Client) -> None:
    assert cli("poll", "-q", "made-by-poll").code == 1

    assert "made-by-poll" in [each.name for each in client.queues()]
    assert "A queue that does not exist is created" in cli("poll", "--help").stdout


def test_poll_waits_for_an_item(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"later", delay=0.3)

    polled = cli("poll", "-q", queue.name, "--wait", "30", "--raw")

    assert (polled.code, polled.stdout) == (0, "later\n")


def test_poll_that_waits_is_interrupted_quietly(cli: Cli, queue: queueber.Queue) -> None:
    polling = cli.start("poll", "-q", queue.name, "--wait", "60")
    while queue.stats().waiting_polls == 0:
        assert polling.poll() is None

    polling.send_signal(signal.SIGINT)
    stdout, stderr = polling.communicate(timeout=30)
    while queue.stats().waiting_polls:
        pass
    queue.add(b"for the next one")

    assert (polling.returncode, stdout, stderr) == (130, b"", b"")
    assert [item.contents for item in queue.poll()] == [b"for the next one"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-n", "1001"], "Error: --count: 1001 is too many; the limit is 1000"),
        (["-n", "0"], "'-n'"),
        (["--lease", "0"], "'0' is too short"),
        (["--lease", "1e7"], "'1e7' is too long; the limit is 604,800 seconds (7 d)"),
        (["--wait", "soon"], "'soon' is not a number of seconds"),
        (["--raw", "--json"], "--raw and --json do not go together"),
    ],
)
def test_poll_with_wrong_usage_leases_nothing(
    cli: Cli, queue: queueber.Queue, arguments: list[str], told: str
) -> None:
    queue.add(b"stays")

    polled = cli("poll", "-q", queue.name, *arguments)

    assert (polled.code, polled.stdout) == (2, "")
    assert told in polled.stderr
    assert (queue.stats().ready, queue.stats().polled_total) == (1, 0)


def test_poll_with_a_wait_above_the_limit_names_the_flag(cli: Cli, queue: queueber.Queue) -> None:
    polled = cli("poll", "-q", queue.name, "--wait", "400")

    assert (polled.code, polled.stdout) == (2, "")
    assert polled.stderr == "Error: --wait: 400 s is too long; the limit of this server is 300\n"
