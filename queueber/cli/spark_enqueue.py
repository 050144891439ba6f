"""`queueber spark enqueue`: the rows of files become items."""

import secrets
from datetime import UTC, datetime

import click
from click.exceptions import Exit

from queueber.cli.add import attribute
from queueber.cli.exits import NEGATIVE
from queueber.cli.options import Target, client_options, queue_option, seconds_up_to
from queueber.cli.output import echo_json, to_json
from queueber.cli.receipts import (
    check_wait,
    echo_receipt,
    for_option,
    wait_option,
    wait_receipt,
)
from queueber.cli.spark_running import SparkOptions, check_installed, shown, spark_options
from queueber.errors import InvalidArgument
from queueber.limits import DELAY_MS_MAX, PRIORITY_MAX
from queueber.spark.jobs.formats import format_of


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["parquet", "json", "csv", "text"]),
    help="Of the files.  [default: as their names end]",
)
@click.option(
    "--input-option",
    "input_options",
    type=attribute,
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of Spark's reader, such as sep=; for CSV. May be repeated.",
)
@click.option(
    "--contents-column", metavar="NAME", help="What an item holds.  [default: 'contents', or all]"
)
@click.option("--key-column", metavar="NAME", help="Of rows with the same key only one is added.")
@click.option("--priority-column", metavar="NAME", help=f"0 to {PRIORITY_MAX}.")
@click.option("--delay-column", metavar="NAME", help="Seconds for which an item stays hidden.")
@click.option("--visible-at-column", metavar="NAME", help="Or until when, as a timestamp.")
@click.option("--attributes-column", metavar="NAME", help="A map, or an object of texts.")
@click.option(
    "--priority",
    type=click.IntRange(0, PRIORITY_MAX),
    metavar="NUMBER",
    help=f"Of all items: 0 to {PRIORITY_MAX}; higher ones are polled first.",
)
@click.option("--delay", type=seconds_up_to(DELAY_MS_MAX), help="How long all items stay hidden.")
@click.option("--batch", metavar="NAME", help="What they belong to.  [default: a new name]")
@click.option("--write-id", metavar="NAME", help="Repeat the command safely under this name.")
@click.option(
    "--mode",
    type=click.Choice(["bulk", "rpc"]),
    default="bulk",
    show_default=True,
    help="How rows get there: as files for the store, or in plain calls.",
)
@wait_option
@for_option
@spark_options
@queue_option
@client_options
def enqueue(
    target: Target,
    queue: str,
    spark: SparkOptions,
    paths: tuple[str, ...],
    format_name: str | None,
    input_options: tuple[tuple[str, str], ...],
    priority: int | None,
    delay: float | None,
    batch: str | None,
    write_id: str | None,
    mode: str,
    wait: bool,
    for_seconds: float | None,
    **columns: str | None,
) -> None:
    """Add every row of files to a queue: all of them, or none.

    \b
    Examples:
      queueber spark enqueue docs.parquet -q ocr --batch run-42
      queueber spark enqueue 'logs/*.json.gz' -q lines --contents-column message
      queueber spark enqueue orders.csv -q pay --key-column order --priority-column rank
      queueber spark enqueue urls.txt -q fetch --wait --for 3600

    The files are Parquet, JSON lines, CSV with a line of names, or text, one item a line; paths may
    be folders, patterns, and whatever else Spark reads. An item holds the column 'contents' if
    there is one, or the line of a text; else the whole row as a JSON object. Other columns are used
    only if an option names them.

    Rows become visible together, when all have been written; a job that fails or is killed adds
    nothing. A line that cannot be read fails the job. With --write-id the same command adds nothing
    when it was done before.

    Prints how many rows there were, and the receipt of the batch. With --wait it ends when every
    item of the batch is done or dead: with 0, or with 1 if --for was too short. With --json: an
    object with "rows" and "receipt".
    """
    check_wait(for_seconds, wait=wait)
    _check_once("priority", priority, columns["priority_column"])
    _check_once("delay", delay, columns["delay_column"], columns["visible_at_column"])
    format_name = format_name or format_of(paths)
    check_installed()
    from queueber.spark.jobs.input import Input, InputColumns
    from queueber.spark.jobs.jobs import QueueRef
    from queueber.spark.jobs.jobs import enqueue as enqueue_rows

    batch = batch or write_id or _new_batch()
    given = Input(
        paths,
        format_name,
        dict(input_options),
        InputColumns(**{name.removesuffix("_column"): each for name, each in columns.items()}),
        priority,
        delay,
    )
    destination = QueueRef(target.address, queue, batch)
    # First, for it is quick: a server that is not there is known before Spark starts.
    with target.connect() as client:
        with spark.session(f"enqueue {queue}") as session:
            rows = shown(
                session,
                "adding rows, in tasks",
                lambda: enqueue_rows(session, given, destination, method=mode, write_id=write_id),
            )
        asked = client.queue(queue)
        found = wait_receipt(asked, batch, for_seconds) if wait else asked.receipt(batch)
    if target.use_json:
        echo_json({"rows": rows, "receipt": to_json(found)})
    else:
        echo_receipt(found, ("rows", f"{rows:,}"))
    if wait and not found.complete:
        raise Exit(NEGATIVE)


def _check_once(name: str, value: object, *of_columns: str | None) -> None:
    """The same thing is not told twice."""
    if sum(each is not None for each in (value, *of_columns)) > 1:
        raise InvalidArgument(f"--{name} is given twice: for all rows, or by one column")


def _new_batch() -> str:
    """A name that tells when, and that nobody else has."""
    return f"{datetime.now(UTC):enqueue-%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
