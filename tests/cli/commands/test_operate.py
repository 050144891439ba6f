import json
from collections.abc import Callable

import pytest

import queueber
from tests.cli.conftest import Cli, run_on_terminal

NO_ID = "00" * 16


def test_cancel_deletes_items_in_whatever_state(cli: Cli, queue: queueber.Queue) -> None:
    held = queue.add(b"held")[0].hex()
    queue.poll()
    ready = queue.add(b"ready")[0].hex()

    cancelled = cli("cancel", "-q", queue.name, held, ready)
    again = cli("cancel", "-q", queue.name, "--json", held, NO_ID)
    in_words = cli("cancel", "-q", queue.name, held)

    assert (cancelled.code, cancelled.stderr) == (0, "")
    assert in_words.stdout == f"{held}  not cancelled: there is no such item in the queue\n"
    assert cancelled.stdout == f"{held}  cancelled\n{ready}  cancelled\n"
    assert again.code == 1
    assert json.loads(again.stdout) == {"cancelled": [], "notCancelled": [held, NO_ID]}
    assert (queue.stats().ready, queue.stats().leased) == (0, 0)


def test_items_are_rescheduled_and_run_now(cli: Cli, queue: queueber.Queue) -> None:
    held = queue.add(b"held")[0].hex()
    queue.poll()
    ready = queue.add(b"ready")[0].hex()

    later = cli("reschedule", "-q", queue.name, ready, "--delay", "600")
    state_later = (queue.stats().ready, queue.stats().delayed)
    at = cli("reschedule", "-q", queue.name, ready, held, "--at", "2100-01-01T00:00Z")
    passed = cli("reschedule", "-q", queue.name, ready, "--at", "2020-01-01T00:00Z")
    state_passed = (queue.stats().ready, queue.stats().delayed)
    cli("reschedule", "-q", queue.name, ready, "--delay", "600")
    now = cli("run-now", "-q", queue.name, ready, held, "--json")

    assert (later.code, later.stdout, later.stderr) == (0, f"{ready}  rescheduled\n", "")
    assert state_later == (0, 1)
    assert (at.code, at.stdout) == (2, "")
    assert "the limit is 366 days from now" in at.stderr
    assert (passed.code, state_passed) == (0, (1, 0))
    assert now.code == 1
    assert json.loads(now.stdout) == {"rescheduled": [ready], "notRescheduled": [held]}
    assert (queue.stats().ready, queue.stats().delayed) == (1, 0)


@pytest.mark.parametrize(
    "flags", [[], ["--delay", "1", "--at", "2100-01-01T00:00Z"], ["--at", "2026-12-24T08:00"]]
)
def test_reschedule_needs_one_time_with_its_zone(
    cli: Cli, queue: queueber.Queue, flags: list[str]
) -> None:
    refused = cli("reschedule", "-q", queue.name, NO_ID, *flags)

    assert (refused.code, refused.stdout) == (2, "")
    assert "--at" in refused.stderr or "no time zone" in refused.stderr


FILL: dict[str, Callable[[queueber.Queue], object]] = {
    "ready": lambda queue: queue.add([b"x"] * 1500),
    "delayed": lambda queue: queue.add([b"x"] * 1500, delay=1000),
    "leased": lambda queue: (queue.add([b"x"] * 10), queue.poll(10)),
    "dead": lambda queue: (queue.add(b"x"), queue.poll().fail("")),
}


@pytest.mark.parametrize("state", FILL)
def test_purge_deletes_what_is_in_a_state(cli: Cli, client: queueber.Client, state: str) -> None:
    name = f"purge-{state}"
    client.create_queue(name, attempts_max=1)
    queue = client.queue(name)
    for fill in reversed(FILL.values()):
        fill(queue)

    purged = cli("purge", "-q", name, "--state", state, "--yes")
    again = cli("purge", "-q", name, "--state", state, "--yes", "--json")

    counts = {"ready": 1500, "delayed": 1500, "leased": 10, "dead": 1}
    items = "1 item" if state == "dead" else f"{counts[state]:,} items"
    assert (purged.code, purged.stdout, purged.stderr) == (0, f"{items} purged\n", "")
    assert (again.code, again.stdout) == (0, '{"purged": 0}\n')
    told = f"0 items purged: nothing is {state.replace('-', ' ')}\n"
    assert cli("purge", "-q", name, "--state", state, "--yes").stdout == told
    stats = queue.stats()
    left = {"ready": stats.ready, "delayed": stats.delayed, "dead": stats.dead}
    assert left | {"leased": stats.leased} == counts | {state: 0}


