"""`queueber spark drain`: results become Parquet files."""

import click
from click.exceptions import Exit

from queueber.cli.exits import NEGATIVE
from queueber.cli.finding import existing_queue
from queueber.cli.options import Target, client_options, queue_option
from queueber.cli.output import echo_json, echo_table, to_json
from queueber.cli.receipts import (
    check_wait,
    echo_receipt,
    for_option,
    wait_option,
    wait_receipt,
)
from queueber.cli.spark_running import SparkOptions, check_installed, shown, spark_options
from queueber.errors import InvalidArgument


@click.command()
@click.argument("target_path", metavar="PATH")
@click.option("--batch", metavar="NAME", help="Only what belongs to it.")
@click.option("--status", type=click.Choice(["done", "dead"]), help="Only these.  [default: both]")
@click.option("--overwrite", is_flag=True, help="Replace what is at PATH.")
@wait_option
@for_option
@spark_options
@queue_option
@client_options
def drain(
    target: Target,
    queue: str,
    spark: SparkOptions,
    target_path: str,
    batch: str | None,
    status: str | None,
    overwrite: bool,
    wait: bool,
    for_seconds: float | None,
) -> None:
    """Write the results of a queue into a folder of Parquet files.

    \b
    Examples:
      queueber spark drain results -q ocr --batch run-42 --wait
      queueber spark drain s3a://lake/failed -q ocr --status dead --overwrite

    The columns are id, key, batch, status (done or dead), result, error, attempts, added_at,
    finished_at, partition and row (where the item came from, if Spark added it) and attributes.
    Results stay in the queue, as its settings say. With --wait it first waits until every item of
    the batch is done or dead; if --for is too short for that it writes nothing and ends with 1.

    Prints how many rows were written. With --json: {"done": 3, "dead": 0, "receipt": {...}}, where
    the receipt is null without --batch.
    """
    check_wait(for_seconds, wait=wait)
    if wait and batch is None:
        raise InvalidArgument("--wait is for a batch; give --batch, too")
    check_installed()
    from queueber.spark.jobs.jobs import QueueRef, export

    source = QueueRef(target.address, queue, batch)
    with target.connect() as client:
        asked = existing_queue(client, queue)
        found = None if batch is None else asked.receipt(batch)
        if wait and batch is not None:
            found = wait_receipt(asked, batch, for_seconds)
            if not found.complete:
                echo_json({"receipt": to_json(found)}) if target.use_json else echo_receipt(found)
                raise Exit(NEGATIVE)
        with spark.session(f"drain {queue}") as session:
            drained = shown(
                session,
                "writing results, in tasks",
                lambda: export(session, source, target_path, status=status, overwrite=overwrite),
            )
    if target.use_json:
        echo_json({"done": drained.done, "dead": drained.dead, "receipt": to_json(found)})
        return
    echo_table(
        ("written to", target_path),
        [("done", f"{drained.done:,}"), ("dead", f"{drained.dead:,}")],
    )
