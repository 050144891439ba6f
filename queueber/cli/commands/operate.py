"""What operators do to a queue: `pause`, `resume`, `cancel`, `purge` and `redrive`."""

import click
from click.exceptions import Exit

from queueber.cli import flags
from queueber.cli.exits import NEGATIVE
from queueber.cli.output import counted, to_duration
from queueber.cli.progress import with_progress
from queueber.cli.target import Target, queue_flags
from queueber.errors import InvalidArgument
from queueber.limits import DELAY_MS_MAX, SECOND_MS
from queueber.model import ItemState


@click.command()
@click.option(
    "--for",
    "for_seconds",
    type=flags.seconds_up_to(DELAY_MS_MAX, is_zero_allowed=False),
    help="Length of the pause. [default: until 'resume']",
)
@queue_flags
def pause(target: Target, for_seconds: float | None) -> None:
    """Pause a queue: polls get no items.

    \b
    Example:
      queueber pause -q images --for 600

    Items can still be added, and items that are leased can be completed, failed and so on. With
    --json: {"paused": true}.
    """
    with target.open_queue() as queue:
        queue.pause(for_seconds)
    end = "until 'resume'" if for_seconds is None else f"for {to_duration(for_seconds * SECOND_MS)}"
    target.echo({"paused": True}, f"{target.queue}  paused {end}")


@click.command()
@queue_flags
def resume(target: Target) -> None:
    """Resume a paused queue: polls get items again.

    \b
    Example:
      queueber resume -q images

    Does nothing if the queue is not paused. With --json: {"paused": false}.
    """
    with target.open_queue() as queue:
        queue.resume()
    target.echo({"paused": False}, f"{target.queue}  resumed")


@click.command()
@flags.some_ids_argument
@click.option("--key", help="In place of ids: the item that was added with this key.")
@click.option("--batch", help="In place of ids: all items of this batch.")
@flags.yes_flag
@queue_flags
def cancel(
    target: Target, ids: tuple[bytes, ...], key: str | None, batch: str | None, yes: bool
) -> None:
    """Delete items by id, key or batch, in any state, even leased.

    \b
    Examples:
      queueber cancel 0199f1c29b007d0aa1c07a8f0f1d2e3b
      queueber cancel -q orders --key order-17
      queueber cancel -q orders --batch night --yes

    The holder of a leased item learns of it when it reports the outcome. Prints the outcome for
    each id. Ends with 1 if one was not found. With --json: {"cancelled": ["..."],
    "notCancelled": []}.

    --key is for the item that was added last with the key. --batch looks through the whole queue,
    asks for confirmation, and needs --yes in a script; items that are added meanwhile may stay.
    With --json both print {"cancelled": 12}. They end with 1 if nothing was cancelled.
    """
    if sum([bool(ids), key is not None, batch is not None]) != 1:
        raise InvalidArgument("give ids, --key or --batch, and one of them only")
    if key is not None:
        with target.open_queue() as queue:
            done = queue.cancel_key(key)
        nothing = f"the queue has no item with the key {key!r}"
        _echo_cancelled(target, int(done), nothing)
        return
    if batch is not None:
        _cancel_batch(target, batch, yes)
        return
    with target.open_queue() as queue:
        cancelled = queue.cancel(ids)
    outcomes = ["cancelled" if each else "not cancelled" for each in cancelled]
    reason = "there is no such item in the queue"
    target.echo_outcomes(ids, outcomes, reason, ("cancelled", "not cancelled"))


def _cancel_batch(target: Target, batch: str, yes: bool) -> None:
    with target.connect() as client:
        queue = client.queue(target.queue, must_exist=True)
        receipt = queue.receipt(batch)
        items = counted(receipt.live, "live item")
        question = f"Delete the dead letters and {items} of batch {batch!r}?"
        if not yes and not flags.confirm(question):
            target.echo({"cancelled": 0}, "nothing was cancelled")
            raise Exit(NEGATIVE)
        cancelled = with_progress(
            client,
            queue,
            "Cancelling",
            receipt.live,
            lambda: queue.cancel_batch(batch),
            "cancelled_total",
        )
    _echo_cancelled(target, cancelled, f"batch {batch!r} has no items in the queue")


def _echo_cancelled(target: Target, count: int, nothing: str) -> None:
    target.echo_count("cancelled", count, "" if count else nothing)
    if not count:
        raise Exit(NEGATIVE)


_ALL = (ItemState.DELAYED, ItemState.READY, ItemState.LEASED, ItemState.DEAD)
"""In the order in which items go through them, so that those that move on are met later."""


def _states(value: object) -> tuple[ItemState, ...]:
    return _ALL if value == "all" else (flags.to_state(value, "all"),)


@click.command()
@click.option(
    "--state", "states", type=_states, required=True, metavar="STATE",
    shell_complete=flags.completing_states("all"), help="ready, delayed, leased, dead or all.",
)  # fmt: skip
@flags.yes_flag
@queue_flags
def purge(target: Target, states: tuple[ItemState, ...], yes: bool) -> None:
    """Delete all items that are in a state, or in all of them.

    \b
    Examples:
      queueber purge --state dead -q images --yes
      queueber purge --state all -q images

    Asks for confirmation; in a script, without a terminal, it needs --yes. Deletes at most as many
    items as there are when it starts, so that it ends even if others keep adding. 'all' goes
    through delayed, ready, leased and dead items; what workers fail or release meanwhile may stay,
    so pause the queue first. Results and settings stay. Ends with 1 if you say no. With --json:
    {"purged": 12}.
    """
    with target.connect() as client:
        queue = client.queue(target.queue, must_exist=True)
        stats = queue.stats()
        # Each state is the name of its count.
        total: int = sum(getattr(stats, state.value) for state in states)
        word = "" if len(states) > 1 else f"{states[0].value} "
        items = counted(total, f"{word}item")
        if not yes and not flags.confirm(f"Delete {items} of queue {target.queue!r}?"):
            target.echo({"purged": 0}, "nothing was purged")
            raise Exit(NEGATIVE)
        purged = with_progress(
            client,
            queue,
            "Purging",
            total,
            lambda: sum(queue.purge(state) for state in states),
            "cancelled_total",
        )
    nothing = f"nothing is {word.strip()}" if word else "the queue is empty"
    target.echo_count("purged", purged, "" if purged else nothing)


@click.command()
@flags.some_ids_argument
@click.option("--all", "every", is_flag=True, help="All dead letters of the queue.")
@queue_flags
def redrive(target: Target, ids: tuple[bytes, ...], every: bool) -> None:
    """Make dead letters ready again, with no failed attempts.

    \b
    Examples:
      queueber redrive --all -q images
      queueber redrive 0199f1c29b007d0aa1c07a8f0f1d2e3b

    Ends with 1 if an id is not that of a dead letter. With --json: {"redriven": 12}.
    """
    if bool(ids) == every:
        raise InvalidArgument("give the ids of dead letters, or --all")
    with target.connect() as client:
        queue = client.queue(target.queue, must_exist=True)
        total = len(ids) or queue.stats().dead
        redriven = with_progress(
            client, queue, "Redriving", total, lambda: queue.redrive(ids or None), "redriven_total"
        )
    missing = len(set(ids)) - redriven if ids else 0
    if missing > 0:
        others = "1 is no dead letter" if missing == 1 else f"{missing:,} are no dead letters"
        target.echo_count("redriven", redriven, f"{others} of the queue")
        raise Exit(NEGATIVE)
    target.echo_count("redriven", redriven, "" if redriven else "there are no dead letters")
