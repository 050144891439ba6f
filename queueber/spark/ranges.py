"""Ranges: how rows are divided among tasks, so that each is read once and by one of them."""

from dataclasses import dataclass
from itertools import pairwise

from queueber.client import Snapshot
from queueber.client.arguments.values import Columns
from queueber.limits import LEVELS
from queueber.model import ItemState

ROWS_LEAST = 5000
"""A task with fewer rows would take longer to start than to read."""
_PROBES_A_RANGE = 4
_KEY_BYTES = {
    ItemState.READY: 24,
    ItemState.DELAYED: 24,
    ItemState.LEASED: 32,
    ItemState.DEAD: 16,
}
_EVERYTHING: Columns = ("contents", "keys", "batches", "attributes")


@dataclass(frozen=True, slots=True)
class Cursors:
    """From after one cursor up to another; empty: from the first, to the last."""

    after: bytes = b""
    before: bytes = b""


def split_offsets(first: int, end: int, splits: int) -> list[tuple[int, int]]:
    """The offsets from `first` to before `end`, in parts of about the same length."""
    count = max(1, min(splits, (end - first) // ROWS_LEAST))
    cuts = [first + (end - first) * n // count for n in range(count + 1)]
    return [(a, b) for a, b in pairwise(cuts) if a < b]


def split_items(snapshot: Snapshot, state: ItemState, count: int, splits: int) -> list[Cursors]:
    """The `count` items of a state, in up to `splits` ranges.

    Nobody knows where the middle item is, so the room that their keys take is cut evenly, and parts
    in which nothing lies are joined to others. That is even when items came at an even pace, and
    when they were loaded in partitions of a size; else it is not, and still every item is in one.
    """
    parts = min(splits, count // ROWS_LEAST)
    if parts < 2:
        return [Cursors()] if count else []
    heads = [b""]
    if state is ItemState.READY:
        levels = [bytes([level]) for level in range(LEVELS)]
        heads = [h for h in levels if _has_some(snapshot, state, h, bytes([h[0] + 1]))]
    cuts: list[bytes] = []
    for head in heads:
        cuts += _cuts(snapshot, state, head, parts * _PROBES_A_RANGE // len(heads))
    # Every cut begins a part that has some; as many are kept as there are to be ranges.
    kept = (
        [cuts[len(cuts) * n // parts] for n in range(1, parts)] if len(cuts) >= parts else cuts[1:]
    )
    return [Cursors(a, b) for a, b in pairwise([b"", *kept, b""])]


def _cuts(snapshot: Snapshot, state: ItemState, head: bytes, probes: int) -> list[bytes]:
    """Places in the room of a level's keys, each with some items before the next."""
    size = _KEY_BYTES[state]
    ceiling = (1 << (8 * size)) - 1

    def place(number: int) -> bytes:
        return head + number.to_bytes(size)

    end = bytes([head[0] + 1]) if head else b""
    low = _first_key(snapshot, state, head, end, size)
    high = ceiling
    lowest = low
    # Where the last one is, by halving: about a step for each bit in which their keys differ.
    while high - low > max(1, (low - lowest) // (4 * max(1, probes))):
        middle = (low + high) // 2
        if _has_some(snapshot, state, place(middle), end):
            low = max(middle, _first_key(snapshot, state, place(middle), end, size))
        else:
            high = middle
    step = max(1, (high - lowest) // max(1, probes))
    places = [place(lowest - 1 if lowest else 0), *map(place, range(lowest + step, high, step))]
    ends = [*places[1:], end]
    return [a for a, b in zip(places, ends, strict=True) if _has_some(snapshot, state, a, b)]


def _has_some(snapshot: Snapshot, state: ItemState, after: bytes, before: bytes) -> bool:
    page = snapshot.scan(state, after=after, before=before, limit=1, without=_EVERYTHING)
    return bool(page.items)


def _first_key(snapshot: Snapshot, state: ItemState, after: bytes, before: bytes, size: int) -> int:
    """The first key after a place, which must have one, as a number."""
    (item,) = snapshot.scan(state, after=after, before=before, limit=1, without=_EVERYTHING).items
    heads = {16: b"", 24: item.at_ms.to_bytes(8), 32: item.lease_id}
    key = heads[size] + item.id
    return int.from_bytes(key)
