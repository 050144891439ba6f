"""Check a store against every rule of `lifecycle.INVARIANTS`.

The check reads each family once, and makes point reads for each run of items: its time grows with
the store, its memory only with the number of batches. Tests call it after every step, `queueber
verify` on a stopped store.
"""

from collections.abc import Iterator
from itertools import islice

from queueber.db.families import QUEUE_FAMILIES, Family
from queueber.db.records import keys
from queueber.db.records.loads import LOAD_KEY_BYTES, PART_KEY_BYTES
from queueber.db.records.queues import decode_counters, decode_queue
from queueber.db.store.contract import Store
from queueber.engine.integrity.check_items import ItemsCheck
from queueber.engine.integrity.logs import check_log, check_results
from queueber.engine.integrity.queue_entries import CheckedQueue, QueueEntries, Violation
from queueber.engine.integrity.records import RecordsCheck
from queueber.limits import ID_BYTES, READER_NAME_BYTES_MAX

__all__ = ["Violation", "check_store"]

_LAST_KEY = b"\xff" * 64


def _exactly(width: int) -> range:
    return range(width, width + 1)


_KEY_WIDTHS = {
    Family.QUEUES: _exactly(0),
    Family.COUNTERS: _exactly(0),
    Family.ITEMS: _exactly(ID_BYTES),
    Family.LEFTOVERS: _exactly(ID_BYTES),
    Family.VISIBILITY_INDEX: _exactly(keys.LEVEL_BYTES + keys.DUE_BYTES),
    Family.DELAYED: _exactly(keys.DUE_BYTES),
    Family.PLACES: _exactly(ID_BYTES),
    Family.DEAD: _exactly(ID_BYTES),
    Family.LEASES: _exactly(ID_BYTES),
    Family.LEASE_EXPIRY: _exactly(keys.DUE_BYTES),
    Family.HOLDERS: _exactly(2 * ID_BYTES),
    Family.ATTEMPTS: _exactly(ID_BYTES),
    Family.KEYS: _exactly(keys.DIGEST_BYTES),
    Family.PRODUCERS: range(keys.DIGEST_BYTES, keys.DIGEST_BYTES + 9),
    Family.BATCHES: _exactly(4),
    Family.BATCH_NAMES: _exactly(keys.DIGEST_BYTES),
    Family.FORGET: _exactly(keys.DUE_BYTES),
    Family.LOADS: range(LOAD_KEY_BYTES, PART_KEY_BYTES + 1),
    Family.LOGS: range(0, READER_NAME_BYTES_MAX + 1),
    Family.LOG_BLOCKS: _exactly(8),
}
"""How long the keys of a family may be, without the queue's number."""


def check_store(store: Store, violations_max: int = 100) -> list[Violation]:
    """Up to `violations_max` violations; none if the store is sound."""
    return list(islice(_check_store(store), violations_max))


def _check_store(store: Store) -> Iterator[Violation]:
    yield from _check_keys(store)
    for prefix, record in store.walk(Family.QUEUES, b"", _LAST_KEY):
        name = f"#{keys.split_queue_prefix(prefix)}"
        try:
            name = decode_queue(record)[0]
            stored = store.get(Family.COUNTERS, prefix)
            if stored is None:
                yield Violation("I5", name, "has no counters")
                continue
            counters = decode_counters(stored)
            queue = CheckedQueue(name, QueueEntries(store, prefix), counters)
            items = ItemsCheck(queue)
            yield from items.run()
            yield from RecordsCheck(queue).run(items.batches)
            yield from check_results(queue)
            for wrong in check_log(store, prefix):
                yield Violation("I12", name, wrong)
        except Exception as error:  # noqa: BLE001  damage raises all kinds; the check of this queue ends
            yield Violation("I7", name, f"a value cannot be read: {error!r}")


def _check_keys(store: Store) -> Iterator[Violation]:
    """I7, for every key, also of queues that do not exist."""
    known = {prefix for prefix, _ in store.walk(Family.QUEUES, b"", _LAST_KEY)}
    for family in QUEUE_FAMILIES:
        for key, _ in store.walk(family, b"", _LAST_KEY):
            if not key_fits(family, key):
                yield Violation("I7", "-", f"{family.family_name} has the key {key.hex()}")
            elif key[: keys.PREFIX_BYTES] not in known:
                number = keys.split_queue_prefix(key[: keys.PREFIX_BYTES])
                yield Violation("I7", f"#{number}", f"{family.family_name} has {key.hex()}")


def key_fits(family: Family, key: bytes) -> bool:
    """Whether a key has a length that its family allows."""
    return len(key) - keys.PREFIX_BYTES in _KEY_WIDTHS[family]