def test_purge_asks_first(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"a", b"b"])
    command = ["purge", "-q", queue.name, "--state", "ready"]

    no_code, no_stdout, no_shown = run_on_terminal(cli, *command, typed=b"n\n")
    piped = cli(*command, stdin="y\n")
    assert queue.stats().ready == 2
    json_code, json_stdout, _ = run_on_terminal(cli, *command, "--json", typed=b"n\n")
    assert (json_code, json_stdout) == (1, b'{"purged": 0}\n')
    assert queue.stats().ready == 2
    yes_code, yes_stdout, _ = run_on_terminal(cli, *command, typed=b"y\n")

    assert (no_code, no_stdout) == (1, b"nothing was purged\n")
    assert f"Delete 2 ready items of queue {queue.name!r}?".encode() in no_shown
    assert (piped.code, piped.stdout) == (2, "")
    assert piped.stderr == "Error: there is no terminal to ask on; give --yes if you are sure\n"
    assert (yes_code, yes_stdout) == (0, b"2 items purged\n")
    assert queue.stats().ready == 0


def test_purge_shows_on_a_terminal_how_far_it_is(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"x"] * 3000)

    code, stdout, shown = run_on_terminal(
        cli, "purge", "-q", queue.name, "--state", "ready", "--yes", "--json"
    )

    assert (code, stdout) == (0, b'{"purged": 3000}\n')
    assert b"3000/3000" in shown


def test_purge_of_all_states_empties_a_queue(cli: Cli, client: queueber.Client) -> None:
    client.create_queue("purge-all", attempts_max=1)
    queue = client.queue("purge-all")
    for fill in reversed(FILL.values()):
        fill(queue)
    queue.add(b"done", batch="b", priority=9)
    queue.poll().complete(b"kept")
    command = ["purge", "-q", queue.name, "--state", "all"]

    no_code, _, asked = run_on_terminal(cli, *command, typed=b"n\n")
    before = queue.stats()
    purged = cli(*command, "--yes")
    again = cli(*command, "--yes")

    assert (no_code, before.ready, before.dead) == (1, 1500, 1)
    assert b"Delete 3,011 items of queue 'purge-all'?" in asked
    assert (purged.code, purged.stdout, purged.stderr) == (0, "3,011 items purged\n", "")
    assert (again.code, again.stdout) == (0, "0 items purged: the queue is empty\n")
    stats = queue.stats()
    assert (stats.ready, stats.delayed, stats.leased, stats.dead) == (0, 0, 0, 0)
    assert (stats.leases, stats.results) == (0, 1)


@pytest.mark.parametrize("arguments", [[], ["--state", "gone"], ["--state", ""]])
def test_purge_needs_a_state(cli: Cli, queue: queueber.Queue, arguments: list[str]) -> None:
    queue.add(b"stays")

    purged = cli("purge", "-q", queue.name, "--yes", *arguments)

    assert (purged.code, purged.stdout) == (2, "")
    assert "--state" in purged.stderr
    if arguments:
        assert f"{arguments[1]!r} is none of ready, delayed, leased, dead, all." in purged.stderr
    assert queue.stats().ready == 1


@pytest.fixture
def letters(client: queueber.Client, queue: queueber.Queue) -> list[bytes]:
    """Three dead letters in the queue."""
    client.configure_queue(queue.name, attempts_max=1)
    ids = queue.add([b"a", b"b", b"c"])
    queue.poll(3).fail("cannot be done")
    return ids


def test_redrive_makes_dead_letters_ready(
    cli: Cli, queue: queueber.Queue, letters: list[bytes]
) -> None:
    first = letters[0].hex()

    named = cli("redrive", "-q", queue.name, first, first)
    again = cli("redrive", "-q", queue.name, first, "--json")
    rest = cli("redrive", "-q", queue.name, "--all")
    nothing = cli("redrive", "-q", queue.name, "--all", "--json")
    in_words = cli("redrive", "-q", queue.name, "--all")
    two = cli("redrive", "-q", queue.name, first, NO_ID)

    assert (named.code, named.stdout, named.stderr) == (0, "1 item redriven\n", "")
    assert (again.code, again.stdout) == (1, '{"redriven": 0}\n')
    assert (rest.code, rest.stdout) == (0, "2 items redriven\n")
    assert (nothing.code, nothing.stdout) == (0, '{"redriven": 0}\n')
    assert (in_words.code, in_words.stdout) == (0, "0 items redriven: there are no dead letters\n")
    told = "0 items redriven: 2 are no dead letters of the queue\n"
    assert (two.code, two.stdout) == (1, told)
    assert (queue.stats().ready, queue.stats().dead) == (3, 0)


