"""The whole story: Spark fans work out, a pool of workers does it, Spark brings the results back.

A server runs in a temporary directory. A Spark job loads documents as one batch, all of them or
none. Two worker processes compress each, count its words and hand in what they found. On the way
one of them and then the server itself are killed with SIGKILL: the items of the dead worker come
back at once, and the server goes on where it was. A few documents are broken and fail every time:
they end as dead letters. Then Spark reads the results, joins them to the documents, and checks each
against what it computes itself; the receipt of the batch accounts for every one.

A gateway shows all of it in a browser meanwhile. With `--keep` it stays up when the story is over,
and a little work goes on, until Ctrl-C.

Run it with `make demo`, or `python -m examples.demo --help`.
"""

import argparse
import json
import multiprocessing
import sys
import time
import zlib
from collections.abc import Iterator
from itertools import count as count_up
from multiprocessing.process import BaseProcess
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import queueber
from examples.dashboard import dashboard
from queueber.logs import configure_logs
from queueber.testing import ServerProcess, running_server

QUEUE = "documents"
BATCH = "demo"
BROKEN_EVERY = 10_000
LOOK_SECONDS = 0.1

TOPICS = ["rivers", "bridges", "engines", "orchards"]
TEXT = (
    "the river runs under a bridge and out to sea while an engine turns wheels of iron over stone "
    "where apples grow in rows that nobody counts until the harvest comes with carts and long days"
)
WORDS_EACH = 30

console = Console(highlight=False)


# --- what a worker does ---------------------------------------------------------------------------


def examine(item: queueber.WorkItem) -> bytes:
    """What a worker does with each document; what it raises fails the item."""
    text = item.contents.decode()
    if text.startswith("broken"):
        raise ValueError("this document cannot be read")
    found = {
        "words": len(text.split()),
        "packed": len(zlib.compress(item.contents, 9)),
        "crc32": zlib.crc32(item.contents),
    }
    return json.dumps(found).encode()


def work(address: str) -> None:
    # What fails is told at the end; warnings of each would run through the bar.
    configure_logs("error", "auto", sys.stderr)
    # A short lease: answers that the crash of the server swallows come back when theirs runs out.
    queueber.Worker(
        address, queue=QUEUE, handler=examine, concurrency=4, prefetch=400, lease=5, progress=False
    ).run()


def start_worker(address: str) -> BaseProcess:
    process = multiprocessing.get_context("spawn").Process(
        target=work, args=(address,), daemon=True
    )
    process.start()
    return process


# --- what Spark does ------------------------------------------------------------------------------


def documents(spark: Any, count: int) -> Any:
    """The same documents each time that they are asked for: id, topic, and thirty words."""
    from pyspark.sql import functions as sql

    words = sql.split(sql.lit(TEXT), " ")
    text = sql.array_join(
        sql.transform(
            sql.sequence(sql.lit(1), sql.lit(WORDS_EACH)),
            lambda at: sql.element_at(words, 1 + sql.pmod(sql.hash("id", at), sql.size(words))),
        ),
        " ",
    )
    is_broken = sql.col("id") % BROKEN_EVERY == 1
    topics = sql.array(*map(sql.lit, TOPICS))
    return spark.range(count).select(
        sql.concat(sql.lit("doc-"), "id").alias("document"),
        sql.element_at(topics, (1 + sql.col("id") % len(TOPICS)).cast("int")).alias("topic"),
        sql.when(is_broken, sql.concat(sql.lit("broken "), text)).otherwise(text).alias("text"),
    )


def load(spark: Any, address: str, count: int) -> None:
    """Add all documents as one batch. The key says which of them an item is."""
    from pyspark.sql import functions as sql

    rows = documents(spark, count).select(
        sql.col("text").alias("contents"), sql.col("document").alias("key")
    )
    options = {"address": address, "queue": QUEUE, "batch": BATCH}
    rows.write.format("queueber").options(**options).mode("append").save()


def drain(spark: Any, address: str, count: int) -> list[Any]:
    """Results joined to the documents, by topic. `right` are those that Spark computes, too."""
    from pyspark.sql import functions as sql

    options = {"address": address, "queue": QUEUE, "batch": BATCH}
    results = spark.read.format("queueber").options(**options).load()
    found = results.select(
        sql.col("key").alias("document"),
        "status",
        sql.from_json(
            sql.col("result").cast("string"), "words int, packed int, crc32 bigint"
        ).alias("found"),
    )
    is_right = (
        sql.when(sql.col("text").startswith("broken"), sql.col("status") == "dead")
        .when(sql.col("status") == "done", sql.col("found.crc32") == sql.crc32("text"))
        .otherwise(sql.lit(False))
    )
    rows: list[Any] = (
        documents(spark, count)
        .join(found, "document", "left")
        .groupBy("topic")
        .agg(
            sql.countDistinct("document").alias("documents"),
            sql.count_if(sql.col("status") == "done").alias("done"),
            sql.count_if(sql.col("status") == "dead").alias("dead"),
            sql.count_if(is_right).alias("right"),
            sql.sum("found.words").alias("words"),
            (100 * sql.sum("found.packed") / sql.sum(sql.octet_length("text"))).alias("packed"),
        )
        .orderBy("topic")
        .collect()
    )
    return rows


