"""`queueber pause` and `resume`: stop handing out items of a queue, and start again."""

import click

from queueber.cli.flags.target import Target, client_flags, queue_flag
from queueber.cli.flags.types import seconds_up_to
from queueber.cli.output.json_lines import echo_json
from queueber.cli.output.text import to_duration
from queueber.limits import DELAY_MS_MAX, SECOND_MS


@click.command()
@click.option(
    "--for",
    "for_seconds",
    type=seconds_up_to(DELAY_MS_MAX, is_zero_allowed=False),
    metavar="SECONDS",
    help="Length of the pause. [default: until 'resume']",
)
@queue_flag
@client_flags
def pause(target: Target, queue: str, for_seconds: float | None) -> None:
    """Pause a queue: polls get no items.

    \b
    Example:
      queueber pause -q images --for 600

    Items can still be added, and items that are leased can be completed, failed and so on. With
    --json: {"paused": true}.
    """
    with target.connect() as client:
        client.queue(queue, must_exist=True).pause(for_seconds)
    if target.use_json:
        echo_json({"paused": True})
        return
    end = "until 'resume'" if for_seconds is None else f"for {to_duration(for_seconds * SECOND_MS)}"
    click.echo(f"{queue}  paused {end}")


@click.command()
@queue_flag
@client_flags
def resume(target: Target, queue: str) -> None:
    """Resume a paused queue: polls get items again.

    \b
    Example:
      queueber resume -q images

    Does nothing if the queue is not paused. With --json: {"paused": false}.
    """
    with target.connect() as client:
        client.queue(queue, must_exist=True).resume()
    if target.use_json:
        echo_json({"paused": False})
    else:
        click.echo(f"{queue}  resumed")
