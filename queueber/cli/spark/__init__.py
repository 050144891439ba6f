"""`queueber spark`: Spark jobs that add files to a queue, and export results to files.

`python -m queueber.spark` has the same commands. Each imports Spark only when it needs it.
"""

import click
from click.exceptions import Exit

from queueber.cli.commands.receipt import receipt_rows
from queueber.cli.commands.stats import oldest, paused
from queueber.cli.exits import NEGATIVE
from queueber.cli.output import echo_table, number_rows
from queueber.cli.spark.enqueue import enqueue
from queueber.cli.spark.export import export
from queueber.cli.target import Target, queue_flags


@click.group()
def spark() -> None:
    """Spark jobs: add files to a queue, export results.

    \b
    Examples:
      queueber spark enqueue docs.parquet -q ocr --batch run-42
      queueber spark status -q ocr --batch run-42
      queueber spark export results -q ocr --batch run-42 --wait

    They need 'pip install queueber[spark]' and Java. For spark-submit, name the file
    queueber/spark/__main__.py; executors need Queueber, too.
    """


@click.command()
@click.option("--batch", metavar="NAME", help="The batch that 'enqueue' got or printed.")
@queue_flags
def status(target: Target, batch: str | None) -> None:
    """Show the progress of a queue, and of a batch.

    \b
    Example:
      queueber spark status -q ocr --batch run-42

    It asks the server, and does not start Spark. With --batch it ends with 0 if the batch is
    complete, else with 1. With --json: {"queue": {...}, "receipt": {...}}, as 'stats' and 'receipt'
    print them; the receipt is null without --batch.
    """
    with target.open_queue() as queue:
        numbers = queue.stats()
        found = None if batch is None else queue.receipt(batch)
    if found is not None and not target.use_json:
        echo_table(("batch", found.batch), receipt_rows(found))
        click.echo()
    rows = number_rows(numbers, "ready", "delayed", "leased", "dead", "results")
    rows += [("oldest, seconds", oldest(numbers)), ("paused", paused(numbers.paused_until_ms))]
    both = {"queue": numbers, "receipt": found}
    target.echo_table((f"queue {target.queue}", ""), rows, both)
    if found is not None and not found.complete:
        raise Exit(NEGATIVE)


for _command in (enqueue, export, status):
    spark.add_command(_command)
