"""`queueber peek`: show items without leasing them."""

from collections.abc import Iterator

import click
from click.exceptions import Exit

from queueber import Queue
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags.target import (
    Target,
    check_exclusive,
    client_flags,
    queue_flag,
    raw_flag,
    state_flag,
)
from queueber.cli.output.json_lines import echo_json, item_to_json
from queueber.cli.output.text import (
    counted,
    details_line,
    echo_lines,
    text_to_line,
    to_line,
    to_time,
)
from queueber.limits import PEEK_ITEMS_MAX, PRIORITY_DEFAULT
from queueber.model import ItemInfo, ItemState


@click.command()
@state_flag(default="ready", show_default=True)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="NUMBER",
    help="Most items to show.",
)
@raw_flag
@queue_flag
@client_flags
def peek(target: Target, queue: str, state: ItemState, limit: int, raw: bool) -> None:
    """Show items without leasing them.

    \b
    Examples:
      queueber peek -q images
      queueber peek --state dead --limit 1000 --json | jq -r .lastError
      queueber peek --state delayed --json | jq -r .id | xargs queueber cancel

    Each line shows an id and its contents; the line below shows details. Ready items are in the
    order in which they will be polled, delayed ones in the order of their times, others by age.
    Items that change their state while you look may be missing. Ends with 1 if there are none.

    Contents that are not printable text are shown as json:"..." or base64:...; --raw prints them
    unchanged. With --json each item is an object with the fields of 'poll' and "addedAtMs",
    "priority", "attempts" (failures so far), "atMs" (ready, dead: since when; delayed: until when;
    leased: end of the lease), "lease", "reason" (why it is dead), "lastError", "attemptTimesMs".
    """
    check_exclusive(raw=raw, json=target.use_json)
    found = 0
    with target.connect() as client:
        for page in _pages(client.queue(queue, must_exist=True), state, limit):
            found += len(page)
            if target.use_json:
                for item in page:
                    echo_json(item_to_json(item))
            elif raw:
                click.echo(b"".join(item.contents + b"\n" for item in page), nl=False)
            else:
                echo_lines(line for item in page for line in _lines(item, state))
    if not found:
        if not raw and not target.use_json:
            click.echo(f"Nothing is {state.value} in queue {queue!r}.", err=True)
        raise Exit(NEGATIVE)


def _pages(queue: Queue, state: ItemState, limit: int) -> Iterator[list[ItemInfo]]:
    after = b""
    while limit > 0:
        page = queue.peek(state, limit=min(limit, PEEK_ITEMS_MAX), after=after)
        yield page.items
        limit, after = limit - len(page.items), page.next
        if not after:
            return


def _lines(item: ItemInfo, state: ItemState) -> tuple[str, str]:
    at = to_time(item.at_ms)
    details = details_line(
        {
            ItemState.READY: f"since {at}",
            ItemState.DELAYED: f"until {at}",
            ItemState.LEASED: f"lease {item.lease_id.hex()} until {at}",
            ItemState.DEAD: f"since {at}",
        }[state],
        item.reason,
        counted(item.attempts, "failure") if item.attempts else "",
        f"error {text_to_line(item.last_error)}" if item.last_error else "",
        f"priority {item.priority}" if item.priority != PRIORITY_DEFAULT else "",
        key=item.key,
        batch=item.batch,
        attributes=item.attributes,
    )
    return f"{item.id.hex()}  {to_line(item.contents)}", details
