"""`queueber spark status`: how far a job has come. It needs no Spark."""

import click
from click.exceptions import Exit

from queueber.cli.exits import NEGATIVE
from queueber.cli.finding import find_stats
from queueber.cli.options import Target, client_options, queue_option
from queueber.cli.output import echo_json, echo_table, to_json
from queueber.cli.receipts import echo_receipt
from queueber.cli.stats import oldest, paused


@click.command()
@click.option("--batch", metavar="NAME", help="What 'enqueue' named, or printed.")
@queue_option
@client_options
def status(target: Target, queue: str, batch: str | None) -> None:
    """Show how far the items of a queue, and of a batch, are.

    \b
    Example:
      queueber spark status -q ocr --batch run-42

    With --batch it ends with 0 when the batch is complete, and with 1 when it is not. With --json:
    {"queue": {...}, "receipt": {...}}, as 'stats' and 'receipt' print them; the receipt is null
    without --batch. It asks the server, and starts no Spark.
    """
    with target.connect() as client:
        numbers = find_stats(client, queue)
        found = None if batch is None else client.queue(queue).receipt(batch)
    if target.use_json:
        echo_json({"queue": to_json(numbers), "receipt": to_json(found)})
    else:
        if found is not None:
            echo_receipt(found)
            click.echo()
        counts = ("ready", "delayed", "leased", "dead", "results")
        rows = [(name.replace("_", " "), f"{getattr(numbers, name):,}") for name in counts]
        rows += [("oldest, seconds", oldest(numbers)), ("paused", paused(numbers.paused_until_ms))]
        echo_table((f"queue {queue}", ""), rows)
    if found is not None and not found.complete:
        raise Exit(NEGATIVE)
