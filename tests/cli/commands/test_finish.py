import json
from pathlib import Path

import pytest

import queueber
from tests.cli.conftest import ITEM_BYTES_MAX, Cli

NO_ID = "00" * 16
LEASE_ENDED = "the lease has ended, or never held it"


def test_remove_tells_what_became_of_each(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"a", b"b"])
    lease = queue.poll(2)
    first, second = (item.id.hex() for item in lease)

    removed = cli("remove", "-q", queue.name, lease.id.hex(), first)
    again = cli("remove", "-q", queue.name, lease.id.hex(), first, second)

    assert (removed.code, removed.stdout, removed.stderr) == (0, f"{first}  removed\n", "")
    assert again.code == 1
    assert again.stdout == f"{first}  not removed: {LEASE_ENDED}\n{second}  removed\n"
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

    assert (removed.code, removed.stdout) == (1, f"{item_id}  not removed: {LEASE_ENDED}\n")
    assert (queue.stats().leased, queue.stats().removed_total) == (1, 0)


def test_complete_keeps_a_result_for_each(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"a", b"b", b"c"])
    lease = queue.poll(3)
    first, second, third = (item.id.hex() for item in lease)
    command = ["complete", "-q", queue.name, lease.id.hex()]

    done = cli(*command, first, second, "--result", "größer", "--result", "")
    again = cli(*command, third, second, "--result", "ok", "--json")

    assert (done.code, done.stderr) == (0, "")
    assert done.stdout == f"{first}  completed\n{second}  completed\n"
    assert again.code == 1
    assert json.loads(again.stdout) == {"completed": [third], "notCompleted": [second]}
    assert [each.result for each in queue.results()] == ["größer".encode(), b"", b"ok"]


def test_complete_with_lines_and_files(cli: Cli, queue: queueber.Queue, tmp_path: Path) -> None:
    queue.add([b"a", b"b", b"c", b"d", b"e"])
    lease = queue.poll(5)
    ids = [item.id.hex() for item in lease]
    (tmp_path / "lines").write_bytes(b"one\r\n\n\xff\x0b")
    (tmp_path / "file").write_bytes(b"two\nlines\n")
    command = ["complete", "-q", queue.name, lease.id.hex()]

    lines = cli.run(*command, *ids[:3], "--lines", stdin=tmp_path / "lines")
    files = cli.run(
        *command, *ids[3:], "--file", str(tmp_path / "file"), "--file", "-", stdin=tmp_path / "file"
    )

    assert (lines.code, files.code) == (0, 0)
    assert [each.result for each in queue.results()] == [
        b"one\r", b"", b"\xff\x0b", b"two\nlines\n", b"two\nlines\n",
    ]  # fmt: skip


def test_complete_of_many_is_sent_in_parts(cli: Cli, queue: queueber.Queue, tmp_path: Path) -> None:
    queue.add([b"x"] * 1000)
    lease = queue.poll(1000)
    lines = tmp_path / "lines"
    lines.write_bytes(b"".join(b"%05d" % n + b"x" * 2000 + b"\n" for n in range(1000)))

    done = cli.run(
        "complete",
        "-q",
        queue.name,
        lease.id.hex(),
        *(item_id.hex() for item_id in lease.ids),
        "--lines",
        stdin=lines,
    )

    assert done.code == 0
    assert [int(each.result[:5]) for each in queue.results()] == list(range(1000))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "there are 0 results for 1 id;"),
        (["--lines"], "there are 0 results for 1 id;"),
        (["--result", "a", "--result", "b"], "there are 2 results for 1 id;"),
        (["--result", "a", "--lines"], "--result and --lines do not go together"),
        (["--file", "-", "--file", "-"], "standard input can be read once"),
        (["--file", "/nowhere"], "'/nowhere' does not exist"),
    ],
)
def test_complete_with_wrong_usage_completes_nothing(
    cli: Cli, queue: queueber.Queue, arguments: list[str], told: str
) -> None:
    queue.add(b"a")
    lease = queue.poll()

    done = cli("complete", "-q", queue.name, lease.id.hex(), lease.ids[0].hex(), *arguments)

    assert (done.code, done.stdout) == (2, "")
    assert told in done.stderr
    assert (queue.stats().leased, queue.stats().completed_total) == (1, 0)


