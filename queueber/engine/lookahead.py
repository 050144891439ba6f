"""Look ahead in a time index for the next entry, without walking over a heap of deleted ones."""

from queueber.db.families import Family
from queueber.db.keys import PREFIX_BYTES, prefix_end, split_due_part, time_part
from queueber.db.store import ScanIncomplete, Store
from queueber.errors import invariant
from queueber.limits import LOOKAHEAD_RETRY_MS, LOOKAHEAD_SKIPS_MAX


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
