import pytest

import queueber
from tests.cli.conftest import Cli


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