def test_redrive_on_a_terminal(cli: Cli, queue: queueber.Queue, letters: list[bytes]) -> None:
    code, stdout, shown = run_on_terminal(cli, "redrive", "-q", queue.name, "--all")

    assert (code, stdout) == (0, b"3 items redriven\n")
    assert b"3/3" in shown
    assert queue.stats().ready == len(letters)


def test_redrive_needs_ids_or_all_and_not_both(
    cli: Cli, queue: queueber.Queue, letters: list[bytes]
) -> None:
    neither = cli("redrive", "-q", queue.name)
    both = cli("redrive", "-q", queue.name, "--all", letters[0].hex())

    assert (neither.code, neither.stdout) == (2, "")
    assert (both.code, both.stdout) == (2, "")
    assert "give the ids of dead letters, or --all" in neither.stderr
    assert queue.stats().dead == 3


def test_pause_and_resume(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"x")

    paused = cli("pause", "-q", queue.name)
    polled = cli("poll", "-q", queue.name)
    resumed = cli("resume", "-q", queue.name)
    again = cli("resume", "-q", queue.name, "--json")

    assert (paused.code, paused.stderr) == (0, "")
    assert paused.stdout == f"{queue.name}  paused until 'resume'\n"
    assert polled.code == 1
    assert (resumed.code, resumed.stdout) == (0, f"{queue.name}  resumed\n")
    assert (again.code, again.stdout) == (0, '{"paused": false}\n')
    assert queue.poll()


def test_pause_for_a_while_ends_by_itself(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"x")

    long = cli("pause", "-q", queue.name, "--for", "600")
    short = cli("pause", "-q", queue.name, "--for", "0.2", "--json")
    polled = cli("poll", "-q", queue.name, "--wait", "30", "--raw")

    assert long.stdout == f"{queue.name}  paused for 10 min\n"
    assert (short.code, short.stdout) == (0, '{"paused": true}\n')
    assert (polled.code, polled.stdout) == (0, "x\n")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("0", "'0' is too short"),
        ("-1", "'-1' is not a number of seconds"),
        ("4e7", "'4e7' is too long; the limit is 31,622,400 seconds (366 d)"),
    ],
)
def test_pause_for_no_time_or_too_long_is_wrong_usage(
    cli: Cli, queue: queueber.Queue, value: str, told: str
) -> None:
    paused = cli("pause", "-q", queue.name, "--for", value)

    assert (paused.code, paused.stdout) == (2, "")
    assert told in paused.stderr
    assert queue.stats().paused_until_ms == 0


def test_cancel_by_key_and_batch(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"a", key="k")
    queue.add([b"b", b"c"], batch="night")

    by_key = cli("cancel", "-q", queue.name, "--key", "k")
    again = cli("cancel", "-q", queue.name, "--key", "k")
    unconfirmed = cli("cancel", "-q", queue.name, "--batch", "night")
    by_batch = cli("cancel", "-q", queue.name, "--batch", "night", "--yes", "--json")
    unknown = cli("cancel", "-q", queue.name, "--batch", "no", "--yes")
    both = cli("cancel", "-q", queue.name, "--batch", "b", "--key", "k")
    none = cli("cancel", "-q", queue.name)

    assert (by_key.code, by_key.stdout) == (0, "1 item cancelled\n")
    assert again.code == 1
    assert "0 items cancelled: the queue has no item with the key 'k'" in again.stdout
    assert (unconfirmed.code, unconfirmed.stdout) == (2, "")
    assert json.loads(by_batch.stdout) == {"cancelled": 2}
    assert (unknown.code, unknown.stdout) == (4, "")
    assert "knows no batch 'no'" in unknown.stderr
    assert both.code == none.code == 2
    assert "give ids, --key or --batch, and one of them only" in both.stderr