def test_complete_with_a_result_that_is_too_long_is_refused(
    cli: Cli, queue: queueber.Queue
) -> None:
    queue.add(b"a")
    lease = queue.poll()
    result = "x" * (ITEM_BYTES_MAX + 1)

    done = cli("complete", "-q", queue.name, lease.id.hex(), lease.ids[0].hex(), "--result", result)

    assert (done.code, done.stdout) == (4, "")
    assert f"the limit is {ITEM_BYTES_MAX}" in done.stderr
    assert queue.stats().leased == 1


def test_fail_tells_who_comes_back_and_who_died(cli: Cli, client: queueber.Client) -> None:
    client.create_queue("two-attempts", attempts_max=2)
    queue = client.queue("two-attempts")
    [once, twice] = queue.add([b"a", b"b"])
    first = queue.poll(2)
    queue.release([once], lease=first.id)
    queue.fail([twice], "before", lease=first.id, delay=0)
    lease = queue.poll(2)
    command = ["fail", "-q", queue.name, lease.id.hex(), once.hex(), twice.hex()]

    failed = cli(*command, "--error", "größer", "--delay", "1000")
    again = cli(*command, "--json")
    in_words = cli(*command)

    assert (failed.code, failed.stderr) == (0, "")
    assert failed.stdout == f"{once.hex()}  retried\n{twice.hex()}  died\n"
    assert again.code == 1
    assert json.loads(again.stdout) == {
        "retried": [],
        "died": [],
        "notFailed": [once.hex(), twice.hex()],
    }
    assert in_words.stdout.splitlines()[0] == f"{once.hex()}  not failed: {LEASE_ENDED}"
    [delayed], [dead] = queue.peek("delayed").items, queue.peek("dead").items
    assert (delayed.id, dead.id, dead.last_error) == (once, twice, "größer")
    assert delayed.at_ms - delayed.attempt_times_ms[0] == 1_000_000


def test_fail_without_options_takes_the_backoff_of_the_queue(
    cli: Cli, client: queueber.Client
) -> None:
    client.create_queue("slow-backoff", backoff=[500])
    queue = client.queue("slow-backoff")
    queue.add(b"a")
    lease = queue.poll()

    failed = cli("fail", "-q", queue.name, lease.id.hex(), lease.ids[0].hex(), "--json")

    [delayed] = queue.peek("delayed").items
    assert json.loads(failed.stdout)["retried"] == [lease.ids[0].hex()]
    assert (delayed.last_error, delayed.at_ms - delayed.attempt_times_ms[0]) == ("", 500_000)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--delay", "-1"], "'-1' is not a number of seconds"),
        (["--delay", "1e9"], "'1e9' is too long; the limit is 31,622,400 seconds (366 d)"),
    ],
)
def test_fail_with_wrong_usage_fails_nothing(
    cli: Cli, queue: queueber.Queue, arguments: list[str], told: str
) -> None:
    queue.add(b"a")
    lease = queue.poll()

    failed = cli("fail", "-q", queue.name, lease.id.hex(), lease.ids[0].hex(), *arguments)

    assert (failed.code, failed.stdout) == (2, "")
    assert told in failed.stderr
    assert (queue.stats().leased, queue.stats().failed_total) == (1, 0)


def test_release_gives_items_back_at_once(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"a", b"b"])
    lease = queue.poll(2)
    first, second = (item.id.hex() for item in lease)
    command = ["release", "-q", queue.name, lease.id.hex()]

    released = cli(*command, first)
    again = cli(*command, first, second, "--json")

    assert (released.code, released.stdout, released.stderr) == (0, f"{first}  released\n", "")
    assert again.code == 1
    assert json.loads(again.stdout) == {"released": [second], "notReleased": [first]}
    assert [item.attempt for item in queue.poll(9)] == [1, 1]


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

    assert (extended.code, extended.stdout) == (
        1,
        f"{NO_ID}  not extended: the lease has ended, or is not a lease of this queue\n",
    )
    assert (as_json.code, as_json.stdout) == (1, '{"extended": false}\n')
    assert queue.stats().extended_total == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["remove", NO_ID, "xyz"],
        ["remove", "ab"],
        ["extend", "a"],
        ["fail", NO_ID, "xyz"],
        ["release", "ab", NO_ID],
        ["cancel", "xyz"],
        ["redrive", "xyz"],
    ],
)
def test_what_is_no_id_is_wrong_usage(cli: Cli, arguments: list[str]) -> None:
    outcome = cli(*arguments)

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "hex digits" in outcome.stderr or "Missing argument" in outcome.stderr


