"""The number of the on-disk format, and how to change the format.

To change what is stored:

1. Add 1 to `FORMAT`, and say below what changed.
2. Freeze the old format: `db/upgrade/format_<old>.py` gets copies of the codecs that change, as
   they are now. The step that wrote the old format uses those copies from now on.
3. Write the step `db/upgrade/from_<old>_to_<new>.py`, and add it to `STEPS` of
   `db/upgrade/upgrading.py`. It reads with the frozen codecs and writes with those of today. An
   upgrade runs all steps from the format that it finds, one after the other.
4. Keep a small store of the old format in `tests/engine/stores/`, and golden bytes of the new one
   in `tests/db/`.

1: the families and records of the first work queue. Stores of this format were never released.
2: marks, dead letters, dedup keys, producers, batches and logs. Stores of this format were never
   released.
3: the family `loads`, open loads in batches, attributes in results. Stores of this format were
   never released.
4: the family `holders` in place of `in_progress`: only leases say what is leased.
5: runs and blocks. Contents are in blocks of items with consecutive ids, and an entry of a state is
   about a run of items; until then both were about one item. The family `leftovers`. Another digest
   of the ids of a batch, which is computed for a run at once.
"""

from queueber.db.families import Family
from queueber.db.store.contract import Store
from queueber.errors import StorageCorrupt

FORMAT = 5
UPGRADED_FROM = 4
"""The earliest format that `queueber upgrade` reads."""


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
    if number == FORMAT:
        return None
    advice = "use the version of Queueber that wrote it"
    if UPGRADED_FROM <= number < FORMAT:
        advice = "run 'queueber upgrade' on it, with the same --data-dir"
    raise StorageCorrupt(
        f"the store has format {number}, this version reads format {FORMAT}; {advice}"
    )
