"""The family `places`: how a ready or delayed item is found by its id.

The indexes are sorted by time, so finding an entry needs its time. For most items that is the time
in the id. `places` stores the time of the others: items that were delayed, failed or released.
"""

from collections.abc import Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import TIME_BYTES, Due, Entry, due_part
from queueber.engine.kernel.transaction import Transaction
from queueber.ids import made_at_ms


def put_places(tx: Transaction[Any], entries: Sequence[Entry]) -> None:
    """Store the times of entries that enter an index."""
    moved = _not_where_their_ids_say(entries)
    if moved:
        prefix = tx.prefix
        tx.batch.put_many(
            Family.PLACES, [(prefix + due[TIME_BYTES:], due[:TIME_BYTES]) for due in moved]
        )


def drop_places(tx: Transaction[Any], entries: Sequence[Entry]) -> None:
    """Delete the times of entries that leave an index."""
    moved = _not_where_their_ids_say(entries)
    if moved:
        prefix = tx.prefix
        tx.batch.delete_many(Family.PLACES, [prefix + due[TIME_BYTES:] for due in moved])


def find_places(tx: Transaction[Any], ids: Sequence[bytes]) -> list[Due]:
    """For each item the due part that it has if it is ready or delayed."""
    times = tx.store.get_many(Family.PLACES, [tx.prefix + item_id for item_id in ids])
    return [
        due_part(made_at_ms(item_id) if time is None else int.from_bytes(time), item_id)
        for item_id, time in zip(ids, times, strict=True)
    ]


def _not_where_their_ids_say(entries: Sequence[Entry]) -> list[Due]:
    # The rule of `is_where_its_id_says`, without a call for each entry.
    return [due for due, _ in entries if due[2:8] != due[8:14]]
