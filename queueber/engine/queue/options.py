"""Options: what items have of their own, in place of what their queue or worker says.

An item whose mark says so has a record in `item_options`, from its add until it is gone. For all
other items nobody looks there. One that expires has an entry in `item_expiry` as well, as long as
nobody has leased it: its mark says that, too.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.item_options import StoredOptions, decode_options, encode_options
from queueber.db.records.keys import due_part
from queueber.db.records.runs import Run, mark_expires, mark_has_options
from queueber.engine.kernel.transaction import Transaction
from queueber.errors import invariant
from queueber.model import NO_OPTIONS, ItemOptions

NONE_STORED = StoredOptions()


def put_options(tx: Transaction[Any], ids: Sequence[bytes], options: Sequence[ItemOptions]) -> None:
    """Store the options of new items, one for each; of those that have none nothing."""
    prefix, now_ms = tx.prefix, tx.now_ms
    stored = {each: _stored(each, now_ms) for each in set(options) if each != NO_OPTIONS}
    encoded = {each: encode_options(of_item) for each, of_item in stored.items()}
    with_some = [(i, each) for i, each in zip(ids, options, strict=True) if each in encoded]
    tx.batch.put_many(
        Family.ITEM_OPTIONS, [(prefix + item_id, encoded[each]) for item_id, each in with_some]
    )
    if times_ms := [each.expires_at_ms for each in stored.values() if each.expires_at_ms]:
        expiring = [
            (prefix + due_part(stored[each].expires_at_ms, item_id), b"")
            for item_id, each in with_some
            if each.expires_ms
        ]
        tx.batch.put_many(Family.ITEM_EXPIRY, expiring)
        tx.counters.expiring += len(expiring)
        tx.counters.expiry_due_ms = min(tx.counters.expiry_due_ms, *times_ms)
        tx.due(min(times_ms))


def _stored(options: ItemOptions, now_ms: int) -> StoredOptions:
    return StoredOptions(
        options.attempts_max,
        options.backoff_ms,
        options.timeout_ms,
        now_ms + options.expires_ms if options.expires_ms else 0,
    )


def options_of(tx: Transaction[Any], runs: Sequence[Run]) -> dict[bytes, StoredOptions]:
    """The options of those items of the runs that have some."""
    ids = [item_id for run in runs if mark_has_options(run.mark) for item_id in run.ids]
    if not ids:
        return {}
    found: dict[bytes, StoredOptions] = {}
    stored = tx.store.get_many(Family.ITEM_OPTIONS, [tx.prefix + item_id for item_id in ids])
    for item_id, value in zip(ids, stored, strict=True):
        invariant(value is not None, "I23", queue=tx.queue.name, item=item_id.hex())
        found[item_id] = decode_options(value or b"")
    return found


def end_expiry(tx: Transaction[Any], options: Iterable[tuple[bytes, StoredOptions]]) -> None:
    """Items, each with its options, do not expire any more; their marks are the caller's."""
    due = [tx.prefix + due_part(each.expires_at_ms, item_id) for item_id, each in options]
    tx.batch.delete_many(Family.ITEM_EXPIRY, due)
    tx.counters.expiring -= len(due)


def drop_options(tx: Transaction[Any], run: Run) -> None:
    """The items of a run with options are gone."""
    if mark_expires(run.mark):
        end_expiry(tx, options_of(tx, [run]).items())
    tx.batch.delete_many(Family.ITEM_OPTIONS, [tx.prefix + item_id for item_id in run.ids])
