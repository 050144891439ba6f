"""Codecs of items as they stand: their states, peeked items, snapshots and pages of them."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from queueber.errors import InvalidArgument
from queueber.ids import made_at_ms
from queueber.limits import PEEK_ITEMS_MAX
from queueber.model import (
    ItemColumns,
    ItemDetails,
    ItemInfo,
    ItemState,
    SnapshotInfo,
    SnapshotRange,
)
from queueber.schema import wire
from queueber.wire import lists
from queueber.wire.polls import read_details, write_details

_DETAILS = wire.ScanResponse.schema.fields["details"]
_DEFAULTS = ItemDetails([], [], [], [], [])
_SNAPSHOT = lists.Codec(SnapshotInfo, leased="inProgress")
write_snapshot, read_snapshot = _SNAPSHOT.write, _SNAPSHOT.read
_PEEKED = lists.Codec(
    ItemInfo,
    without=("attributes", "attempt_times_ms", "after", "attempts_max", "backoff_ms"),
    lease_id="lease",
)
_AS_THE_QUEUE_SAYS = -1
_STATES = (ItemState.READY, ItemState.DELAYED, ItemState.LEASED, ItemState.DEAD)
_STATE_WORDS = dict(zip(_STATES, ("ready", "delayed", "inProgress", "dead"), strict=True))


def read_state(state: Any) -> ItemState:
    """Read the number, because pycapnp has no name for a value that is not in the schema."""
    if state.raw >= len(_STATES):
        raise InvalidArgument(f"state: {state.raw} is none of {', '.join(_STATE_WORDS.values())}")
    return _STATES[state.raw]


def wire_state(state: ItemState) -> str:
    return _STATE_WORDS[state]


# --- peek -----------------------------------------------------------------------------------------


def write_peeked(response: Any, items: Sequence[ItemInfo], next_after: bytes) -> None:
    response.next = next_after
    listed = response.init("items", len(items))
    for at, peeked in enumerate(items):
        write_peeked_item(listed[at], peeked)


def write_peeked_item(target: Any, peeked: ItemInfo) -> None:
    for wire_name, name in _PEEKED.names:
        if value := getattr(peeked, name):
            setattr(target, wire_name, value)
    lists.write_attribute_list(target, "attributes", peeked.attributes)
    if peeked.attempt_times_ms:
        target.attemptTimesMs = list(peeked.attempt_times_ms)
    if peeked.after:
        target.after = list(peeked.after)
    if peeked.attempts_max is not None:
        target.attemptsMax = peeked.attempts_max
    if peeked.backoff_ms:
        target.backoffMs = list(peeked.backoff_ms)


def read_peeked(response: Any) -> tuple[list[ItemInfo], bytes]:
    listed = lists.read_list("items", response.items, PEEK_ITEMS_MAX)
    return [read_peeked_item(source) for source in listed], response.next


def read_peeked_item(source: Any) -> ItemInfo:
    attempts_max = source.attemptsMax
    return _PEEKED.read(
        source,
        attributes=lists.read_attribute_list(source.attributes),
        attempt_times_ms=list(source.attemptTimesMs),
        after=tuple(source.after),
        attempts_max=None if attempts_max == _AS_THE_QUEUE_SAYS else attempts_max,
        backoff_ms=tuple(source.backoffMs),
    )


# --- snapshots ------------------------------------------------------------------------------------


def read_cuts(response: Any) -> list[SnapshotRange]:
    """The ranges before the first cut, between cuts, and after the last."""
    return [SnapshotRange(*each) for each in pairwise([b"", *response.cuts, b""])]


def write_scan(response: Any, items: Sequence[ItemInfo], next_after: bytes) -> None:
    """Write a page of items. A column in which every item has the default is left out."""
    response.next = next_after
    if not items:
        return
    response.ids = [each.id for each in items]
    response.priorities = [each.priority for each in items]
    response.atMs = [each.at_ms for each in items]
    details = ItemDetails(
        _unless_empty([each.attempts for each in items]),
        _unless_empty([each.key for each in items]),
        _unless_empty([each.batch for each in items]),
        _unless_empty([each.attributes for each in items]),
        _deliveries(items),
    )
    if details != _DEFAULTS:
        write_details(response.init("details"), details)
    lists.write_unless_empty(response, "contents", [each.contents for each in items])
    lists.write_unless_empty(response, "leases", [each.lease_id for each in items])
    lists.write_unless_empty(response, "reasons", [each.reason for each in items])
    lists.write_unless_empty(response, "lastErrors", [each.last_error for each in items])
    if after := [item_id for each in items for item_id in each.after]:
        response.afterCounts = [len(each.after) for each in items]
        response.after = after
    lists.write_unless_empty(response, "afterBatches", [each.after_batch for each in items])


def read_scan(response: Any) -> ItemColumns:
    ids = list(response.ids)
    details = read_details(response.details) if response._has_by_field(_DETAILS) else ItemDetails()
    no_bytes, no_text, count = [b""] * len(ids), [""] * len(ids), len(ids)
    return ItemColumns(
        ids,
        list(response.contents) or no_bytes,
        details.keys or no_text,
        details.attributes or [{}] * count,
        details.batches or no_text,
        list(response.priorities),
        details.attempts or [0] * count,
        list(response.atMs),
        list(response.leases) or no_bytes,
        list(response.reasons) or no_text,
        list(response.lastErrors) or no_text,
        response.next,
        details.deliveries or details.attempts or [0] * count,
        _split(list(response.after), list(response.afterCounts)),
        list(response.afterBatches),
    )


def _split(values: list[bytes], counts: list[int]) -> list[tuple[bytes, ...]]:
    """The values of each item; empty if there are none."""
    ends = list(accumulate(counts, initial=0))
    return [tuple(values[start:end]) for start, end in pairwise(ends)]


def _deliveries(items: Sequence[ItemInfo]) -> list[int]:
    """Empty if each item was leased as often as it failed."""
    deliveries = [each.deliveries for each in items]
    return deliveries if deliveries != [each.attempts for each in items] else []


def items_of(columns: ItemColumns) -> list[ItemInfo]:
    """The rows of a page. Scans send neither `group_max`, nor the times of attempts, nor what items
    have of their own."""
    count = len(columns.ids)
    rows = zip(
        columns.ids,
        columns.contents,
        map(made_at_ms, columns.ids),
        columns.keys,
        columns.attributes,
        columns.batches,
        columns.priorities,
        columns.attempts,
        [0] * count,
        columns.at_ms,
        columns.lease_ids,
        columns.reasons,
        columns.last_errors,
        [()] * count,
        columns.deliveries or columns.attempts,
        columns.after or [()] * count,
        columns.after_batches or [""] * count,
        strict=True,
    )
    return [ItemInfo(*row) for row in rows]


def _unless_empty(column: list[Any]) -> list[Any]:
    return column if any(column) else []
