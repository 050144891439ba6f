"""The number of the on-disk format, and how to change the format.

To change what is stored:

1. Add 1 to `FORMAT`, and say below what changed.
2. Write an upgrade step from the number before, or refuse that number with an error that names the
   version that can read it.
3. Add golden bytes of the new format to `tests/db/`, and keep those of the old one.

1: the families and records of the first work queue. Stores of this format were never released.
2: marks, dead letters, dedup keys, producers, batches and logs. Stores of this format were never
   released.
3: the family `loads`, open loads in batches, attributes in results. Stores of this format were
   never released.
4: the family `holders` in place of `in_progress`: only leases say what is leased.
"""

from queueber.db.families import Family
from queueber.db.store.contract import Store
from queueber.errors import StorageCorrupt

FORMAT = 4


def ensure_format(store: Store, *, read_only: bool) -> None:
    """Write the format into a new store; raise if a store has another format."""
    found = store.get(Family.DEFAULT, b"format")
    is_empty = not store.scan(Family.QUEUES, b"", b"\xff" * 4, 1)
    written = check_format(found, is_empty=is_empty)
    if written is not None and not read_only:
        batch = store.batch()
        batch.put(Family.DEFAULT, b"format", written)
        store.write(batch)
        store.sync()


def check_format(found: bytes | None, *, is_empty: bool) -> bytes | None:
    """The format to write into a new store; None if the store has ours. Raises for any other."""
    if found is None:
        if is_empty:
            return FORMAT.to_bytes(4)
        raise StorageCorrupt("the store has queues but no format number; restore it from a backup")
    number = int.from_bytes(found)
    if number != FORMAT:
        raise StorageCorrupt(
            f"the store has format {number}, this version reads format {FORMAT}; "
            "use the version of Queueber that wrote it"
        )
    return None
