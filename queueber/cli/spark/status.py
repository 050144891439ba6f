"""`queueber spark status`: progress of the items of a job. It needs no Spark."""

import click
from click.exceptions import Exit

from queueber.cli.commands.receipt import echo_receipt
from queueber.cli.commands.stats import oldest, paused
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags.target import Target, client_flags, queue_flag
from queueber.cli.output.json_lines import echo_json, to_json
from queueber.cli.output.text import echo_table


@click.command()
@click.option("--batch", metavar="NAME", help="The batch that 'enqueue' got or printed.")
@queue_flag
@client_flags
def status(target: Target, queue: str, batch: str | None) -> None:
    """Show the progress of a queue, and of a batch.

    \b
    Example:
      queueber spark status -q ocr --batch run-42

    It asks the server, and does not start Spark. With --batch it ends with 0 if the batch is
    complete, else with 1. With --json: {"queue": {...}, "receipt": {...}}, as 'stats' and 'receipt'
    print them; the receipt is null without --batch.
    """
    with target.connect() as client:
        asked = client.queue(queue, must_exist=True)
        numbers = asked.stats()
        found = None if batch is None else asked.receipt(batch)
    if target.use_json:
        echo_json({"queue": to_json(numbers), "receipt": to_json(found)})
    else:
        if found is not None:
            echo_receipt(found)
            click.echo()
        counts = ("ready", "delayed", "leased", "dead", "results")
        rows = [(name, f"{getattr(numbers, name):,}") for name in counts]
        rows += [("oldest, seconds", oldest(numbers)), ("paused", paused(numbers.paused_until_ms))]
        echo_table((f"queue {queue}", ""), rows)
    if found is not None and not found.complete:
        raise Exit(NEGATIVE)
