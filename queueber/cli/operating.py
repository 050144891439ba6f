"""`queueber cancel`, `purge`, `redrive`, `pause` and `resume`: interventions by hand."""

import click
from click.exceptions import Exit

from queueber.cli.asking import is_sure, yes_option
from queueber.cli.exits import NEGATIVE
from queueber.cli.finding import existing_queue, find_stats
from queueber.cli.options import (
    Target,
    client_options,
    hex_id,
    ids_argument,
    queue_option,
    seconds_up_to,
    state_option,
)
from queueber.cli.output import counted, echo_json, to_duration
from queueber.cli.telling import tell_done
from queueber.cli.watching import watched
from queueber.errors import InvalidArgument
from queueber.limits import DELAY_MS_MAX, SECOND_MS
from queueber.model import ItemState, Stats


@click.command()
@ids_argument
@queue_option
@client_options
def cancel(target: Target, queue: str, ids: tuple[bytes, ...]) -> None:
    """Delete items in whatever state. A lease that holds one loses it.

    \b
    Example:
      queueber cancel 0199f1c29b007d0aa1c07a8f0f1d2e3b

    Prints what became of each. Ends with 1 when one was not there. With --json: {"cancelled":
    ["..."], "notCancelled": []}.
    """
    with target.connect() as client:
        cancelled = existing_queue(client, queue).cancel(ids)
    tell_done(target, ids, cancelled, "cancelled", "there is no such item in the queue any more")


@click.command()
@state_option(required=True)
@yes_option
@queue_option
@client_options
def purge(target: Target, queue: str, state: ItemState, yes: bool) -> None:
    """Delete all items that are in a state.

    \b
    Example:
      queueber purge --state dead -q images --yes

    Asks first; without a terminal to ask on it needs --yes. As many items go as there are when it
    begins. Ends with 1 when you say no. With --json: {"purged": 12}.
    """
    with target.connect() as client:
        there = _count(find_stats(client, queue), state)
        if not yes and not is_sure(
            f"Delete {counted(there, f'{state.value} item')} of queue {queue!r}?"
        ):
            if target.use_json:
                echo_json({"purged": 0})
            else:
                click.echo("nothing was purged")
            raise Exit(NEGATIVE)
        purging = client.queue(queue)
        purged = watched(
            client,
            queue,
            "Purging",
            there,
            lambda: purging.purge(state),
            lambda s: s.cancelled_total,
        )
    _tell_count(target, "purged", purged, "" if purged else f"nothing is {state.value}")


@click.command()
@click.argument("ids", type=hex_id, nargs=-1, metavar="[ID...]")
@click.option("--all", "every", is_flag=True, help="All that there are.")
@queue_option
@client_options
def redrive(target: Target, queue: str, ids: tuple[bytes, ...], every: bool) -> None:
    """Make dead letters ready again, as if they had never failed.

    \b
    Examples:
      queueber redrive --all -q images
      queueber redrive 0199f1c29b007d0aa1c07a8f0f1d2e3b

    Ends with 1 when one that was named is not a dead letter. With --json: {"redriven": 12}.
    """
    if bool(ids) == every:
        raise InvalidArgument("give the ids of dead letters, or --all")
    with target.connect() as client:
        there = find_stats(client, queue).dead
        redriving = client.queue(queue)
        redriven = watched(
            client,
            queue,
            "Redriving",
            len(ids) or there,
            lambda: redriving.redrive(ids or None),
            lambda s: s.redriven_total,
        )
    missing = len(set(ids)) - redriven
    if ids:
        others = "1 is no dead letter" if missing == 1 else f"{missing:,} are no dead letters"
        _tell_count(target, "redriven", redriven, f"{others} of the queue" if missing > 0 else "")
    else:
        _tell_count(target, "redriven", redriven, "" if redriven else "there are no dead letters")
    if missing > 0:
        raise Exit(NEGATIVE)


@click.command()
@click.option(
    "--for",
    "for_seconds",
    type=seconds_up_to(DELAY_MS_MAX, is_zero_allowed=False),
    metavar="SECONDS",
    help="So long. [default: until 'resume']",
)
@queue_option
@client_options
def pause(target: Target, queue: str, for_seconds: float | None) -> None:
    """Serve no poll of a queue for a while. Adds and leases go on.

    \b
    Example:
      queueber pause -q images --for 600

    With --json: {"paused": true}.
    """
    with target.connect() as client:
        existing_queue(client, queue).pause(for_seconds)
    if target.use_json:
        echo_json({"paused": True})
    else:
        until = "until 'resume'" if for_seconds is None else _for(for_seconds)
        click.echo(f"{queue}  paused {until}")


def _for(for_seconds: float) -> str:
    return f"for {to_duration(for_seconds * SECOND_MS)}"


@click.command()
@queue_option
@client_options
def resume(target: Target, queue: str) -> None:
    """Serve the polls of a queue again.

    \b
    Example:
      queueber resume -q images

    A queue that is not paused stays as it is. With --json: {"paused": false}.
    """
    with target.connect() as client:
        existing_queue(client, queue).resume()
    if target.use_json:
        echo_json({"paused": False})
    else:
        click.echo(f"{queue}  resumed")


def _count(stats: Stats, state: ItemState) -> int:
    return {
        ItemState.READY: stats.ready,
        ItemState.DELAYED: stats.delayed,
        ItemState.LEASED: stats.leased,
        ItemState.DEAD: stats.dead,
    }[state]


def _tell_count(target: Target, word: str, count: int, reason: str) -> None:
    """The reason is why there were no more, if there is one to tell."""
    if target.use_json:
        echo_json({word: count})
    else:
        click.echo(f"{counted(count, 'item')} {word}{reason and f': {reason}'}")
