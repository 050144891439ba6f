"""Review: cap keys that are looked at because their cap was changed, or tokens of theirs are back.

Looking at a key is reading it: at the end of the transaction whoever may go is let go.
"""

from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS, PREFIX_BYTES, prefix_end, split_due_part
from queueber.engine.caps.key_changes import Tx, key_changes, keys_of
from queueber.engine.kernel.due_scan import Done, read_due
from queueber.errors import FailedPrecondition
from queueber.ids import made_at_ms
from queueber.model import QueueSettings

_FAMILIES = (Family.CAP_KEYS, Family.CAP_DUE)


def change_caps(tx: Tx, settings: QueueSettings) -> None:
    """The queue gets other settings: have the keys looked at that another cap concerns."""
    present, counters = tx.queue.settings, tx.counters
    if settings.cap_by != present.cap_by:
        _change_attribute(tx, present.cap_by)
        return
    if _rate_of(settings) != _rate_of(present):
        is_concerned = counters.slots or counters.parked or counters.cap_dues
    else:
        is_changed = settings.cap_by_concurrency_max != present.cap_by_concurrency_max
        is_concerned = is_changed and counters.parked
    if is_concerned:
        counters.caps_to_review = 1
        tx.due(tx.now_ms)


def _rate_of(settings: QueueSettings) -> tuple[int, int]:
    return settings.cap_by_rate_items, settings.cap_by_rate_ms


def _change_attribute(tx: Tx, present: str) -> None:
    counters = tx.counters
    if counters.slots or counters.parked:
        raise FailedPrecondition(
            f"capBy: {counters.slots + counters.parked} items of queue {tx.queue.name!r} are "
            f"leased or parked by {present!r}; set capByConcurrencyMax and capByRateItems to 0, "
            "and change it once they are done"
        )
    # What is left are keys that have spent some of their rate.
    for family in _FAMILIES:
        tx.batch.delete_range(family, tx.prefix, prefix_end(tx.prefix))
    counters.cap_dues, counters.cap_due_ms = 0, NEVER_MS
    counters.caps_to_review = 0


def review_due_ms(queue: Any, now_ms: int) -> int:
    if queue.counters.caps_to_review:
        return now_ms
    keys = None if queue.caps is None else queue.caps.keys
    if keys is None or keys.rate is None or keys.has_checked_clock:
        return NEVER_MS
    # Every token was taken before the newest id was made: if that is still to come, the clock was
    # set back, and the times of keys may be far ahead.
    return now_ms if made_at_ms(queue.counters.last_id) > now_ms else NEVER_MS


def review_caps(tx: Tx, keys_max: int) -> Done:
    """Look at some cap keys, after those that were looked at before."""
    keys = keys_of(tx)
    if keys is None:
        tx.counters.caps_to_review = 0
        return Done(0)
    start = tx.prefix + keys.review_from
    found = tx.store.scan(Family.CAP_KEYS, start, prefix_end(tx.prefix), keys_max)
    if len(found) < keys_max:
        tx.counters.caps_to_review = 0
        tx.after_write(setattr, keys, "has_checked_clock", True)
        tx.after_write(setattr, keys, "review_from", b"")
    else:
        after = found[-1][0][PREFIX_BYTES:] + b"\0"
        tx.after_write(setattr, keys, "review_from", after)
    key_changes(tx, keys).read([key[PREFIX_BYTES:] for key, _ in found])
    return Done(len(found))


def tokens_due_ms(queue: Any, _: int) -> int:
    counters = queue.counters
    due_ms: int = counters.cap_due_ms if counters.cap_dues else NEVER_MS
    return due_ms


def look_at_tokens(tx: Tx, keys_max: int) -> Done:
    """Look at the cap keys of which tokens are back."""
    keys, counters = keys_of(tx), tx.counters
    if keys is None:
        return Done(0)
    due, counters.cap_due_ms, look_again_ms = read_due(
        tx, Family.CAP_DUE, low_ms=counters.cap_due_ms, limit=keys_max, total=counters.cap_dues
    )
    changes = key_changes(tx, keys)
    parts = [split_due_part(key[PREFIX_BYTES:]) for key, _ in due]
    changes.read([digest for _, digest in parts])
    for at_ms, digest in parts:
        changes.is_due(digest, at_ms)
    return Done(len(due), look_again_ms)
