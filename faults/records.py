"""Converts calls and answers to the columns of the table in `history.py`."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

from faults.final_state import FinalState, FoundItem, FoundReceipt, FoundResult
from faults.history import printed
from queueber.model import FailOutcome, ItemInfo, ItemState, Receipt, Result, Stats

Told = dict[str, Any]


def hexes(ids: Iterable[bytes]) -> list[str]:
    return [each.hex() for each in ids]


def all_printed(contents: Iterable[bytes]) -> list[str]:
    return [printed(each) for each in contents]


def under_lease(ids: Sequence[bytes], lease: bytes) -> Told:
    return {"ids": hexes(ids), "leases": [lease.hex()] * len(ids)}


def done(found: Sequence[bool]) -> Told:
    return {"done": list(found)}


def outcomes(found: Iterable[FailOutcome]) -> Told:
    return {"outcomes": [each.value for each in found]}


def added(ids: Iterable[bytes], duplicates: Iterable[bool]) -> Told:
    return {"ids": hexes(ids), "duplicates": list(duplicates)}


def polled(
    lease: bytes,
    ids: Iterable[bytes],
    contents: Iterable[bytes],
    deliveries: Iterable[int] = (),
) -> Told:
    told = {"lease": lease.hex(), "ids": hexes(ids), "contents": all_printed(contents)}
    return {**told, "deliveries": list(deliveries)}


def receipt(found: Receipt) -> Told:
    return {name: getattr(found, name) for name in ("added", "done", "dead", "live", "complete")}


def results(found: Iterable[Result]) -> Told:
    return {"results": [[each.offset, each.id.hex(), printed(each.result)] for each in found]}


def found_item(found: ItemInfo, state: ItemState) -> FoundItem:
    return FoundItem(printed(found.contents), state.value, found.batch)


def final_state(
    items: Mapping[ItemState, Iterable[ItemInfo]],
    results: Iterable[Result],
    receipts: Mapping[str, Receipt | None],
    stats: Stats,
    *,
    first_offset: int,
    read_at_ms: float = inf,
) -> FinalState:
    """The final state from a full read; `first_offset` is that of the oldest result.

    `receipts` are those of the given batches; None for a batch that the queue does not know.
    """
    return FinalState(
        {
            found.id.hex(): found_item(found, state)
            for state, of_state in items.items()
            for found in of_state
        },
        [FoundResult(each.offset, each.id.hex(), printed(each.result)) for each in results],
        first_offset,
        bool(stats.settings.result_bytes_max),
        {name: FoundReceipt(**receipt(found)) for name, found in receipts.items() if found},
        [name for name, found in receipts.items() if found is None],
        {
            "added": stats.added_total,
            "removed": stats.removed_total,
            "completed": stats.completed_total,
            "cancelled": stats.cancelled_total,
            "dead_dropped": stats.dead_dropped_total,
        },
        stats.settings.dedup_window_ms,
        stats.settings.dead_age_ms,
        read_at_ms,
    )
