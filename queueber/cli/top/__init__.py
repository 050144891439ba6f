"""`queueber top`: queues and topics in a terminal, once a second."""

import sys
from dataclasses import asdict
from threading import Event

import click

from queueber.cli.flags import count_flag, seconds_up_to
from queueber.cli.output import echo_json, to_camel_case
from queueber.cli.target import Target, server_flags
from queueber.cli.top.keys import Keys
from queueber.cli.top.looking import SORTS, Looker, Picture
from queueber.limits import HOUR_MS


@click.command()
@click.option("--once", is_flag=True, help="Print it once and end. Without a terminal: always.")
@click.option(
    "--sort", type=click.Choice(SORTS), default="name", show_default=True, help="Order of queues."
)
@click.option(
    "--every", type=seconds_up_to(HOUR_MS, is_zero_allowed=False), default=1.0, show_default=True,
    help="Seconds between two looks; rates are those between them.",
)  # fmt: skip
@count_flag("--topics", default=10, least=0, most=1000, help="Most topics to show.")
@server_flags
def top(target: Target, once: bool, sort: str, every: float, topics: int) -> None:
    """Show queues and topics on one screen, live.

    \b
    Examples:
      queueber top
      queueber top --sort dead
      queueber top --json | jq -r 'select(.dead? > 0).name'

    Press q to end, s to sort by the next column. A row has how many items are ready, leased,
    delayed and dead, how many a second are added, done and failed, and how long the oldest ready
    one has waited. With --json: one object for each queue and topic, once.
    """
    with target.connect() as client:
        looker = Looker(client, target.address, topics, SORTS.index(sort))
        if once or target.use_json or not sys.stdout.isatty():
            _show_once(target, looker, every)
        else:
            _follow(looker, every)


def _show_once(target: Target, looker: Looker, every: float) -> None:
    # A rate needs two looks.
    looker.look()
    Event().wait(every)
    picture = looker.look()
    if target.use_json:
        for kind, lines in (("queue", picture.queues), ("topic", picture.topics)):
            for line in lines:
                shown = {to_camel_case(name): value for name, value in asdict(line).items()}
                echo_json({"kind": kind, **shown})
        return
    _print_whole(picture)


def _print_whole(picture: Picture) -> None:
    from rich.console import Console

    from queueber.cli.top.screen import whole

    width = None if sys.stdout.isatty() else 160
    Console(width=width, markup=False, emoji=False, highlight=False).print(whole(picture))


def _follow(looker: Looker, every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    from queueber.cli.top.screen import screen

    console = Console(markup=False, emoji=False, highlight=False)
    picture = looker.look()
    with (
        Keys() as keys,
        Live(
            screen(picture, console.size), console=console, screen=True, auto_refresh=False
        ) as live,
    ):
        while (key := keys.wait(every)) != "q":
            if key == "s":
                picture = looker.sort_by_next(picture)
            elif not key:
                picture = looker.look()
            live.update(screen(picture, console.size), refresh=True)
