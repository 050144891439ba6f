import json

import pytest

import queueber
from tests.cli.conftest import Cli


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
        "failed once (attempts_max), 1 failure, "
        'error json:"no route\\nto host", key order-17, batch night, trace=a1'
    )


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
