"""Look ahead in a time index for the next entry, without walking over a heap of deleted ones."""

from queueber.db.families import Family
from queueber.db.records.keys import (
    NEVER_MS,
    PREFIX_BYTES,
    due_upper_bound,
    prefix_end,
    split_due_part,
    time_part,
)
from queueber.db.store.contract import ScanIncomplete, Store
from queueber.errors import invariant
from queueber.limits import LOOKAHEAD_RETRY_MS, LOOKAHEAD_SKIPS_MAX


def read_due(
    store: Store, family: Family, prefix: bytes, *, low_ms: int, now_ms: int, limit: int, total: int
) -> tuple[list[tuple[bytes, bytes]], int, int]:
    """Up to `limit` entries that are due, a time before which none of the others lies, and when to
    look again. No entry lies before `low_ms`, and there are `total` of them."""
    due = store.scan(family, prefix + time_part(low_ms), due_upper_bound(prefix, now_ms), limit)
    if len(due) == limit:
        last_ms = split_due_part(due[-1][0][PREFIX_BYTES:])[0]
        return due, last_ms, last_ms
    if len(due) == total:
        return due, NEVER_MS, NEVER_MS
    return due, *look_ahead(store, family, prefix, now_ms)


def look_ahead(store: Store, family: Family, prefix: bytes, now_ms: int) -> tuple[int, int]:
    """A time before which there is no entry, and when to look again.

    For a caller who knows that there is an entry, and that all which are due at `now_ms` are gone.

    The two differ when many entries that were to come have been deleted meanwhile, as they are when
    leases end long before their expiry. Then the look stops early and is taken up a little later,
    when time itself has passed over those entries.
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