def test_cancel_wants_ids_or_a_key_or_a_batch(cli: Cli) -> None:
    outcome = cli("cancel")

    assert (outcome.code, outcome.stdout) == (2, "")
    assert "give ids, --key or --batch, and one of them only" in outcome.stderr


def test_without_ids_the_whole_lease_is_meant(cli: Cli, client: queueber.Client) -> None:
    client.create_queue("whole-leases", backoff=[500])
    queue = client.queue("whole-leases")
    queue.add([b"x"] * 10)
    leases = [queue.poll(2) for _ in range(5)]
    removed, completed, failed, released, held = (lease.id.hex() for lease in leases)
    flags = ["-q", queue.name, "--json"]

    outcomes = [
        cli("remove", removed, *flags),
        cli("complete", completed, "--result", "ok", *flags),
        cli("fail", failed, "--error", "no answer", *flags),
        cli("release", released, *flags),
    ]

    assert [outcome.code for outcome in outcomes] == [0, 0, 0, 0]
    fields = ["removed", "completed", "retried", "released"]
    for lease, outcome, name in zip(leases, outcomes, fields, strict=False):
        assert sorted(json.loads(outcome.stdout)[name]) == sorted(i.hex() for i in lease.ids)
    assert [each.result for each in queue.results()] == [b"ok", b"ok"]
    assert {each.last_error for each in queue.peek("delayed").items} == {"no answer"}
    stats = queue.stats()
    assert (stats.leased, stats.ready, stats.delayed, stats.removed_total) == (2, 2, 2, 2)
    assert queue.extend(60, lease=held)


@pytest.mark.parametrize(
    ("command", "word", "fields"),
    [
        (["remove"], "not removed", ["removed", "notRemoved"]),
        (["complete", "--result", "x"], "not completed", ["completed", "notCompleted"]),
        (["fail"], "not failed", ["retried", "died", "notFailed"]),
        (["release"], "not released", ["released", "notReleased"]),
    ],
)
def test_without_ids_a_lease_that_has_ended_ends_with_1(
    cli: Cli, queue: queueber.Queue, command: list[str], word: str, fields: list[str]
) -> None:
    queue.add(b"a")
    queue.poll()

    in_words = cli(*command, NO_ID, "-q", queue.name)
    as_json = cli(*command, NO_ID, "-q", queue.name, "--json")

    reason = "the lease has ended, or holds nothing of the queue"
    assert (in_words.code, in_words.stdout) == (1, f"{NO_ID}  {word}: {reason}\n")
    assert (as_json.code, json.loads(as_json.stdout)) == (1, {field: [] for field in fields})
    assert queue.stats().leased == 1


@pytest.mark.parametrize("results", [[], ["--result", "a", "--result", "b"], ["--lines"]])
def test_complete_without_ids_needs_one_result_for_all(
    cli: Cli, queue: queueber.Queue, results: list[str]
) -> None:
    """Nothing says which result would belong to which item."""
    queue.add([b"a", b"b"])
    lease = queue.poll(2)

    done = cli("complete", lease.id.hex(), "-q", queue.name, *results, stdin="a\nb\n")

    assert (done.code, done.stdout) == (2, "")
    assert "for 0 ids; give one for all, or one for each id" in done.stderr
    assert queue.stats().leased == 2


def test_fail_with_a_long_error_keeps_its_beginning(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"a")
    lease = queue.poll()

    failed = cli("fail", "-q", queue.name, lease.id.hex(), "--error", "x" * 20_000, "--delay", "60")

    assert failed.code == 0
    assert len(queue.peek("delayed").items[0].last_error) <= 16_384
