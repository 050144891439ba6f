import json
import os
import signal

import queueber
from tests.cli.conftest import Cli, read_terminal, run_on_terminal


def rows_of(shown: str) -> dict[str, str]:
    return dict(line.split(maxsplit=1) for line in shown.splitlines())


def test_receipt_counts_and_its_exit_code_says_whether_it_is_complete(
    cli: Cli, queue: queueber.Queue
) -> None:
    done, dead, _ = queue.add([b"a", b"b", b"c"], batch="night run")
    queue.cancel(dead)
    queue.remove(done, lease=queue.poll().id)

    live = cli("receipt", "night run", "-q", queue.name)
    queue.poll().remove()
    complete = cli("receipt", "night run", "-q", queue.name)

    assert (live.code, live.stderr) == (1, "")
    assert rows_of(live.stdout) == {
        "batch": "night run", "added": "3", "done": "1", "dead": "1", "live": "1", "complete": "no",
    }  # fmt: skip
    assert (complete.code, rows_of(complete.stdout)["complete"]) == (0, "yes")


def test_receipt_json_has_the_digests(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"a", batch="b")

    shown = cli("receipt", "b", "-q", queue.name, "--json")

    found = queue.receipt("b")
    assert shown.code == 1
    assert json.loads(shown.stdout) == {
        "batch": "b",
        "added": 1,
        "done": 0,
        "dead": 0,
        "live": 1,
        "addedDigest": found.added_digest.hex(),
        "doneDigest": found.done_digest.hex(),
        "deadDigest": found.dead_digest.hex(),
        "complete": False,
    }


def test_receipt_waits_until_the_batch_is_complete(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"a", batch="b")

    waiting = cli.start("receipt", "b", "-q", queue.name, "--wait", "--json")
    queue.poll().remove()
    stdout, stderr = waiting.communicate(timeout=30)

    assert (waiting.returncode, stderr) == (0, b"")
    assert json.loads(stdout)["complete"] is True


def test_receipt_waits_no_longer_than_told(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"a", batch="b")

    shown = cli("receipt", "b", "-q", queue.name, "--wait", "--timeout", "0.05")

    assert (shown.code, rows_of(shown.stdout)["live"]) == (1, "1")


def test_receipt_that_waits_shows_on_a_terminal_how_far_it_is(
    cli: Cli, queue: queueber.Queue
) -> None:
    queue.add([b"a", b"b"], batch="night")
    queue.poll().remove()
    command = ["receipt", "night", "-q", queue.name, "--wait"]

    code, stdout, shown = run_on_terminal(cli, *command, "--timeout", "0.6", "--json")
    queue.poll().remove()
    complete_code, _, complete_shown = run_on_terminal(cli, *command, "--json")

    assert (code, json.loads(stdout)["done"]) == (1, 1)
    assert b"night" in shown
    assert b"1/2" in shown
    assert complete_code == 0
    assert b"2/2" in complete_shown


def test_receipt_that_waits_is_interrupted_quietly(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"a", batch="b")
    terminal, terminal_end = os.openpty()
    waiting = cli.start("receipt", "b", "-q", queue.name, "--wait", stderr=terminal_end)
    os.close(terminal_end)
    shown = b""
    while b"0/1" not in shown:
        shown += os.read(terminal, 65536)

    waiting.send_signal(signal.SIGINT)
    shown += read_terminal(terminal)
    stdout, _ = waiting.communicate(timeout=30)

    assert (waiting.returncode, stdout) == (130, b"")
    assert b"Error" not in shown
    assert b"Traceback" not in shown


def test_receipt_of_an_unknown_batch_is_refused(cli: Cli, queue: queueber.Queue) -> None:
    unknown = cli("receipt", "nope", "-q", queue.name)
    waiting = cli("receipt", "nope", "-q", queue.name, "--wait")

    assert (unknown.code, unknown.stdout) == (4, "")
    assert "'nope'" in unknown.stderr
    assert (waiting.code, waiting.stderr) == (4, unknown.stderr)


def test_receipt_with_a_time_but_no_wait_is_wrong_usage(cli: Cli, queue: queueber.Queue) -> None:
    shown = cli("receipt", "b", "-q", queue.name, "--timeout", "1")

    assert (shown.code, shown.stdout) == (2, "")
    assert "give --wait, too" in shown.stderr
