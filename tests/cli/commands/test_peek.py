import json
import os

import pytest

import queueber
from tests.cli.conftest import Cli, read_terminal


def test_peek_shows_ready_items_in_the_order_of_polling(cli: Cli, queue: queueber.Queue) -> None:
    ids = queue.add([b"low", b"two\nlines", b"high"], priority=[1, 5, 9])

    peeked = cli("peek", "-q", queue.name)

    lines = peeked.stdout.splitlines()
    assert (peeked.code, peeked.stderr) == (0, "")
    assert lines[0::2] == [
        f"{ids[2].hex()}  high",
        f'{ids[1].hex()}  json:"two\\nlines"',
        f"{ids[0].hex()}  low",
    ]
    assert [line.partition("Z")[2] for line in lines[1::2]] == [", priority 9", "", ", priority 1"]
    assert all(line.startswith("    since 20") for line in lines[1::2])
    assert (queue.stats().ready, queue.stats().polled_total) == (3, 0)


def test_peek_at_every_other_state_tells_what_matters(cli: Cli, client: queueber.Client) -> None:
    client.create_queue("peeked", attempts_max=1)
    queue = client.queue("peeked")
    queue.add(b"dead", key="order-17", batch="night", attributes={"trace": "a1"})
    queue.poll().fail("no route\nto host")
    queue.add(b"held")
    lease = queue.poll()
    queue.add(b"later", delay=1000)

    delayed = cli("peek", "-q", queue.name, "--state", "delayed").stdout.splitlines()
    held = cli("peek", "-q", queue.name, "--state", "leased").stdout.splitlines()
    dead = cli("peek", "-q", queue.name, "--state", "dead").stdout.splitlines()

    assert delayed[0].endswith("  later")
    assert delayed[1].startswith("    until 20")
    assert held[0].endswith("  held")
    assert held[1].startswith(f"    lease {lease.id.hex()} until 20")
    assert dead[0].endswith("  dead")
    assert dead[1].partition("Z, ")[2] == (
        "failed once (attempts_max), 1 failure, key order-17, batch night, trace=a1"
    )
    assert dead[2:] == ["    error:", "        no route", "        to host"]


def test_peek_shows_a_traceback_as_lines_that_no_terminal_obeys(
    cli: Cli, client: queueber.Client
) -> None:
    client.create_queue("traceback", attempts_max=1)
    queue = client.queue("traceback")
    queue.add([b"first", b"second"])
    queue.poll().fail(
        'Traceback (most recent call last):\n  File "a.py", line 3\n\tgo()\nOops: \x1b[2J\n'
    )
    queue.poll().fail("a single line\n")

    lines = cli("peek", "-q", queue.name, "--state", "dead").stdout.splitlines()

    assert lines[1].endswith("failed once (attempts_max), 1 failure")
    assert lines[2:7] == [
        "    error:",
        "        Traceback (most recent call last):",
        '          File "a.py", line 3',
        "                go()",
        '        json:"Oops: \\u001b[2J"',
    ]
    assert lines[7].endswith("  second")
    assert lines[8].endswith(', error json:"a single line\\n"')
    assert len(lines) == 9


def test_peek_cuts_large_contents_on_a_terminal_only(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"x" * 2000)
    queue.add(("x" + "\u00e9" * 2000).encode())
    queue.add(b"\xff" * 2001)

    piped = cli("peek", "-q", queue.name).stdout.splitlines()
    shown = peek_on_terminal(cli, queue.name)

    assert [len(line.split("  ")[1]) for line in piped[0::2]] == [2000, 2001, 2675]
    assert shown[0].endswith("  " + "x" * 2000)
    assert shown[2].endswith("  x" + "\u00e9" * 999 + " ... (2,002 bytes more; --raw prints all)")
    assert shown[4].endswith("//8= ... (1 byte more; --raw prints all)")
    assert len("".join(peek_on_terminal(cli, queue.name, "--raw"))) == 2000 + 2001 + 2001


def peek_on_terminal(cli: Cli, *arguments: str) -> list[str]:
    """The lines that it shows on a terminal of its own."""
    terminal, terminal_end = os.openpty()
    process = cli.start("peek", "-q", *arguments, stdout=terminal_end)
    os.close(terminal_end)
    shown = read_terminal(terminal)
    process.communicate(timeout=30)
    assert process.returncode == 0
    return shown.decode(errors="replace").splitlines()


def test_peek_json_has_every_field(cli: Cli, client: queueber.Client) -> None:
    client.create_queue("peeked-json", attempts_max=1)
    queue = client.queue("peeked-json")
    queue.add(b"\xff", priority=7, attributes={"trace": "a1"})
    queue.poll().fail("no route")

    peeked = cli("peek", "-q", queue.name, "--state", "dead", "--json")

    [item] = queue.peek("dead").items
    assert (peeked.code, peeked.stderr) == (0, "")
    assert json.loads(peeked.stdout) == {
        "id": item.id.hex(),
        "contents": None,
        "contentsBase64": "/w==",
        "addedAtMs": item.added_at_ms,
        "key": None,
        "attributes": {"trace": "a1"},
        "batch": None,
        "priority": 7,
        "attempts": 1,
        "groupMax": 0,
        "atMs": item.at_ms,
        "lease": None,
        "reason": "failed once (attempts_max)",
        "lastError": "no route",
        "attemptTimesMs": list(item.attempt_times_ms),
        "deliveries": 1,
        "after": [],
        "afterBatch": None,
        "attemptsMax": None,
        "backoffMs": [],
        "timeoutMs": 0,
        "expiresAtMs": 0,
    }


def test_peek_in_pages_up_to_a_limit(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"%d" % n for n in range(2500)])

    default = cli("peek", "-q", queue.name, "--raw")
    many = cli("peek", "-q", queue.name, "--raw", "--limit", "2200")
    everything = cli("peek", "-q", queue.name, "--json", "--limit", "1000000")

    assert default.stdout.split() == [str(n) for n in range(100)]
    assert many.stdout.split() == [str(n) for n in range(2200)]
    assert len(everything.stdout.splitlines()) == 2500


def test_peek_of_nothing_ends_with_1(cli: Cli, queue: queueber.Queue) -> None:
    peeked = cli("peek", "-q", queue.name, "--state", "leased")
    as_json = cli("peek", "-q", queue.name, "--json")
    raw = cli("peek", "-q", queue.name, "--raw")

    assert (peeked.code, peeked.stdout) == (1, "")
    assert peeked.stderr == f"Nothing is leased in queue {queue.name!r}.\n"
    assert (as_json.code, as_json.stdout, as_json.stderr) == (1, "", "")
    assert (raw.code, raw.stdout, raw.stderr) == (1, "", "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--state", "gone"], "'gone' is none of ready, delayed, leased, dead"),
        (["--limit", "0"], "'--limit'"),
        (["--raw", "--json"], "--raw and --json do not go together"),
    ],
)
def test_peek_with_wrong_usage(
    cli: Cli, queue: queueber.Queue, arguments: list[str], told: str
) -> None:
    peeked = cli("peek", "-q", queue.name, *arguments)

    assert (peeked.code, peeked.stdout) == (2, "")
    assert told in peeked.stderr
