"""`queueber spark export`: results become Parquet files. They stay in the queue."""

import click
from click.exceptions import Exit

from queueber.cli.commands.receipt import check_wait, echo_receipt, wait_flags, wait_receipt
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags.target import Target, client_flags, queue_flag
from queueber.cli.output.json_lines import echo_json, to_json
from queueber.cli.output.text import echo_table
from queueber.cli.spark.session import SparkFlags, check_installed, spark_flags, with_task_bar
from queueber.errors import InvalidArgument


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
@queue_flag
@client_flags
def export(
    target: Target,
    queue: str,
    spark: SparkFlags,
    target_path: str,
    batch: str | None,
    status: str | None,
    overwrite: bool,
    wait: bool,
    timeout: float | None,
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
    check_wait(timeout, wait=wait)
    if wait and batch is None:
        raise InvalidArgument("--wait is for a batch; give --batch, too")
    check_installed()
    from queueber.spark.jobs.jobs import QueueRef
    from queueber.spark.jobs.jobs import export as export_results

    source = QueueRef(target.address, queue, batch)
    with target.connect() as client:
        asked = client.queue(queue, must_exist=True)
        asked.stats()  # Spark takes seconds to start; a missing queue is known at once.
        found = None if batch is None else asked.receipt(batch)
        if wait and batch is not None:
            found = wait_receipt(asked, batch, timeout)
            if not found.complete:
                echo_json({"receipt": to_json(found)}) if target.use_json else echo_receipt(found)
                raise Exit(NEGATIVE)
        with spark.session(f"export {queue}") as session:
            exported = with_task_bar(
                session,
                "writing results, in tasks",
                lambda: export_results(
                    session, source, target_path, status=status, overwrite=overwrite
                ),
            )
    if target.use_json:
        echo_json({"done": exported.done, "dead": exported.dead, "receipt": to_json(found)})
        return
    echo_table(
        ("written to", target_path),
        [("done", f"{exported.done:,}"), ("dead", f"{exported.dead:,}")],
    )
