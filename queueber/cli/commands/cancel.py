"""`queueber cancel` and `purge`: delete items by id, or all items in a state."""

import click
from click.exceptions import Exit

from queueber.cli.exits import NEGATIVE
from queueber.cli.flags.confirm import confirm, yes_flag
from queueber.cli.flags.target import Target, client_flags, ids_argument, queue_flag, state_flag
from queueber.cli.output.json_lines import echo_json
from queueber.cli.output.outcome import echo_count, echo_outcomes
from queueber.cli.output.progress import with_progress
from queueber.cli.output.text import counted
from queueber.model import ItemState, Stats


@click.command()
@ids_argument
@queue_flag
@client_flags
def cancel(target: Target, queue: str, ids: tuple[bytes, ...]) -> None:
    """Delete items by their ids, in any state, even leased ones.

    \b
    Example:
      queueber cancel 0199f1c29b007d0aa1c07a8f0f1d2e3b

    Prints the outcome for each id. Ends with 1 if one was not found. With --json: {"cancelled":
    ["..."], "notCancelled": []}.
    """
    with target.connect() as client:
        cancelled = client.queue(queue, must_exist=True).cancel(ids)
    outcomes = ["cancelled" if each else "not cancelled" for each in cancelled]
    reason = "there is no such item in the queue"
    echo_outcomes(target, ids, outcomes, reason, ("cancelled", "not cancelled"))


@click.command()
@state_flag(required=True)
@yes_flag
@queue_flag
@client_flags
def purge(target: Target, queue: str, state: ItemState, yes: bool) -> None:
    """Delete all items that are in a state.

    \b
    Example:
      queueber purge --state dead -q images --yes

    Asks for confirmation; in a script, without a terminal, it needs --yes. Deletes at most as many
    items as there are when it starts, so that it ends even if others keep adding. Ends with 1 if
    you say no. With --json: {"purged": 12}.
    """
    with target.connect() as client:
        purging = client.queue(queue, must_exist=True)
        total = _count(purging.stats(), state)
        if not yes and not confirm(
            f"Delete {counted(total, f'{state.value} item')} of queue {queue!r}?"
        ):
            echo_json({"purged": 0}) if target.use_json else click.echo("nothing was purged")
            raise Exit(NEGATIVE)
        purged = with_progress(
            client,
            queue,
            "Purging",
            total,
            lambda: purging.purge(state),
            lambda stats: stats.cancelled_total,
        )
    echo_count(target, "purged", purged, "" if purged else f"nothing is {state.value}")


def _count(stats: Stats, state: ItemState) -> int:
    return {
        ItemState.READY: stats.ready,
        ItemState.DELAYED: stats.delayed,
        ItemState.LEASED: stats.leased,
        ItemState.DEAD: stats.dead,
    }[state]
