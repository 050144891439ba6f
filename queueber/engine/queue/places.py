"""Places: what finds an item that waits, ready or delayed, by its id.

The indexes are by time, so finding an item needs the time. That is the time in the id itself, unless
the item was delayed, failed or given back: then the family `places` has it.
"""

from collections.abc import Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import TIME_BYTES, due_part
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.ready_window import Entry
from queueber.ids import made_at_ms


def put_places(tx: Transaction[Any], entries: Sequence[Entry]) -> None:
    """Entries that came to wait."""
    moved = _not_where_their_ids_say(entries)
    if moved:
        prefix = tx.prefix
        tx.batch.put_many(
            Family.PLACES, [(prefix + due[TIME_BYTES:], due[:TIME_BYTES]) for due in moved]
        )


def drop_places(tx: Transaction[Any], entries: Sequence[Entry]) -> None:
    """Entries that wait no more."""
    moved = _not_where_their_ids_say(entries)
    if moved:
        prefix = tx.prefix
        tx.batch.delete_many(Family.PLACES, [prefix + due[TIME_BYTES:] for due in moved])


def find_places(tx: Transaction[Any], ids: Sequence[bytes]) -> list[bytes]:
    """For each item its due part, if it waits."""
    places = tx.store.get_many(Family.PLACES, [tx.prefix + item_id for item_id in ids])
    return [
        due_part(made_at_ms(item_id) if place is None else int.from_bytes(place), item_id)
        for item_id, place in zip(ids, places, strict=True)
    ]


def _not_where_their_ids_say(entries: Sequence[Entry]) -> list[bytes]:
    # As `is_where_its_id_says` has it, without a call for each entry.
    return [due for due, _ in entries if due[2:8] != due[8:14]]
