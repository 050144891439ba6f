"""The commands: files in, work done, Parquet out; slips of the finger; and under spark-submit."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import queueber
from queueber.spark import __main__ as main_file
from queueber.testing import ServerProcess
from tests.cli.conftest import Cli, rows_of, run_on_terminal
from tests.support.spark_driver import spark_environment


@pytest.fixture
def job(spark: SparkSession, server: ServerProcess) -> Cli:
    """Commands in this process, on the Spark that runs already."""
    return Cli(server.address)


def complete_all(queue: queueber.Queue) -> None:
    while lease := queue.poll(1000):
        lease.complete({item.id: item.contents.upper() for item in lease})


def write_csv(folder: Path, lines: str) -> str:
    path = folder / "orders.csv"
    path.write_text(lines)
    return str(path)


def test_enqueue_prints_rows_and_the_receipt(
    job: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    path = tmp_path / "words.txt"
    path.write_text("".join(f"word {number}\n" for number in range(2500)))

    shown = job("spark", "enqueue", str(path), "-q", queue.name, "--batch", "night")

    assert (shown.code, shown.stderr) == (0, "")
    assert rows_of(shown.stdout) == {
        "rows": "2,500", "added": "2,500", "done": "0", "dead": "0", "live": "2,500",
        "complete": "no",
    }  # fmt: skip
    assert queue.receipt("night").added == queue.stats().ready == 2500


@pytest.mark.parametrize("mode", ["bulk", "rpc"])
def test_enqueue_takes_columns_by_name(
    job: Cli, queue: queueber.Queue, tmp_path: Path, mode: str
) -> None:
    path = write_csv(tmp_path, "order,rank,note\no1,2,first\no2,9,second\n")

    shown = job(
        "spark", "enqueue", path, "-q", queue.name, "--method", mode, "--contents-column", "note",
        "--key-column", "order", "--priority-column", "rank", "--json",
    )  # fmt: skip

    assert (shown.code, shown.stderr) == (0, "")
    told = json.loads(shown.stdout)
    assert (told["rows"], told["receipt"]["added"]) == (2, 2)
    items = queue.poll(10)
    assert [(item.contents, item.key) for item in items] == [(b"second", "o2"), (b"first", "o1")]
    assert {item.batch for item in items} == {told["receipt"]["batch"]}


def test_enqueue_under_a_write_id_adds_once(
    job: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    path = write_csv(tmp_path, "contents\na\nb\n")
    command = ["spark", "enqueue", path, "-q", queue.name, "--write-id", "load-1", "--json"]

    first, second = job(*command), job(*command)

    assert (first.code, second.code) == (0, 0), second.stderr
    assert json.loads(first.stdout)["receipt"] == json.loads(second.stdout)["receipt"]
    assert queue.stats().ready == 2


def test_drain_writes_what_is_done_and_dead(
    job: Cli,
    spark: SparkSession,
    client: queueber.Client,
    queue: queueber.Queue,
    tmp_path: Path,
) -> None:
    client.configure_queue(queue.name, attempts_max=1)
    queue.add([b"a", b"b"], batch="night")
    (broken,) = queue.add(b"c", batch="night")
    queue.add(b"d", batch="other")
    lease = queue.poll(4)
    lease.fail("cannot be read", ids=[broken])
    lease.complete({item.id: item.contents.upper() for item in lease if item.id != broken})
    target = str(tmp_path / "results")

    command = ["spark", "export", target, "-q", queue.name, "--batch", "night"]

    shown = job(*command, "--wait", "--json")
    rows = spark.read.parquet(target).orderBy("result").collect()
    dead = job(*command, "--status", "dead", "--overwrite", "--json")

    assert (shown.code, shown.stderr) == (0, "")
    told = json.loads(shown.stdout)
    assert (told["done"], told["dead"], told["receipt"]["complete"]) == (2, 1, True)
    assert [(row["status"], row["result"], row["error"]) for row in rows] == [
        ("dead", None, "cannot be read"), ("done", b"A", None), ("done", b"B", None),
    ]  # fmt: skip
    told = json.loads(dead.stdout)
    assert (dead.code, told["done"], told["dead"]) == (0, 0, 1)


def test_drain_replaces_only_what_it_is_told_to(
    job: Cli, spark: SparkSession, queue: queueber.Queue, tmp_path: Path
) -> None:
    target = str(tmp_path / "results")
    queue.add([b"a"], batch="night")
    complete_all(queue)
    command = ["spark", "export", target, "-q", queue.name, "--status", "done"]
    assert job(*command).code == 0
    queue.add([b"b"], batch="night")
    complete_all(queue)

    refused = job(*command)
    before = spark.read.parquet(target).count()
    replaced = job(*command, "--overwrite")

    assert refused.code == 2
    assert refused.stderr == (
        f"Error: file:{target} is there already; give --overwrite, or another path\n"
    )
    assert (before, replaced.code, spark.read.parquet(target).count()) == (1, 0, 2)
    assert rows_of(replaced.stdout) == {"done": "2", "dead": "0"}


def test_drain_that_waits_in_vain_writes_nothing(
    job: Cli, queue: queueber.Queue, tmp_path: Path
) -> None:
    queue.add(b"a", batch="night")
    target = tmp_path / "results"

    shown = job(
        "spark", "export", str(target), "-q", queue.name, "--batch", "night",
        "--wait", "--timeout", "0.05",
    )  # fmt: skip

    assert (shown.code, rows_of(shown.stdout)["live"]) == (1, "1")
    assert not target.exists()


MISTAKES = [
    (["nowhere.parquet"], "there is no input at file:.*nowhere.parquet"),
    (["orders.csv", "--key-column", "id"], "--key-column: the input has no column 'id'"),
    (
        ["orders.csv", "--priority-column", "order"],
        "--priority-column: record 1 of file:.*/orders.csv has 'o1'; it must be a whole number",
    ),
    (
        ["orders.csv", "--format", "json"],
        "record 1 of file:.*/orders.csv cannot be read as json: 'order,rank'",
    ),
    (["orders.csv", "--format", "parquet"], "cannot read file:.*orders.csv in this format"),
    (["orders.xml"], "format: '.*orders.xml' does not end in a known suffix; give the format"),
    (["orders.csv", "--priority", "1", "--priority-column", "rank"], "--priority is given twice"),
]


@pytest.mark.parametrize(("arguments", "words"), MISTAKES)
def test_mistake_is_told_in_one_sentence_and_changes_nothing(
    job: Cli,
    queue: queueber.Queue,
    tmp_path: Path,
    arguments: list[str],
    words: str,
) -> None:
    write_csv(tmp_path, "order,rank\no1,2\n")
    arguments = [str(tmp_path / each) if "." in each else each for each in arguments]

    told = job("spark", "enqueue", *arguments, "-q", queue.name)

    assert told.code == 2
    assert len(told.stderr.splitlines()) == 1
    assert re.search(words, told.stderr), told.stderr
    assert (queue.stats().ready, queue.stats().batches) == (0, 0)


# --- as programs of their own ---------------------------------------------------------------------


def test_commands_show_on_a_terminal_how_far_they_are(
    server: ServerProcess, queue: queueber.Queue, tmp_path: Path
) -> None:
    """And nothing of what Spark logs; a pipe gets the answer alone."""
    path = tmp_path / "words.txt"
    path.write_text("one\ntwo\n")
    cli = Cli(server.address, spark_environment(tmp_path))

    code, stdout, shown = run_on_terminal(
        cli, "spark", "enqueue", str(path), "-q", queue.name, "--batch", "night", "--json"
    )

    assert (code, json.loads(stdout)["rows"]) == (0, 2)
    assert b"starting Spark" in shown
    assert b"adding rows, in tasks" in shown
    assert b"WARN" not in shown


def test_jobs_run_under_spark_submit(
    server: ServerProcess, queue: queueber.Queue, tmp_path: Path
) -> None:
    path = tmp_path / "words.txt"
    path.write_text("one\ntwo\n")
    submit = Path(sys.executable).with_name("spark-submit")
    environment = spark_environment(tmp_path)
    options = shlex.split(environment.pop("PYSPARK_SUBMIT_ARGS"))[:-1]
    job = [str(main_file.__file__), "enqueue", str(path), "--queue", queue.name, "--json"]

    ended = subprocess.run(
        [str(submit), *options, *job, "--address", server.address],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr[-4000:]
    assert json.loads(ended.stdout)["receipt"]["added"] == 2
    assert queue.stats().ready == 2
