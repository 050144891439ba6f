"""`queueber spark export`: results become Parquet files. They stay in the queue."""

from typing import Any

import click
from click.exceptions import Exit

from queueber.cli.commands.receipt import Waiting, receipt_rows, wait_flags
from queueber.cli.exits import NEGATIVE
from queueber.cli.spark.session import (
    check_installed,
    connection_options,
    run_job,
    spark_flags,
)
from queueber.cli.target import Target, queue_flags
from queueber.errors import InvalidArgument
from queueber.spark.jobs.settings import SparkSettings


@click.command()
@click.argument("target_path", metavar="PATH")
@click.option("--batch", metavar="NAME", help="Only results of this batch.")
@click.option(
    "--status",
    type=click.Choice(["done", "dead"]),
    help="Only results with this status.  [default: both]",
)
@click.option("--overwrite", is_flag=True, help="Replace PATH if it exists.")
@wait_flags
@spark_flags
@queue_flags
def export(
    target: Target,
    spark: SparkSettings,
    target_path: str,
    batch: str | None,
    status: str | None,
    overwrite: bool,
    waiting: Waiting,
) -> None:
    """Write results into a folder of Parquet files.

    \b
    Examples:
      queueber spark export results -q ocr --batch run-42 --wait
      queueber spark export s3a://lake/failed -q ocr --status dead --overwrite

    The columns are id, key, batch, status (done or dead), result, error, attempts, added_at,
    finished_at, partition and row (of the input, if Spark added the item) and attributes. Results
    stay in the queue, as long as its settings say. With --wait the command first waits until every
    item of the batch is done or dead; if that takes longer than --timeout, it writes nothing and
    ends with 1.

    Prints how many rows were written. With --json: {"done": 3, "dead": 0, "receipt": {...}}, where
    the receipt is null without --batch.
    """
    if waiting.wait and batch is None:
        raise InvalidArgument("--wait is for a batch; give --batch, too")
    check_installed()
    from queueber.spark.jobs.jobs import export as export_results

    def job(session: Any) -> dict[str, int]:
        source = {**connection_options(target), "queue": target.queue, "batch": batch}
        return export_results(session, target_path, overwrite=overwrite, status=status, **source)

    with target.open_queue() as queue:
        queue.stats()  # Spark takes seconds to start; a missing queue is known at once.
        found = None if batch is None else queue.receipt(batch)
        if waiting.wait and batch is not None:
            found = waiting.receipt(queue, batch)
            if not found.complete:
                target.echo_table(("batch", found.batch), receipt_rows(found), {"receipt": found})
                raise Exit(NEGATIVE)
        name = f"export {target.queue}"
        exported = run_job(spark, name, "writing results, in tasks", job)
    rows = [(word, f"{count:,}") for word, count in exported.items()]
    target.echo_table(("written to", target_path), rows, {**exported, "receipt": found})
