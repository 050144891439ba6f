"""What is due: find it in a time index, without reading through many deleted entries."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import (
    NEVER_MS,
    PREFIX_BYTES,
    due_upper_bound,
    prefix_end,
    split_due_part,
    time_part,
)
from queueber.db.store.contract import Entries, ScanIncomplete, Store
from queueber.engine.kernel.transaction import Transaction
from queueber.errors import invariant
from queueber.limits import LOOKAHEAD_RETRY_MS, LOOKAHEAD_SKIPS_MAX


@dataclass(frozen=True, slots=True)
class Done:
    """What one slice of a duty did."""

    moved: int
    look_again_ms: int | None = None
    """When to look again; `NEVER_MS`: nothing is left. None: ask when the duty is due."""


def read_due(
    tx: Transaction[Any],
    family: Family,
    *,
    low_ms: int,
    limit: int,
    total: int,
    count: Callable[[bytes], int] = lambda value: 1,
) -> tuple[Entries, int, int]:
    """Up to `limit` entries that are due, a time before which there is no other entry, and when to
    look again.

    The caller knows that no entry is earlier than `low_ms`, and that there are `total` in all,
    where an entry counts as many as `count` says of its value.
    """
    prefix, now_ms = tx.prefix, tx.now_ms
    due = tx.store.scan(family, prefix + time_part(low_ms), due_upper_bound(prefix, now_ms), limit)
    if len(due) == limit:
        last_ms = split_due_part(due[-1][0][PREFIX_BYTES:])[0]
        return due, last_ms, last_ms
    if sum([count(value) for _, value in due]) == total:
        return due, NEVER_MS, NEVER_MS
    return due, *look_ahead(tx.store, family, prefix, now_ms)


def look_ahead(store: Store, family: Family, prefix: bytes, now_ms: int) -> tuple[int, int]:
    """A time before which there is no entry, and when to look again.

    The caller knows that the index has an entry, and deletes all that are due at `now_ms`.

    The two differ when many later entries have been deleted, as happens when leases end long before
    their expiry. Then the search stops early, and the caller repeats it a little later, when the
    times of the deleted entries have passed.
    """
    try:
        key = store.first_key(
            family,
            prefix + time_part(now_ms + 1),
            prefix_end(prefix),
            skips_max=LOOKAHEAD_SKIPS_MAX,
        )
    except ScanIncomplete:
        return now_ms + 1, now_ms + LOOKAHEAD_RETRY_MS
    invariant(key is not None, "I5", family=family.family_name, counted="more than there are")
    due_ms = split_due_part((key or b"")[PREFIX_BYTES:])[0]
    return due_ms, due_ms
