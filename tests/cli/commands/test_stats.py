import fcntl
import json
import os
import re
import signal
import struct
import termios

import pytest

import queueber
from queueber.cli.output import to_json
from tests.cli.conftest import Cli, read_terminal, rows_of


def test_stats_shows_a_queue_in_numbers(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"12345"] * 1200)
    queue.add(b"12345", key="k")
    queue.add(b"12345", key="k")
    lease = queue.poll(200)
    queue.complete(lease.ids[:2], [b"one", b"two"], lease=lease.id)
    queue.fail(lease.ids[2:5], "", lease=lease.id)

    shown = cli("stats", "-q", queue.name)

    rows = rows_of(shown.stdout)
    assert (shown.code, shown.stderr) == (0, "")
    expected = {
        "paused": "no",
        "ready": "1,001",
        "delayed": "3",
        "leased": "195",
        "dead": "0",
        "bytes": "5,996",
        "results": "2",
        "added": "1,201",
        "duplicates": "1",
        "failed": "3",
        "completed": "2",
        "items, limit": "none",
        "attempts, limit": "20",
    }
    assert {name: rows[name] for name in expected} == expected
    assert float(rows["oldest, seconds"].replace(",", "")) >= 0


@pytest.mark.parametrize(("seconds", "told"), [(None, "until 'resume'"), (1000, "for 9")])
def test_stats_tells_how_long_a_queue_is_paused(
    cli: Cli, queue: queueber.Queue, seconds: float | None, told: str
) -> None:
    queue.pause(seconds)

    assert rows_of(cli("stats", "-q", queue.name).stdout)["paused"].startswith(told)


def test_stats_counts_what_nobody_leased_in_time(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"x", b"y"], expires=0.001)
    queue.add(b"z")
    while queue.stats().dead < 2:
        queue.peek("dead")

    rows = rows_of(cli("stats", "-q", queue.name).stdout)

    assert (rows["died"], rows["unclaimed"], rows["failed"]) == ("2", "2", "0")


def test_stats_json_has_every_field(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"12345", delay=1000)

    shown = cli("stats", "-q", queue.name, "--json")

    found = json.loads(shown.stdout)
    assert (shown.code, shown.stderr) == (0, "")
    assert found == json.loads(json.dumps(to_json(queue.stats())))
    assert (found["delayed"], found["contentsBytes"], found["addedTotal"]) == (1, 5, 1)
    assert found["settings"]["leaseMs"] == 60_000
    assert found["settings"]["backoffMs"] == []


def test_stats_of_an_unknown_queue_does_not_create_it(cli: Cli, client: queueber.Client) -> None:
    shown = cli("stats", "-q", "mistyped")

    assert (shown.code, shown.stdout) == (4, "")
    assert shown.stderr == "Error: there is no queue 'mistyped'; create it, or check the name\n"
    assert "mistyped" not in [each.name for each in client.queues()]


def test_stats_watch_json_is_an_object_each_time_until_ctrl_c(
    cli: Cli, queue: queueber.Queue
) -> None:
    watching = cli.start("stats", "-q", queue.name, "--watch", "--every", "0.01", "--json")
    assert watching.stdout is not None
    first = json.loads(watching.stdout.readline())
    queue.add([b"x"] * 7)
    while (found := json.loads(watching.stdout.readline()))["ready"] == 0:
        pass
    watching.send_signal(signal.SIGINT)
    _, stderr = watching.communicate(timeout=30)

    assert (first["ready"], found["ready"], found["addedTotal"]) == (0, 7, 7)
    assert (watching.returncode, stderr) == (130, b"")


def test_stats_watch_moves_in_place_on_a_terminal(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"x"] * 1234)
    terminal, terminal_end = os.openpty()
    watching = cli.start(
        "stats", "-q", queue.name, "--watch", "--every", "0.05", stdout=terminal_end
    )
    os.close(terminal_end)
    shown = b""
    while b"1,234" not in shown:
        shown += os.read(terminal, 65536)
    queue.add(b"x")
    while b"1,235" not in shown:
        shown += os.read(terminal, 65536)
    watching.send_signal(signal.SIGINT)
    shown += read_terminal(terminal)
    watching.communicate(timeout=30)

    assert watching.returncode == 130
    assert b"\x1b[1A" in shown  # the cursor goes back up
    assert b"backoff" not in shown  # settings are not watched


@pytest.mark.parametrize(
    ("lines", "told"), [(60, ""), (20, "and 10 rows more"), (2, "and 28 rows more")]
)
def test_stats_watch_shows_as_many_rows_as_the_terminal_has_lines_for(
    cli: Cli, queue: queueber.Queue, lines: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("LINES", raising=False)
    terminal, terminal_end = os.openpty()
    fcntl.ioctl(terminal_end, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 100, 0, 0))
    watching = cli.start("stats", "-q", queue.name, "--watch", stdout=terminal_end)
    os.close(terminal_end)
    shown = b""
    while b"queue " not in shown:
        shown += os.read(terminal, 65536)
    watching.send_signal(signal.SIGINT)
    shown += read_terminal(terminal)
    watching.communicate(timeout=30)

    first = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).split("queue ")[1].splitlines()
    assert len([line for line in first if line.strip()]) == min(lines, 29)
    assert (told in shown.decode(), ("completed" in shown.decode())) == (True, lines == 60)


@pytest.mark.parametrize("every", ["0", "-1", "3601", "soon"])
def test_stats_watch_with_a_strange_interval_is_wrong_usage(
    cli: Cli, queue: queueber.Queue, every: str
) -> None:
    shown = cli("stats", "-q", queue.name, "--watch", "--every", every)

    assert (shown.code, shown.stdout) == (2, "")
    assert "--every" in shown.stderr
