"""`queueber top` on a terminal of its own, and printed once."""

import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest

import queueber
from tests.cli.conftest import Cli

ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]")
WAIT_SECONDS = 30.0


class Terminal:
    """A command on a pseudo-terminal."""

    def __init__(self, cli: Cli, *arguments: str, rows: int = 30) -> None:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 110, 0, 0))
        self.before = termios.tcgetattr(self._ours)
        self.shown = b""
        environment = {
            **os.environ, "QUEUEBER_ADDRESS": cli.address, "TERM": "xterm-256color",
        }  # fmt: skip
        environment.pop("COLUMNS", None)
        environment.pop("LINES", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "queueber", *arguments],
            stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True,
        )  # fmt: skip
        self._theirs = theirs
        os.set_blocking(self._ours, False)

    @property
    def text(self) -> str:
        """What was shown since the last `forget`, without colours and places."""
        return ESCAPES.sub(b" ", self.shown).decode(errors="replace")

    def forget(self) -> None:
        self.shown = b""

    def wait_for(self, pattern: str) -> None:
        give_up_at = time.monotonic() + WAIT_SECONDS
        while not re.search(pattern, self.text):
            assert time.monotonic() < give_up_at, self.text
            try:
                self.shown += os.read(self._ours, 65536)
            except BlockingIOError:
                time.sleep(0.01)

    def press(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def settings(self) -> list[object]:
        return termios.tcgetattr(self._ours)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        os.close(self._ours)
        os.close(self._theirs)


@pytest.fixture
def filled(queue: queueber.Queue) -> Iterator[queueber.Queue]:
    queue.add([b"x"] * 1234)
    queue.poll(34, lease=60)
    yield queue
    queue.purge("ready")
    queue.purge("leased")


def test_queues_are_shown_live_until_q_is_pressed(cli: Cli, filled: queueber.Queue) -> None:
    terminal = Terminal(cli, "top", "--every", "0.2", "--sort", "ready")
    try:
        terminal.wait_for(rf"{filled.name} +1,200 +34")
        terminal.forget()
        filled.add([b"x"] * 11)
        terminal.wait_for(rf"{filled.name} +1,211 +34")
        terminal.press(b"q")

        assert terminal.process.wait(20) == 0
        terminal.wait_for("")
        assert terminal.settings() == terminal.before
    finally:
        terminal.close()


def test_s_sorts_by_the_next_column(
    cli: Cli, client: queueber.Client, filled: queueber.Queue
) -> None:
    most = max(client.queues(), key=lambda stats: stats.ready)
    assert most.ready >= filled.stats().ready
    terminal = Terminal(cli, "top", "--every", "60", "--sort", "name")
    try:
        terminal.wait_for(r"polls\s+\S+")  # other tests may have left more queues than fit
        terminal.forget()
        terminal.press(b"s")
        terminal.wait_for(r"polls\s+\S+")
        terminal.wait_for(filled.name)
        first = re.search(r"polls\s+(\S+)", terminal.text)
        assert first is not None
        assert first[1] == most.name
        terminal.press(b"q")
        assert terminal.process.wait(20) == 0
    finally:
        terminal.close()


def test_interrupting_it_leaves_the_terminal_as_it_was(cli: Cli) -> None:
    terminal = Terminal(cli, "top", "--every", "60")
    try:
        terminal.wait_for("Queueber")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(20) == 130
        assert terminal.settings() == terminal.before
    finally:
        terminal.close()


def test_a_small_screen_is_not_overrun(cli: Cli, client: queueber.Client) -> None:
    for number in range(30):
        client.create_queue(f"crowd-{number:02}")
    terminal = Terminal(cli, "top", "--every", "60", rows=12)
    try:
        terminal.wait_for(r"and \d+ queues more")
        assert terminal.text.count("crowd-") < 12
        terminal.press(b"q")
        assert terminal.process.wait(20) == 0
    finally:
        terminal.close()
        for number in range(30):
            client.delete_queue(f"crowd-{number:02}")


def test_printed_once_it_has_every_queue_and_topic(
    cli: Cli, filled: queueber.Queue, client: queueber.Client
) -> None:
    client.topic("shown-on-top").publish([b"x"] * 3)
    filled.pause()

    shown = cli("top", "--once", "--every", "0.3")

    assert (shown.code, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"Queueber {queueber.__version__}  {cli.address}  up ")
    assert re.search(rf"^{filled.name} paused +1,200 +34 +0 +0", shown.stdout, re.MULTILINE)
    assert re.search(r"^shown-on-top +3 ", shown.stdout, re.MULTILINE)


def test_as_json_there_is_an_object_for_each(
    cli: Cli, filled: queueber.Queue, client: queueber.Client
) -> None:
    client.topic("told-on-top").publish([b"x"] * 3)

    shown = cli("top", "--json", "--every", "0.3", "--topics", "1000")

    rows = {(row["kind"], row["name"]): row for row in map(json.loads, shown.stdout.splitlines())}
    found = rows["queue", filled.name]
    assert found == {
        "kind": "queue",
        "name": filled.name,
        "ready": 1200,
        "leased": 34,
        "delayed": 0,
        "dead": 0,
        "inPerS": 0.0,
        "donePerS": 0.0,
        "failedPerS": 0.0,
        "oldestMs": found["oldestMs"],
        "waitingPolls": 0,
        "paused": False,
    }
    assert rows["topic", "told-on-top"]["messages"] == 3


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["--every", "0"], "too short"), (["--sort", "age"], "is not one of 'name', 'ready'")],
)
def test_wrong_flags_are_refused(cli: Cli, arguments: list[str], told: str) -> None:
    shown = cli("top", *arguments)

    assert shown.code == 2
    assert told in shown.stderr
