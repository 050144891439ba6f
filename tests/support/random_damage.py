"""Damage to a store, at random."""

from collections.abc import Callable, Sequence
from random import Random

from queueber.db.families import Family
from queueber.db.store.contract import Store

Entries = Sequence[tuple[Family, bytes, bytes]]


def entries_of(store: Store, families: Sequence[Family]) -> Entries:
    return [
        (family, key, value)
        for family in families
        for key, value in store.walk(family, b"", b"\xff" * 300)
    ]


def damage_some(
    store: Store,
    families: Sequence[Family],
    random: Random,
    may_have_odd_keys: Callable[[Family], bool] = lambda _: True,
) -> None:
    """Take away, cut short or change some entries, or all of a family."""
    batch = store.batch()
    found = entries_of(store, families)
    if random.random() < 0.3:
        gone = random.choice(families)
        batch.delete_many(gone, [key for family, key, _ in found if family is gone])
    for family, key, value in random.sample(found, random.randint(1, 6)):
        kind = random.choice(["gone", "short", "changed", "odd key"])
        if kind == "gone":
            batch.delete(family, key)
        elif kind == "short":
            batch.put(family, key, value[: random.randrange(len(value) + 1)])
        elif kind == "changed" and value:
            changed = bytearray(value)
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
            batch.put(family, key, bytes(changed))
        elif may_have_odd_keys(family):
            batch.put(family, key[: random.randint(4, len(key))] + b"?", value)
    store.write(batch)
