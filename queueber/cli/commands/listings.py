"""`queueber leases` and `queueber batches`: who holds items, and how far batches are."""

from collections.abc import Iterator
from dataclasses import asdict

import click

from queueber import Queue
from queueber.cli.flags import count_flag
from queueber.cli.output import text_to_line, to_camel_case, to_json, to_time
from queueber.cli.target import Target, queue_flags
from queueber.limits import BATCHES_LIST_MAX, LEASES_LIST_MAX
from queueber.model import BatchInfo, LeaseInfo, Receipt

_PERCENT = 100


@click.command()
@count_flag("--limit", default=100, help="Most leases to show.")
@queue_flags
def leases(target: Target, limit: int) -> None:
    """Show the leases of a queue, oldest first, and who holds them.

    \b
    Examples:
      queueber leases -q images
      queueber leases -q images --json | jq -r .holder | sort | uniq -c

    The holder is the name of the client that polled, its address, process and machine. A client
    without a name has that of its program; one of a worker says what it works on. The server
    remembers it since it started, for the last 10,000 leases. With --json each lease is an object
    with "lease", "holder" (null: not known), "items" (those that it still holds), "polledAtMs" and
    "expiresAtMs".
    """
    with target.open_queue() as queue:
        listed = list(_leases(queue, limit))
    headings = ("lease", "items", "polled", "expires", "holder")
    target.echo_table(headings, map(_lease_row, listed), *map(_lease_to_json, listed))


def _leases(queue: Queue, limit: int) -> Iterator[LeaseInfo]:
    after = b""
    while limit > 0:
        page = queue.leases(limit=min(limit, LEASES_LIST_MAX), after=after)
        yield from page.leases
        limit, after = limit - len(page.leases), page.next
        if not after:
            return


def _lease_row(lease: LeaseInfo) -> tuple[str, ...]:
    times = to_time(lease.polled_at_ms), to_time(lease.expires_at_ms)
    return lease.lease_id.hex(), f"{lease.items:,}", *times, text_to_line(lease.holder)


def _lease_to_json(lease: LeaseInfo) -> dict[str, object]:
    return {
        "lease": lease.lease_id.hex(),
        "holder": lease.holder or None,
        "items": lease.items,
        "polledAtMs": lease.polled_at_ms,
        "expiresAtMs": lease.expires_at_ms,
    }


@click.command()
@count_flag("--limit", default=100, help="Most batches to show.")
@queue_flags
def batches(target: Target, limit: int) -> None:
    """Show the batches that a queue remembers, newest first.

    \b
    Examples:
      queueber batches -q images
      queueber batches -q images --json | jq 'select(.complete | not).batch'

    For each: how many items were added, are done, dead and live. A batch is remembered for a while
    after its end: 7 days, unless 'queues configure --batch-keep' says otherwise. With --json each
    batch is an object with the fields of 'receipt' and "number".
    """
    with target.open_queue() as queue:
        listed = list(_batches(queue, limit))
    headings = ("batch", "added", "done", "dead", "live", "ended")
    rows = (_batch_row(batch.receipt) for batch in listed)
    target.echo_table(headings, rows, *map(_batch_to_json, listed))


def _batches(queue: Queue, limit: int) -> Iterator[BatchInfo]:
    before = 0
    while limit > 0:
        page = queue.batches(limit=min(limit, BATCHES_LIST_MAX), before=before)
        yield from page.batches
        limit, before = limit - len(page.batches), page.next
        if not before:
            return


def _batch_row(receipt: Receipt) -> tuple[str, ...]:
    numbers = (receipt.added, receipt.done, receipt.dead, receipt.live)
    ended = receipt.added - receipt.live
    share = f"{ended * _PERCENT // receipt.added if receipt.added else _PERCENT}%"
    return text_to_line(receipt.batch), *(f"{each:,}" for each in numbers), share


def _batch_to_json(batch: BatchInfo) -> dict[str, object]:
    receipt = {to_camel_case(name): to_json(value) for name, value in asdict(batch.receipt).items()}
    return {"number": batch.number, **receipt}
