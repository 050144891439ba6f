"""`queueber show`: one item, in whatever state, and what happened to it."""

from collections.abc import Iterator

import click
from click.exceptions import Exit

from queueber import FoundItem
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags import item_id
from queueber.cli.output import (
    awaited,
    counted,
    item_to_json,
    options_of,
    text_to_line,
    to_line,
    to_time,
)
from queueber.cli.target import Target, queue_flags
from queueber.errors import InvalidArgument
from queueber.ids import made_at_ms
from queueber.limits import PRIORITY_DEFAULT
from queueber.model import Attempt, ItemInfo, ItemState

_INDENT = 12


@click.command()
@click.argument("id", type=item_id, required=False)
@click.option("--key", help="In place of an id: the key that the item was added with.")
@queue_flags
def show(target: Target, id: bytes | None, key: str | None) -> None:
    """Show an item, in whatever state, and what happened to it.

    \b
    Examples:
      queueber show -q images 0199f1c29b007d0aa1c07a8f0f1d2e3b
      queueber show -q orders --key order-17
      queueber show -q orders --key order-17 --json | jq -r '.attempts[].error'

    Shows its state, who holds it, what it has of its own in place of what its queue says (attempts,
    backoff, time limit, expiry), and each attempt that failed: when, how it ended (failed, its
    lease expired, disconnected) and its error. The errors of the last 20 attempts are kept, the
    last in full. Of an item that is done its result is shown, while results are kept.

    A key finds the item that was added last with it: for the queue's dedup window, and then as long
    as the item is in the queue. Ends with 1 if there is no such item.

    With --json: an object with "id", "state" (ready, delayed, leased, dead or done), "addedAtMs",
    "item" (as 'peek' prints it), "attempts" (each with "atMs", "end" and "error"), "lease" (as
    'leases' prints it) and "result" (as 'results' prints it); null for what there is not.
    """
    if (id is None) == (key is None):
        raise InvalidArgument("give the id of an item or --key, and not both")
    with target.open_queue() as queue:
        found = queue.find(id, key=key)
    if found is None:
        if target.is_for_people:
            click.echo(_nothing(target.queue, id, key), err=True)
        raise Exit(NEGATIVE)
    target.echo(_to_json(found), "\n".join(_lines(found)))


def _nothing(queue: str, item_id: bytes | None, key: str | None) -> str:
    if item_id is None:
        return (
            f"Queue {queue!r} has no item with the key {key!r}; it remembers those that are gone "
            "for its dedup window."
        )
    return (
        f"Item {item_id.hex()} is not in queue {queue!r}, and has no result there: it was removed, "
        "cancelled or purged, its result was deleted, or there never was one."
    )


def _lines(found: FoundItem) -> Iterator[str]:
    yield _line("id", found.id.hex())
    if found.item is not None:
        yield _line("state", " ".join(_state(found, found.item)))
    elif found.result is not None:
        result = found.result
        tried = f"at attempt {result.attempt}, result {result.offset}"
        yield _line("state", f"done since {to_time(result.completed_at_ms)}, {tried}")
    yield _line("added", to_time(made_at_ms(found.id)))
    if found.lease is not None:
        yield _line("lease", found.lease.lease_id.hex())
        yield _line("holder", text_to_line(found.lease.holder) or "not known")
    for name, text in (("key", found.key), ("batch", found.batch)):
        if text:
            yield _line(name, text_to_line(text))
    for name, value in found.attributes.items():
        yield _line("attribute", text_to_line(f"{name}={value}"))
    if found.item is not None:
        yield from _numbers(found.item)
        yield _line("contents", to_line(found.item.contents))
    elif found.result is not None:
        yield _line("result", to_line(found.result.result))
    for number, attempt in enumerate(found.attempts, _first_number(found)):
        yield from _attempt_lines(number, attempt)


def _state(found: FoundItem, item: ItemInfo) -> Iterator[str]:
    word = "until" if found.state in (ItemState.DELAYED, ItemState.LEASED) else "since"
    after = awaited(item)
    when = f"until after {after}" if after else f"{word} {to_time(item.at_ms)}"
    yield f"{found.state.value if found.state else ''} {when}"
    if item.reason:
        yield f"({item.reason})"


def _numbers(item: ItemInfo) -> Iterator[str]:
    if item.priority != PRIORITY_DEFAULT:
        yield _line("priority", str(item.priority))
    if options := options_of(item):
        yield _line("options", options)
    if item.deliveries:
        failures = counted(item.attempts, "failure")
        yield _line("deliveries", f"{item.deliveries:,}, {failures}")


def _first_number(found: FoundItem) -> int:
    """Of the first attempt that is listed: the times of very many are not all kept."""
    return 1 if found.item is None else found.item.attempts - len(found.attempts) + 1


def _attempt_lines(number: int, attempt: Attempt) -> Iterator[str]:
    end = f" {attempt.end.value}" if attempt.end is not None else ""
    first, *others = attempt.error.rstrip().expandtabs().split("\n")
    yield _line(
        f"attempt {number}", f"{to_time(attempt.at_ms)}{end}  {text_to_line(first)}".rstrip()
    )
    for line in others:
        yield " " * (_INDENT + 2) + text_to_line(line)


def _line(name: str, text: str) -> str:
    return f"{name:<{_INDENT}}{text}"


def _to_json(found: FoundItem) -> dict[str, object]:
    lease = found.lease
    return {
        "id": found.id.hex(),
        "state": "done" if found.state is None else found.state.value,
        "addedAtMs": made_at_ms(found.id),
        "item": found.item and item_to_json(found.item),
        "attempts": [
            {"atMs": each.at_ms, "end": each.end and each.end.value, "error": each.error}
            for each in found.attempts
        ],
        "lease": lease
        and {
            "lease": lease.lease_id.hex(),
            "holder": lease.holder or None,
            "items": lease.items,
            "polledAtMs": lease.polled_at_ms,
            "expiresAtMs": lease.expires_at_ms,
        },
        "result": found.result and item_to_json(found.result),
    }
