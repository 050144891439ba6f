"""Everything a store holds, to compare before and after."""

from queueber.db.families import Family
from queueber.db.store.contract import Store

_LAST_KEY = b"\xff" * 64

Dump = dict[str, list[tuple[bytes, bytes]]]


def dump(store: Store) -> Dump:
    return {family.family_name: list(store.walk(family, b"", _LAST_KEY)) for family in Family}
