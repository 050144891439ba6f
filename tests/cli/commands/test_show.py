import json

import queueber
from queueber.cli.output import to_time
from tests.cli.conftest import Cli


def test_show_tells_the_state_the_holder_and_every_attempt(
    cli: Cli, client: queueber.Client
) -> None:
    client.create_queue("found", attempts_max=3, backoff=[0])
    queue = client.queue("found")
    [item_id] = queue.add(b"work", key="order-17", attributes={"trace": "a1"})
    queue.poll().fail("no route\n  to host", delay=0)
    queue.poll().release()
    lease = queue.poll()

    shown = cli("show", "-q", queue.name, item_id.hex())
    by_key = cli("show", "-q", queue.name, "--key", "order-17")
    told = json.loads(cli("show", "-q", queue.name, item_id.hex(), "--json").stdout)

    lines = dict(line.split(None, 1) for line in shown.stdout.splitlines()[:-2])
    assert lines["id"] == item_id.hex()
    assert lines["state"].startswith("leased until 20")
    assert lines["lease"] == lease.id.hex()
    assert "127.0.0.1" in lines["holder"]
    assert (lines["key"], lines["attribute"]) == ("order-17", "trace=a1")
    assert (lines["deliveries"], lines["contents"]) == ("3, 1 failure", "work")
    assert shown.stdout.splitlines()[-2].endswith("Z failed  no route")
    assert shown.stdout.splitlines()[-2].startswith("attempt 1   20")
    assert shown.stdout.splitlines()[-1] == " " * 14 + "  to host"
    assert by_key.stdout == shown.stdout
    assert (told["state"], told["result"]) == ("leased", None)
    assert told["item"]["contents"] == "work"
    assert told["lease"]["lease"] == lease.id.hex()
    assert [(each["end"], each["error"]) for each in told["attempts"]] == [
        ("failed", "no route\n  to host")
    ]


def test_show_tells_the_result_of_an_item_that_is_done(cli: Cli, queue: queueber.Queue) -> None:
    [item_id] = queue.add(b"work")
    queue.poll().complete(b"all well")

    shown = cli("show", "-q", queue.name, item_id.hex())
    told = json.loads(cli("show", "-q", queue.name, item_id.hex(), "--json").stdout)

    assert "state       done since 20" in shown.stdout
    assert "result      all well" in shown.stdout
    assert (told["state"], told["item"], told["result"]["result"]) == ("done", None, "all well")


def test_show_of_nothing_says_why_it_may_be_gone(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"other")
    by_id = cli("show", "-q", queue.name, bytes(16).hex())
    by_key = cli("show", "-q", queue.name, "--key", "no")
    neither = cli("show", "-q", queue.name)

    assert (by_id.code, by_id.stdout) == (1, "")
    assert "it was removed, cancelled or purged, its result was deleted" in by_id.stderr
    assert (by_key.code, by_key.stdout) == (1, "")
    assert "has no item with the key 'no'" in by_key.stderr
    assert (neither.code, neither.stdout) == (2, "")
    assert "give the id of an item or --key, and not both" in neither.stderr


def test_peek_shows_only_what_a_condition_is_true_of(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"a", b"b"], key=["k1", "k2"])

    found = cli("peek", "-q", queue.name, "--where", "item.key = 'k2'")
    nothing = cli("peek", "-q", queue.name, "--where", "item.key = 'k3'")
    wrong = cli("peek", "-q", queue.name, "--where", "item.nothing = 1")

    assert [line[34:] for line in found.stdout.splitlines()[0::2]] == ["b"]
    assert (nothing.code, nothing.stdout) == (1, "")
    assert (wrong.code, wrong.stdout) == (2, "")
    assert "is no field of an item" in wrong.stderr


def test_show_and_peek_tell_what_an_item_waits_for(cli: Cli, queue: queueber.Queue) -> None:
    [first] = queue.add(b"first", batch="red \x1b[31m")
    [waits] = queue.add(b"second", after=[first], after_batch="red \x1b[31m")

    shown = cli("show", "-q", queue.name, waits.hex())
    peeked = cli("peek", "-q", queue.name, "--state", "delayed")

    expected = f'after {first.hex()}, batch json:"red \\u001b[31m"'
    [state] = [line for line in shown.stdout.splitlines() if line.startswith("state")]
    assert state == f"state       delayed until {expected}"
    assert expected in peeked.stdout
    assert "\x1b" not in shown.stdout + peeked.stdout
    assert "9999" not in shown.stdout


def test_show_and_peek_tell_what_an_item_has_of_its_own(cli: Cli, queue: queueber.Queue) -> None:
    [own] = queue.add(b"own", attempts=3, backoff=[1, 60], timeout=30, expires=3600)
    [endless] = queue.add(b"endless", attempts=0)
    queue.add(b"plain")
    item, *_ = queue.peek().items
    expires = f"expires {to_time(item.expires_at_ms)}"

    shown = cli("show", "-q", queue.name, own.hex())
    told = json.loads(cli("show", "-q", queue.name, own.hex(), "--json").stdout)["item"]
    peeked = cli("peek", "-q", queue.name)

    expected = f"attempts_max 3, backoff 1 s, 1 min, timeout 30 s, {expires}"
    assert f"options     {expected}" in shown.stdout.splitlines()
    assert "options     attempts_max none" in cli("show", "-q", queue.name, endless.hex()).stdout
    own_line, endless_line, plain_line = peeked.stdout.splitlines()[1::2]
    assert own_line.endswith(f"Z, {expected}")
    assert endless_line.endswith("Z, attempts_max none")
    assert plain_line.endswith("Z")
    assert (told["attemptsMax"], told["backoffMs"]) == (3, [1000, 60_000])
    assert (told["timeoutMs"], told["expiresAtMs"]) == (30_000, item.expires_at_ms)
