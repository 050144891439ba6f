"""Check a store against every rule of `lifecycle.INVARIANTS`.

The check reads each family once, and makes point reads for each run of items: its time grows with
the store, its memory only with the numbers of topics and batches. Tests call it after every step,
`queueber verify` on a stopped store.
"""

from collections.abc import Iterator
from itertools import islice

from queueber.db.families import Family
from queueber.db.records import keys
from queueber.db.records.queues import decode_counters, decode_queue
from queueber.db.store.contract import Store
from queueber.engine.integrity.check_callbacks import check_callbacks
from queueber.engine.integrity.check_caps import check_caps
from queueber.engine.integrity.check_items import ItemsCheck
from queueber.engine.integrity.check_routes import check_routes
from queueber.engine.integrity.check_schedules import check_schedules
from queueber.engine.integrity.check_topics import TopicsCheck
from queueber.engine.integrity.check_waits import check_waits
from queueber.engine.integrity.logs import check_log, check_results
from queueber.engine.integrity.owners import LAST_KEY, Owners
from queueber.engine.integrity.queue_entries import CheckedQueue, QueueEntries, Violation
from queueber.engine.integrity.records import RecordsCheck

__all__ = ["Violation", "check_store"]


def check_store(store: Store, violations_max: int = 100) -> list[Violation]:
    """Up to `violations_max` violations; none if the store is sound."""
    return list(islice(_check_store(store), violations_max))


def _check_store(store: Store) -> Iterator[Violation]:
    owners = Owners(store)
    yield from owners.check_keys()
    yield from _check_queues(store)
    yield from TopicsCheck(store, owners).run()
    yield from check_routes(store)
    yield from check_schedules(store)


def _check_queues(store: Store) -> Iterator[Violation]:
    for prefix, record in store.walk(Family.QUEUES, b"", LAST_KEY):
        name = f"#{keys.split_queue_prefix(prefix)}"
        try:
            name, _, settings, _ = decode_queue(record)
            stored = store.get(Family.COUNTERS, prefix)
            if stored is None:
                yield Violation("I5", name, "has no counters")
                continue
            counters = decode_counters(stored)
            queue = CheckedQueue(name, QueueEntries(store, prefix), counters)
            items = ItemsCheck(queue)
            yield from items.run()
            yield from check_caps(queue, settings)
            yield from RecordsCheck(queue).run(items.batches)
            yield from check_callbacks(queue)
            yield from check_waits(queue)
            yield from check_results(queue)
            for wrong in check_log(store, prefix):
                yield Violation("I12", name, wrong)
        except Exception as error:  # noqa: BLE001  damage raises all kinds; the check of this queue ends
            yield Violation("I7", name, f"a value cannot be read: {error!r}")
