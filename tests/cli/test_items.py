import json
import os
import signal

import pytest

import queueber
from tests.cli.conftest import Cli

NO_ID = "00" * 16


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
    assert queue.remove(ids, bytes.fromhex(lease.removeprefix("lease "))) == [True] * 5


def test_poll_json_has_the_contents_as_text_and_as_bytes(cli: Cli, queue: queueber.Queue) -> None:
    ids = queue.add(["größer".encode(), b"\xff"])

    polled = cli("poll", "-q", queue.name, "-n", "2", "--json")

    answer = json.loads(polled.stdout)
    assert (polled.code, polled.stderr) == (0, "")
    assert answer == {
        "lease": answer["lease"],
        "items": [
            {"id": ids[0].hex(), "contents": "größer", "contentsBase64": "Z3LDtsOfZXI="},
            {"id": ids[1].hex(), "contents": None, "contentsBase64": "/w=="},
        ],
    }
    assert queue.extend(bytes.fromhex(answer["lease"]), 60)


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
    assert (queue.stats().removed_total, queue.stats().in_progress) == (0, 1)


def test_poll_of_nothing_ends_with_1(cli: Cli, queue: queueber.Queue) -> None:
    polled = cli("poll", "-q", queue.name, "--remove")
    as_json = cli("poll", "-q", queue.name, "--json")
    raw = cli("poll", "-q", queue.name, "--raw")

    assert (polled.code, polled.stdout) == (1, "")
    assert polled.stderr == f"Nothing is ready in queue {queue.name!r}.\n"
    assert (as_json.code, as_json.stderr) == (1, "")
    assert json.loads(as_json.stdout) == {"lease": None, "items": []}
    assert (raw.code, raw.stdout, raw.stderr) == (1, "", "")


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
        (["-n", "1001"], "1001 is too many; the limit is 1000"),
        (["-n", "0"], "'-n'"),
        (["--lease", "0"], "0 is no lease"),
        (["--lease", "1e9"], "too long"),
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


def test_remove_tells_what_became_of_each(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"a", b"b"])
    lease = queue.poll(2)
    first, second = (item.id.hex() for item in lease)

    removed = cli("remove", "-q", queue.name, lease.id.hex(), first)
    again = cli("remove", "-q", queue.name, lease.id.hex(), first, second)

    assert (removed.code, removed.stdout, removed.stderr) == (0, f"{first}  removed\n", "")
    assert again.code == 1
    assert again.stdout == f"{first}  not removed\n{second}  removed\n"
    assert queue.stats().removed_total == 2


def test_remove_json_and_ids_with_dashes(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"a")
    lease = queue.poll()
    item_id = lease.items[0].id.hex()
    dashed = "-".join([item_id[:8], item_id[8:12], item_id[12:16], item_id[16:20], item_id[20:]])

    removed = cli("remove", "-q", queue.name, "--json", lease.id.hex(), NO_ID, dashed)

    assert removed.code == 1
    assert json.loads(removed.stdout) == {"removed": [item_id], "notRemoved": [NO_ID]}


def test_remove_under_another_lease_keeps_the_item(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"a")
    item_id = queue.poll().items[0].id.hex()

    removed = cli("remove", "-q", queue.name, NO_ID, item_id)

    assert (removed.code, removed.stdout) == (1, f"{item_id}  not removed\n")
    assert (queue.stats().in_progress, queue.stats().removed_total) == (1, 0)


def test_extend_moves_the_end_of_a_live_lease(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"a")
    lease = queue.poll().id.hex()

    extended = cli("extend", "-q", queue.name, lease, "--lease", "300")
    as_json = cli("extend", "-q", queue.name, lease, "--json")

    assert (extended.code, extended.stdout, extended.stderr) == (0, f"{lease}  extended\n", "")
    assert (as_json.code, as_json.stdout) == (0, '{"extended": true}\n')
    assert queue.stats().extended_total == 2


def test_extend_of_a_lease_that_has_ended_ends_with_1(cli: Cli, queue: queueber.Queue) -> None:
    extended = cli("extend", "-q", queue.name, NO_ID)
    as_json = cli("extend", "-q", queue.name, NO_ID, "--json")

    assert (extended.code, extended.stdout) == (1, f"{NO_ID}  not extended\n")
    assert (as_json.code, as_json.stdout) == (1, '{"extended": false}\n')
    assert queue.stats().extended_total == 0


@pytest.mark.parametrize("arguments", [["remove", NO_ID, "xyz"], ["remove", "ab"], ["extend", "a"]])
def test_what_is_no_id_is_wrong_usage(cli: Cli, arguments: list[str]) -> None:
    outcome = cli(*arguments)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "hex digits" in outcome.stderr or "Missing argument" in outcome.stderr
