"""Delete all entries of a prefix.

Many range deletions slow down every later search, and there may be a million small topics and
groups: few entries are deleted one by one.
"""

from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import prefix_end
from queueber.engine.kernel.transaction import Transaction

_SINGLE_DELETES_MAX = 256


def delete_all(tx: Transaction[Any], family: Family, prefix: bytes) -> bool:
    """Delete all entries of a family that begin with a prefix; whether there were many."""
    stop = prefix_end(prefix)
    keys: list[bytes] = []
    for key, _ in tx.store.walk(family, prefix, stop):
        keys.append(key)
        if len(keys) > _SINGLE_DELETES_MAX:
            tx.batch.delete_range(family, prefix, stop)
            return True
    tx.batch.delete_many(family, keys)
    return False
