"""What `queueber spark` does without Spark: status, help, wrong usage, a Spark that is missing."""

import json
import subprocess
import sys

import pytest

import queueber
from tests.cli.conftest import Cli, rows_of

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "pyarrow", "py4j"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def test_status_shows_the_batch_and_the_queue(cli: Cli, queue: queueber.Queue) -> None:
    queue.add([b"a", b"b"], batch="night")
    queue.poll().remove()
    command = ["spark", "status", "-q", queue.name, "--batch", "night"]

    live = cli(*command)
    queue.poll().remove()
    complete = cli(*command, "--json")

    assert (live.code, live.stderr) == (1, "")
    receipt, _, numbers = live.stdout.partition("\n\n")
    assert rows_of(receipt)["live"] == "1"
    assert rows_of(numbers)["ready"] == "1"
    told = json.loads(complete.stdout)
    assert complete.code == 0
    assert (told["receipt"]["done"], told["queue"]["ready"]) == (2, 0)


def test_status_without_a_batch_is_that_of_the_queue(cli: Cli, queue: queueber.Queue) -> None:
    queue.add(b"a")

    shown = cli("spark", "status", "-q", queue.name)

    assert (shown.code, rows_of(shown.stdout)["ready"]) == (0, "1")
    assert json.loads(cli("spark", "status", "-q", queue.name, "--json").stdout)["receipt"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["enqueue", "a.txt", "--timeout", "1"], "--timeout is how long to wait; give --wait, too"),
        (["enqueue", "a.txt", "--delay", "1", "--delay-column", "a"], "--delay is given twice"),
        (["enqueue", "a.txt", "--conf", "a"], "'a' is not NAME=VALUE."),
        (["enqueue", "a.txt", "--method", "fast"], "'fast' is not one of"),
        (["enqueue"], "Missing argument 'PATH...'"),
        (["enqueue", "a.xlsx"], "--format: 'a.xlsx' does not end in a known suffix"),
        (["enqueue", "a.csv", "b.json"], "--format: the input is csv and json"),
        (["export", "out", "--wait"], "--wait is for a batch; give --batch, too"),
        (["export", "out", "--status", "live"], "'live' is not one of"),
    ],
)
def test_wrong_usage_is_told_before_spark_starts(
    cli: Cli, arguments: list[str], words: str
) -> None:
    told = cli("spark", *arguments)

    assert told.code == 2
    assert words in told.stderr


def test_server_that_is_not_there_is_known_before_spark_starts() -> None:
    told = Cli("127.0.0.1:1")("spark", "enqueue", "a.txt", "--connect-timeout", "0.1")

    assert told.code == 3


def test_must_exist_is_checked_before_spark_starts(cli: Cli, client: queueber.Client) -> None:
    told = cli("spark", "enqueue", "a.txt", "-q", "nowhere", "--must-exist")

    assert (told.code, "there is no queue 'nowhere'" in told.stderr) == (4, True)
    assert "nowhere" not in [each.name for each in client.queues()]


def test_export_refuses_a_queue_that_is_not_there(cli: Cli) -> None:
    told = cli("spark", "export", "out", "-q", "nowhere")

    assert (told.code, "there is no queue 'nowhere'" in told.stderr) == (4, True)


@pytest.mark.parametrize("command", [["enqueue", "a.txt"], ["export", "out"]])
def test_without_spark_the_command_says_what_to_install(cli: Cli, command: list[str]) -> None:
    code = f"{WITHOUT}\nfrom queueber.cli import main\nsys.argv = {['queueber', 'spark', *command]}"

    ended = subprocess.run(
        [sys.executable, "-c", f"{code}\nmain()"], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 2
    assert ended.stderr == (
        "Error: pyspark and pyarrow are not installed; run: pip install 'queueber[spark]'\n"
    )


def test_module_is_the_same_commands() -> None:
    command = [sys.executable, "-m", "queueber.spark", "--help"]

    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert told.startswith("Usage: python -m queueber.spark [OPTIONS] COMMAND")
    assert all(f"\n  {name} " in told for name in ("enqueue", "export", "status"))
