"""The prompt, with keys that are really typed."""

import os
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from select import select
from threading import Timer

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

import queueber
from queueber.cli.sql import history
from queueber.cli.sql.answers import TablePrinter
from queueber.cli.sql.completion import Names, candidates
from queueber.cli.sql.meta_commands import STATEMENTS, meaning_of
from queueber.cli.sql.prompt import Prompt, is_complete
from queueber.cli.sql.session import Session
from tests.cli.conftest import Cli, read_terminal

_numbers = count()
ENTER, TAB, CTRL_C, CTRL_D, UP = "\r", "\t", "\x03", "\x04", "\x1b[A"


@pytest.fixture
def topic(client: queueber.Client) -> str:
    name = f"prompt.t{next(_numbers)}"
    client.create_topic(name)
    return name


@pytest.fixture
def history_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "state" / "history"
    monkeypatch.setenv(history.VARIABLE, str(path))
    return path


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as typed:
        yield typed


def run_prompt(client: queueber.Client, keys: PipeInput, typed: str) -> None:
    """Type it all, and run the prompt to its end."""
    keys.send_text(typed)
    # Keys that end nothing would leave the test waiting for more.
    stop = Timer(20, keys.close)
    stop.start()
    with create_app_session(input=keys, output=DummyOutput()):
        Prompt(Session(client, TablePrinter()), "here").run()
    stop.cancel()


def test_statements_of_several_lines_are_run(
    client: queueber.Client,
    keys: PipeInput,
    topic: str,
    history_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    typed = f"SHOW TOPICS{ENTER}LIKE '{topic}';{ENTER}DROP TOPIC {topic};{ENTER}\\q{ENTER}"

    run_prompt(client, keys, typed)

    shown = capsys.readouterr()
    assert f"{topic}  NULL" in shown.out
    assert f"topic {topic} dropped" in shown.out
    kept = list(FileHistory(history_file).load_history_strings())
    assert kept[1:] == [f"DROP TOPIC {topic};", f"SHOW TOPICS\nLIKE '{topic}';"]
    assert history_file.stat().st_mode & 0o777 == 0o600


def test_a_mistake_is_told_and_the_prompt_goes_on(
    client: queueber.Client,
    keys: PipeInput,
    history_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    typed = f"DROP TOPC x;{ENTER}half of a st{CTRL_C}SHOW TABLES;{ENTER}{CTRL_D}"

    run_prompt(client, keys, typed)

    shown = capsys.readouterr()
    assert "line 1, column 6: 'TOPC' does not go here" in shown.err
    assert "system.topics" in shown.out


def test_help_and_commands_of_the_prompt(
    client: queueber.Client,
    keys: PipeInput,
    topic: str,
    history_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_prompt(client, keys, f"help{ENTER}\\d {topic}{ENTER}\\nonsense{ENTER}exit{ENTER}")

    shown = capsys.readouterr().out
    assert all(line in shown for text in STATEMENTS.values() for line in text.splitlines())
    assert "partition 0: next offset" in shown
    assert "there is no command \\nonsense" in shown
    assert meaning_of("help alter topic").shown.count("ALTER TOPIC") == 5


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("SHOW TOPICS", False),
        ("SHOW TOPICS;", True),
        ("SHOW TOPICS; ", True),
        ("SELECT ';", False),
        ("SELECT 'a' -- ;", True),
        ("NONSENSE;", True),
        ("help", True),
        ("\\d", True),
        ("DROP TOPIC $1;", True),
    ],
)
def test_enter_runs_what_a_semicolon_ends(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


class Screen:
    """What a terminal shows, without what moves the cursor or sets colours."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._unread = ""

    def read_to(self, text: str) -> str:
        """All up to a text, which must be shown soon."""
        while text not in self._unread:
            assert select([self._terminal], [], [], 20)[0], self._unread
            shown = os.read(self._terminal, 65536).decode()
            self._unread += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
        before, _, self._unread = self._unread.partition(text)
        return before


def test_a_real_terminal(cli: Cli, topic: str, tmp_path: Path) -> None:
    """The program itself: runs, offers the line before with a key, and ends."""
    terminal, terminal_end = os.openpty()
    environment = {history.VARIABLE: str(tmp_path / "history"), "TERM": "xterm"}
    process = Cli(cli.address, environment).start(
        "sql", stdin=terminal_end, stdout=terminal_end, stderr=terminal_end
    )
    try:
        os.close(terminal_end)
        screen = Screen(terminal)
        screen.read_to("queueber>")
        os.write(terminal, f"SHOW TOPICS LIKE '{topic}';\r".encode())
        assert re.search(rf"{topic} +NULL", screen.read_to("(1 row, "))

        screen.read_to("queueber>")
        os.write(terminal, UP.encode())
        screen.read_to("';")
        os.write(terminal, ENTER.encode())
        assert re.search(rf"{topic} +NULL", screen.read_to("(1 row, "))
        screen.read_to("queueber>")
        os.write(terminal, CTRL_D.encode())
        read_terminal(terminal)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


# --- completion -----------------------------------------------------------------------------------


def test_words_and_names_that_can_come_next(client: queueber.Client, topic: str) -> None:
    client.create_queue("prompt-queue")
    names = Names(client)

    def after(text: str) -> list[str]:
        return list(candidates(text, names))

    assert {"CREATE", "SHOW", "SELECT"} <= set(after(""))
    assert after("CREATE ") == ["NAMESPACE", "TOPIC"]
    assert {"IF", topic} <= set(after("DROP TOPIC "))
    assert after(f"ALTER TOPIC {topic} ADD SOURCE q ON ") == ["DELETE", "INSERT", "UPDATE"]
    assert "prompt-queue" in after(f"ALTER TOPIC {topic} ADD SOURCE ")
    assert topic not in after(f"ALTER TOPIC {topic} ADD SOURCE ")
    assert after(f"CONSUME FROM {topic} ") == ["FROM", "GROUP", "LIMIT", "PARTITION"]
    assert "retention_seconds" in after("CREATE TOPIC x WITH (")
    assert after("ALTER TOPIC x ADD SOURCE q ON INSERT WITH (") == ["payload"]
    assert {"system.topics", f"topic('{topic}')", "WHERE"} <= set(after("SELECT * FROM "))
    assert after("NONSENSE ") == []
    assert after("SELECT '") == []


def test_a_server_that_is_away_offers_no_names(server: object) -> None:
    class Away:
        def topics(self) -> list[str]:
            raise queueber.Unavailable("away")

    names = Names(Away())  # type: ignore[arg-type]

    assert list(candidates("DROP TOPIC ", names)) == ["IF"]


# --- history --------------------------------------------------------------------------------------


def test_the_history_keeps_the_last_statements_within_its_bounds(
    history_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_ENTRIES_MAX", 3)
    kept = history.open_history()
    for at in range(10):
        kept.store_string(f"SHOW TOPICS LIKE '{at}';\n-- {at}")

    history.open_history()

    left = list(FileHistory(history_file).load_history_strings())
    assert left == [f"SHOW TOPICS LIKE '{at}';\n-- {at}" for at in (9, 8, 7)]


def test_a_history_that_cannot_be_written_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(history.VARIABLE, "/proc/nowhere/history")

    history.open_history().append_string("SHOW TOPICS;")