# --- the story ------------------------------------------------------------------------------------


def watch(
    server: ServerProcess, queue: queueber.Queue, workers: list[BaseProcess], progress: Progress
) -> queueber.Receipt:
    """Wait for the batch; on the way, kill a worker and the server."""
    accidents = faults(server, workers)
    bar = progress.add_task("done or dead", total=None)
    while True:
        receipt = queue.wait_for_batch(BATCH, timeout=LOOK_SECONDS)
        progress.update(bar, completed=receipt.done + receipt.dead, total=receipt.added)
        if receipt.complete:
            return receipt
        if receipt.done * 3 > receipt.added:
            next(accidents, None)


def faults(server: ServerProcess, workers: list[BaseProcess]) -> Iterator[None]:
    workers[0].kill()
    console.print("[red]killed a worker[/red] while it held items; starting another")
    workers[0] = start_worker(server.address)
    yield
    server.kill()
    console.print("[red]killed the server[/red] (SIGKILL); starting it again on its data")
    server.start()
    yield


def do_work(server: ServerProcess, queue: queueber.Queue, count: int) -> queueber.Receipt:
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    workers = [start_worker(server.address) for _ in range(count)]
    try:
        with Progress(*columns, console=console) as progress:
            return watch(server, queue, workers, progress)
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def show(rows: list[Any], receipt: queueber.Receipt) -> None:
    table = Table(title="What Spark read, joined to the documents")
    headings = ("topic", "documents", "done", "dead", "right", "words", "packed to")
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="right" if at else "left")
    for topic, *numbers, packed in rows:
        table.add_row(topic, *(f"{number:,}" for number in numbers), f"{packed:.0f}%")
    console.print(table)
    table = Table(title=f"Receipt of the batch {receipt.batch!r}")
    for column in ("added", "done", "dead", "live", "complete"):
        table.add_column(column, justify="right")
    numbers = (receipt.added, receipt.done, receipt.dead, receipt.live)
    table.add_row(*(f"{number:,}" for number in numbers), "yes" if receipt.complete else "no")
    console.print(table)


def is_right(rows: list[Any], receipt: queueber.Receipt, count: int) -> bool:
    """Every document has one outcome, the right one, and the receipt says the same."""
    done, dead = sum(row["done"] for row in rows), sum(row["dead"] for row in rows)
    return (
        receipt.complete
        and (receipt.added, receipt.done, receipt.dead) == (count, done, dead)
        and dead == len(range(1, count, BROKEN_EVERY))
        and sum(row["documents"] for row in rows) == count
        and sum(row["right"] for row in rows) == count
    )


def go_on(server: ServerProcess, queue: queueber.Queue) -> None:
    """A few documents a second, and a worker for them, so that there is something to see."""
    workers: list[BaseProcess] = []
    try:
        workers.append(start_worker(server.address))
        for number in count_up():
            queue.add([f"{TEXT} {number}".encode()] * (1 + number % 20))
            time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        console.print("the server stops")
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


class Laps:
    """Says what was done, and how long it took since the last time."""

    def __init__(self) -> None:
        self.started = self._last = time.monotonic()

    def tell(self, words: str) -> None:
        now = time.monotonic()
        console.print(f"{words} [dim]({now - self._last:.1f} s)[/dim]")
        self._last = now


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--documents", type=int, default=200_000, help="how many (default: %(default)s)"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument(
        "--keep", action="store_true", help="go on when it is over, until Ctrl-C; see the dashboard"
    )
    arguments = parser.parse_args()
    count = arguments.documents
    from queueber.spark.jobs.session import spark_session
    from queueber.spark.jobs.settings import SparkSettings

    laps = Laps()
    with (
        running_server() as server,
        dashboard(server.address) as page,
        queueber.connect(server.address, retry_timeout=60) as client,
        # As many parts as fit this little: Spark would take 200 for the join.
        spark_session("demo", SparkSettings(conf={"spark.sql.shuffle.partitions": "4"})) as spark,
    ):
        laps.tell(f"a server listens on {server.address}, and Spark has started")
        console.print(f"[bold]see it live at {page}[/bold]")
        client.create_queue(QUEUE, attempts_max=3, backoff=[0.1, 0.5])
        load(spark, server.address, count)
        laps.tell(f"Spark has loaded {count:,} documents")
        receipt = do_work(server, client.queue(QUEUE), arguments.workers)
        laps.tell(f"{arguments.workers} worker processes have done them")
        rows = drain(spark, server.address, count)
        laps.tell("Spark has read the results, and joined them to the documents")
        show(rows, receipt)
        was_right = is_right(rows, receipt, count)
        verdict = "every one is accounted for" if was_right else "some are lost"
        color = "green" if was_right else "red"
        seconds = time.monotonic() - laps.started
        console.print(f"{count:,} documents in {seconds:.1f} s: [{color}]{verdict}[/{color}]")
        if arguments.keep:
            console.print(f"[bold]the dashboard stays at {page}; Ctrl-C ends it[/bold]")
            go_on(server, client.queue(QUEUE))
    return 0 if was_right else 1


if __name__ == "__main__":
    raise SystemExit(main())
