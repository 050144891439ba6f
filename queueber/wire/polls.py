"""Codecs of the answers to polls, in three forms.

`items` is the form of the original. Columns have a list for each field. Packed answers have all
contents in one buffer, and ids as runs: from the store to the message nothing is done for a single
item.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise, repeat
from operator import add
from struct import pack, unpack
from typing import Any

from queueber.ids import ItemId, made_at_ms
from queueber.limits import POLL_ITEMS_CEILING
from queueber.model import NO_DETAILS, IdRuns, ItemDetails, PackedContents, PackedItems, Polled
from queueber.model.joined import joined_columns
from queueber.schema import wire
from queueber.wire.lists import (
    read_attribute_columns,
    write_attribute_columns,
    write_attribute_list,
)

_POLLED = wire.PolledItem.schema.fields
_POLLED_CONTENTS, _POLLED_ID = _POLLED["contents"], _POLLED["id"]
_POLLED_ATTEMPT, _POLLED_ADDED_AT = _POLLED["attempt"], _POLLED["addedAtMs"]
_POLLED_DELIVERIES = _POLLED["deliveries"]
_TIMEOUTS = wire.ItemDetails.schema.fields["timeoutsMs"]
_DELIVERIES = wire.ItemDetails.schema.fields["deliveries"]
_POLL, _POLL_MANY = wire.PollResponse.schema.fields, wire.PollManyResponse.schema.fields

# --- writing --------------------------------------------------------------------------------------


def write_polled(
    response: Any, polled: Polled, *, columns: bool = False, packed: bool = False
) -> None:
    response.lease = polled.lease_id
    if packed:
        _write_packed(response, polled.packed)
    elif columns:
        response.ids = list(polled.ids)
        response.contents = polled.contents
    else:
        _write_polled_items(response, polled)
        return
    if polled.details is not NO_DETAILS:
        write_details(response.init("details"), polled.details)


def _write_polled_items(response: Any, polled: Polled) -> None:
    details = polled.details
    deliveries = details.deliveries or details.attempts
    items = response.init("items", polled.count)
    for at, (item_id, contents) in enumerate(zip(polled.ids, polled.contents, strict=True)):
        item = items[at]
        put = item._set_by_field
        put(_POLLED_CONTENTS, contents)
        put(_POLLED_ID, item_id)
        put(_POLLED_ATTEMPT, details.attempts[at] if details.attempts else 1)
        put(_POLLED_ADDED_AT, made_at_ms(item_id))
        put(_POLLED_DELIVERIES, deliveries[at] if deliveries else 1)
        if details is not NO_DETAILS:
            item.key = details.keys[at] if details.keys else ""
            item.batch = details.batches[at] if details.batches else ""
            if details.attributes:
                write_attribute_list(item, "attributes", details.attributes[at])


def write_polled_many(response: Any, answers: Sequence[Polled], *, packed: bool = False) -> None:
    response.leases = [polled.lease_id for polled in answers]
    response.counts = [polled.count for polled in answers]
    if packed:
        _write_packed(response, [each for polled in answers for each in polled.packed])
    else:
        response.ids = [item_id for polled in answers for item_id in polled.ids]
        response.contents = [contents for polled in answers for contents in polled.contents]
    if any(polled.details is not NO_DETAILS for polled in answers):
        write_details(response.init("details"), _joined(answers))


def _write_packed(response: Any, packed: Sequence[PackedItems]) -> None:
    if packed:
        response.idRuns = IdRuns([(ItemId(each.last), each.count) for each in packed]).packed
        target = response.init("packed")
        if len(packed) == 1:
            _, _, target.ends, target.values = packed[0]
        else:
            target.ends = _joined_ends(packed)
            target.values = b"".join([each.contents for each in packed])


def _joined_ends(packed: Sequence[PackedItems]) -> bytes:
    """Where each of the contents ends, when those of all runs stand one after the other."""
    counts = [each.count for each in packed]
    ends = accumulate([len(each.contents) for each in packed], initial=0)
    form = f"<{sum(counts)}I"
    if sum(counts) == len(counts):
        return pack(form, *islice(ends, 1, None))
    of_runs = unpack(form, b"".join([each.ends for each in packed]))
    return pack(form, *map(add, of_runs, chain.from_iterable(map(repeat, ends, counts))))


def _joined(answers: Sequence[Polled]) -> ItemDetails:
    counted = [(polled.details, polled.count) for polled in answers]
    return ItemDetails(
        joined_columns([(details.attempts, count) for details, count in counted], 1),
        joined_columns([(details.keys, count) for details, count in counted], ""),
        joined_columns([(details.batches, count) for details, count in counted], ""),
        joined_columns([(details.attributes, count) for details, count in counted], {}),
        joined_columns(
            [(details.deliveries or details.attempts, count) for details, count in counted], 1
        )
        if any(details.deliveries for details, _ in counted)
        else (),
        joined_columns([(details.timeouts_ms, count) for details, count in counted], 0),
    )


# --- reading --------------------------------------------------------------------------------------


@dataclass(slots=True)
class PolledColumns:
    """The answer to one poll as a client has it. Packed, ids and contents are made on demand."""

    lease_id: bytes
    """Empty if there are no items."""
    ids: Sequence[bytes]
    contents: Sequence[bytes]
    details: ItemDetails = NO_DETAILS


def read_polled(response: Any) -> PolledColumns:
    """Read an answer that is packed, or in columns: an older server does not pack."""
    has = response._has_by_field
    details = read_details(response.details) if has(_POLL["details"]) else NO_DETAILS
    return PolledColumns(response.lease, *_read_columns(response, has(_POLL["packed"])), details)


def read_polled_many(response: Any) -> list[PolledColumns]:
    has = response._has_by_field
    ids, contents = _read_columns(response, has(_POLL_MANY["packed"]))
    details = read_details(response.details) if has(_POLL_MANY["details"]) else None
    counts = list(response.counts)
    bounds = list(pairwise(accumulate(counts, initial=0)))
    split = ids.split(counts) if isinstance(ids, IdRuns) else [ids[a:b] for a, b in bounds]
    answers = []
    for lease_id, of_lease, (start, end) in zip(response.leases, split, bounds, strict=True):
        part = NO_DETAILS if details is None else _slice(details, start, end)
        answers.append(PolledColumns(lease_id, of_lease, contents[start:end], part))
    return answers


def _read_columns(response: Any, is_packed: bool) -> tuple[Sequence[bytes], Sequence[bytes]]:
    if not is_packed:
        return list(response.ids), list(response.contents)
    packed = response.packed
    contents = PackedContents(packed.values, memoryview(packed.ends).cast("I"))
    return IdRuns.read(response.idRuns), contents


# --- details of items ----------------------------------------------------------------------------


def write_details(target: Any, details: ItemDetails) -> None:
    if details.attempts:
        target.attempts = list(details.attempts)
    if details.keys:
        target.keys = list(details.keys)
    if details.batches:
        target.batches = list(details.batches)
    if details.attributes:
        write_attribute_columns(target.init("attributes"), details.attributes)
    if details.deliveries:
        target.deliveries = list(details.deliveries)
    if details.timeouts_ms:
        target.timeoutsMs = list(details.timeouts_ms)


def read_details(details: Any) -> ItemDetails:
    return ItemDetails(
        list(details.attempts),
        list(details.keys),
        list(details.batches),
        read_attribute_columns(details.attributes, POLL_ITEMS_CEILING),
        list(details.deliveries) if details._has_by_field(_DELIVERIES) else (),
        list(details.timeoutsMs) if details._has_by_field(_TIMEOUTS) else (),
    )


def _slice(details: ItemDetails, start: int, end: int) -> ItemDetails:
    return ItemDetails(
        details.attempts[start:end],
        details.keys[start:end],
        details.batches[start:end],
        details.attributes[start:end],
        details.deliveries[start:end],
        details.timeouts_ms[start:end],
    )
