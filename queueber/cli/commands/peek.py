"""`queueber peek`: show items without leasing them."""

import sys
from collections.abc import Iterator

import click
from click.exceptions import Exit

from queueber import Queue
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags import count_flag, state_flag
from queueber.cli.output import (
    CONTENTS_SHOWN_MAX,
    awaited,
    counted,
    options_of,
    text_to_line,
    to_time,
)
from queueber.cli.target import Target, queue_flags, raw_flag
from queueber.limits import PEEK_ITEMS_MAX, PRIORITY_DEFAULT
from queueber.model import ItemInfo, ItemState


@click.command()
@state_flag(default="ready", show_default=True)
@count_flag("--limit", default=100, help="Most items to show.")
@click.option("--where", default="", help="Only items for which a condition holds, as in SQL.")
@raw_flag
@queue_flags
def peek(target: Target, state: ItemState, limit: int, where: str) -> None:
    """Show items without leasing them.

    \b
    Examples:
      queueber peek -q images
      queueber peek --state dead --limit 1000 --json | jq -r .lastError
      queueber peek --state delayed --json | jq -r .id | xargs queueber cancel
      queueber peek --state dead --where "item.error LIKE '%timeout%' AND attributes.shop = 'eu'"

    Each line shows an id and its contents; the line below shows details. Ready items are in the
    order in which they will be polled, delayed ones in the order of their times, others by age.
    Items that change their state while you look may be missing. Ends with 1 if there are none.

    --where asks for item.key, batch, attempt, deliveries, priority, error, reason, added_at_ms,
    at_ms, bytes and others, for attributes.NAME, and for fields of contents that are JSON.

    Contents that are not printable text are shown as json:"..." or base64:...; --raw prints them
    unchanged. On a terminal only the first 2,000 bytes of contents are shown, and how many more
    there are. An error of several lines, such as a traceback, is shown below its item.

    With --json each item is an object with the fields of 'poll' and "addedAtMs", "priority",
    "attempts" (failures so far), "deliveries" (how often it was leased), "atMs" (ready, dead: since
    when; delayed: until when; leased: end of the lease), "lease", "reason" (why it is dead),
    "lastError", "attemptTimesMs", "after" and "afterBatch" (what it waits for), and what it has of
    its own: "attemptsMax" (null: as the queue says), "backoffMs", "timeoutMs" and "expiresAtMs".
    """
    found = 0
    bytes_max = CONTENTS_SHOWN_MAX if sys.stdout.isatty() else None
    with target.open_queue() as queue:
        for page in _pages(queue, state, limit, where):
            found += len(page)
            target.echo_items(
                page, lambda item: _details(item, state), _error_lines, bytes_max=bytes_max
            )
    if not found:
        if target.is_for_people:
            click.echo(f"Nothing is {state.value} in queue {target.queue!r}.", err=True)
        raise Exit(NEGATIVE)


def _pages(queue: Queue, state: ItemState, limit: int, where: str) -> Iterator[list[ItemInfo]]:
    after = b""
    while limit > 0:
        page = queue.peek(state, limit=min(limit, PEEK_ITEMS_MAX), after=after, where=where)
        yield page.items
        limit, after = limit - len(page.items), page.next
        if not after:
            return


def _details(item: ItemInfo, state: ItemState) -> Iterator[str]:
    at = to_time(item.at_ms)
    after = awaited(item)
    yield {
        ItemState.READY: f"since {at}",
        ItemState.DELAYED: f"after {after}" if after else f"until {at}",
        ItemState.LEASED: f"lease {item.lease_id.hex()} until {at}",
        ItemState.DEAD: f"since {at}",
    }[state]
    yield item.reason
    if item.attempts:
        yield counted(item.attempts, "failure")
    if item.deliveries > item.attempts + bool(item.lease_id):
        yield counted(item.deliveries, "lease")
    if item.last_error and not _has_lines(item.last_error):
        yield f"error {text_to_line(item.last_error)}"
    if item.priority != PRIORITY_DEFAULT:
        yield f"priority {item.priority}"
    yield options_of(item)


def _error_lines(item: ItemInfo) -> Iterator[str]:
    """The last error, if it has several lines: a traceback is read line by line."""
    if _has_lines(item.last_error):
        yield "    error:"
        for line in item.last_error.rstrip().expandtabs().split("\n"):
            yield f"        {text_to_line(line)}"


def _has_lines(error: str) -> bool:
    return "\n" in error.rstrip()
