"""`queueber spark enqueue`: add the rows of files as items."""

import secrets
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import click
from click.exceptions import Exit

from queueber.cli.commands.receipt import Waiting, receipt_rows, wait_flags
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags import count_flag, delay_seconds, gathered, pairs_flag
from queueber.cli.spark.session import (
    check_installed,
    connection_options,
    run_job,
    spark_flags,
)
from queueber.cli.target import Target, new_queue_flags
from queueber.errors import InvalidArgument
from queueber.limits import PRIORITY_MAX
from queueber.spark.jobs.settings import FORMATS, Input, SparkSettings


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="Format of the files.  [default: by the suffix of their names]",
)
@pairs_flag("--input-option", "options", help="An option of Spark's reader, such as sep=; for CSV.")
@click.option(
    "--contents-column",
    metavar="NAME",
    help="Contents of an item.  [default: 'contents', or the whole row as JSON]",
)
@click.option(
    "--key-column", metavar="NAME", help="Key: of rows with the same key only one is added."
)
@click.option("--priority-column", metavar="NAME", help=f"Priority, 0 to {PRIORITY_MAX}.")
@click.option("--delay-column", metavar="NAME", help="Seconds that an item stays hidden.")
@click.option("--visible-at-column", metavar="NAME", help="Or until when, a timestamp.")
@click.option(
    "--attributes-column", metavar="NAME", help="Attributes: a map, or an object of strings."
)
@count_flag(
    "--priority",
    least=0,
    most=PRIORITY_MAX,
    help=f"Priority of all items, 0 to {PRIORITY_MAX}; higher ones are polled first.",
)
@click.option(
    "--delay", "delay_seconds", type=delay_seconds, help="How long all items stay hidden."
)
@click.option("--batch", metavar="NAME", help="Name of the batch.  [default: a new name]")
@click.option("--write-id", metavar="NAME", help="Makes the command safe to repeat; see above.")
@click.option(
    "--method",
    type=click.Choice(["bulk", "rpc"]),
    default="bulk",
    show_default=True,
    help="bulk: upload files for the store; rpc: add rows with normal calls.",
)
@wait_flags
@spark_flags
@gathered("given", Input)
@new_queue_flags
def enqueue(
    target: Target,
    spark: SparkSettings,
    given: Input,
    waiting: Waiting,
    batch: str | None,
    write_id: str | None,
    method: str,
) -> None:
    """Add all rows of files to a queue, or none of them.

    \b
    Examples:
      queueber spark enqueue docs.parquet -q ocr --batch run-42
      queueber spark enqueue 'logs/*.json.gz' -q lines --contents-column message
      queueber spark enqueue orders.csv -q pay --key-column order --priority-column rank
      queueber spark enqueue urls.txt -q fetch --wait --timeout 3600

    The files are Parquet, JSON lines, CSV with a header, or text with one item a line. Paths may be
    folders, patterns, and everything else that Spark reads. The contents of an item are the column
    'contents', or the line of a text file; otherwise the whole row as a JSON object. Other columns
    are used only if a flag names them.

    The items become ready together, when all rows have been written; a job that fails or is killed
    adds nothing. A row that cannot be read fails the job. With --write-id you can repeat the
    command: what was added under that name is not added again. A queue that does not exist is
    created, unless you give --must-exist.

    Prints the number of rows and the receipt of the batch. With --wait the command waits until
    every item of the batch is done or dead, and ends with 1 if that takes longer than --timeout.
    With --json: an object with "rows" and "receipt".
    """
    _check_once("priority", given.priority, given.priority_column)
    _check_once("delay", given.delay_seconds, given.delay_column, given.visible_at_column)
    given = replace(given, format=given.format_name)  # An unknown suffix is an error here.
    check_installed()
    from queueber.spark.jobs.jobs import enqueue as enqueue_rows

    batch = batch or write_id or _new_batch()

    def job(session: Any) -> int:
        destination = {**connection_options(target), "queue": target.queue, "batch": batch}
        return enqueue_rows(session, given, method=method, write_id=write_id, **destination)

    # Before Spark, which takes seconds to start: a missing server or queue is known at once.
    with target.open_queue() as queue:
        if target.must_exist:
            queue.stats()
        rows = run_job(spark, f"enqueue {target.queue}", "adding rows, in tasks", job)
        found = waiting.receipt(queue, batch)
    table = [("rows", f"{rows:,}"), *receipt_rows(found)]
    target.echo_table(("batch", found.batch), table, {"rows": rows, "receipt": found})
    if waiting.wait and not found.complete:
        raise Exit(NEGATIVE)


def _check_once(name: str, value: object, *of_columns: str | None) -> None:
    """Refuse a value for all rows together with a column for it."""
    if sum(each is not None for each in (value, *of_columns)) > 1:
        raise InvalidArgument(
            f"--{name} is given twice; give one value for all rows, or one column"
        )


def _new_batch() -> str:
    """A unique name with the time in it."""
    return f"{datetime.now(UTC):enqueue-%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
