"""Codecs of adds, polls and fails: Cap'n Proto messages to plain values and back.

Most messages use few columns. So the code first asks whether a column is there, by its field: that
takes a tenth of the time of looking the field up by name and reading an empty list.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from queueber.ids import made_at_ms
from queueber.limits import ADD_ITEMS_MAX, POLL_ITEMS_CEILING, PRIORITY_DEFAULT
from queueber.model import (
    NO_DETAILS,
    Added,
    FailOutcome,
    ItemDetails,
    NewItems,
    Origin,
    Polled,
    Producer,
)
from queueber.schema import wire
from queueber.wire.lists import (
    read_attribute_columns,
    read_attribute_list,
    read_duration_ms,
    read_list,
    write_attribute_columns,
    write_attribute_list,
)
from queueber.wire.loads import read_load_ref, write_load_ref

_ADD = wire.AddRequest.schema.fields
_CONTENTS, _ITEMS = _ADD["contents"], _ADD["items"]
_DELAYS, _PRIORITIES, _KEYS = _ADD["delaysMs"], _ADD["priorities"], _ADD["keys"]
_ATTRIBUTES, _BATCH, _PRODUCER = _ADD["attributes"], _ADD["batch"], _ADD["producer"]
_ORIGIN = _ADD["origin"]
_ITEM = wire.Item.schema.fields
_ITEM_CONTENTS, _ITEM_PRIORITY = _ITEM["contents"], _ITEM["priority"]
_ITEM_DELAY_SECS, _ITEM_DELAY_MS = _ITEM["visibilityTimeoutSecs"], _ITEM["visibilityTimeoutMs"]
_ITEM_KEY, _ITEM_ATTRIBUTES = _ITEM["key"], _ITEM["attributes"]
_POLLED = wire.PolledItem.schema.fields
_POLLED_CONTENTS, _POLLED_ID = _POLLED["contents"], _POLLED["id"]
_POLLED_ATTEMPT, _POLLED_ADDED_AT = _POLLED["attempt"], _POLLED["addedAtMs"]
_DUPLICATES = wire.AddResponse.schema.fields["duplicates"]
_POLL_DETAILS = wire.PollResponse.schema.fields["details"]
_POLL_MANY_DETAILS = wire.PollManyResponse.schema.fields["details"]

# --- add ------------------------------------------------------------------------------------------


def read_add(request: Any) -> NewItems:
    """The items of an add. The service checks the lengths of the columns."""
    has = request._has_by_field
    columns = NewItems(
        read_list("contents", request._get_by_field(_CONTENTS), ADD_ITEMS_MAX),
        read_list("delaysMs", request.delaysMs, ADD_ITEMS_MAX) if has(_DELAYS) else (),
        read_list("priorities", request.priorities, ADD_ITEMS_MAX) if has(_PRIORITIES) else (),
        read_list("keys", request.keys, ADD_ITEMS_MAX) if has(_KEYS) else (),
        read_attribute_columns(request.attributes, ADD_ITEMS_MAX) if has(_ATTRIBUTES) else (),
        request.batch if has(_BATCH) else "",
        _read_producer(request.producer) if has(_PRODUCER) else None,
        _read_origin(request.origin) if has(_ORIGIN) else None,
    )
    return _with_items(request.items, columns) if has(_ITEMS) else columns


def _read_producer(producer: Any) -> Producer | None:
    return Producer(producer.id, producer.epoch, producer.sequence) if producer.id else None


def _read_origin(origin: Any) -> Origin:
    return Origin(read_load_ref(origin.load), origin.partition, origin.row)


def _with_items(listed: Any, columns: NewItems) -> NewItems:
    """The items of the original's list, followed by those in columns."""
    items = read_list("items", listed, ADD_ITEMS_MAX)
    if not items:
        return columns
    rows = [_read_item(item._get_by_field, item._has_by_field) for item in items]
    contents, delays_ms, priorities, keys, attributes = zip(*rows, strict=True)
    return NewItems(
        [*contents, *columns.contents],
        _in_front(delays_ms, columns.delays_ms, columns, 0),
        _in_front(priorities, columns.priorities, columns, PRIORITY_DEFAULT),
        _in_front(keys, columns.keys, columns, ""),
        _in_front(attributes, columns.attributes, columns, {}),
        columns.batch,
        columns.producer,
        columns.origin,
    )


def _read_item(get: Any, has: Any) -> tuple[bytes, int, int, str, dict[str, str]]:
    return (
        get(_ITEM_CONTENTS),
        read_duration_ms(get(_ITEM_DELAY_SECS), get(_ITEM_DELAY_MS)),
        get(_ITEM_PRIORITY),
        get(_ITEM_KEY) if has(_ITEM_KEY) else "",
        read_attribute_list(get(_ITEM_ATTRIBUTES)) if has(_ITEM_ATTRIBUTES) else {},
    )


def _in_front(
    values: Sequence[Any], column: Sequence[Any], columns: NewItems, missing: object
) -> list[Any]:
    """The values followed by the column; empty if every item has the default."""
    if not column and values.count(missing) == len(values):
        return []
    return [*values, *(column or [missing] * len(columns.contents))]


def write_add(target: Any, items: NewItems) -> None:
    """Write the items in columns."""
    target.contents = items.contents
    if items.delays_ms:
        target.delaysMs = items.delays_ms
    if items.priorities:
        target.priorities = items.priorities
    if items.keys:
        target.keys = items.keys
    if items.attributes:
        write_attribute_columns(target.init("attributes"), items.attributes)
    if items.batch:
        target.batch = items.batch
    if items.producer is not None:
        producer = target.init("producer")
        producer.id = items.producer.id
        producer.epoch = items.producer.epoch
        producer.sequence = items.producer.sequence
    if items.origin is not None:
        origin = target.init("origin")
        write_load_ref(origin.init("load"), items.origin.load)
        origin.partition = items.origin.partition
        origin.row = items.origin.row


def write_added(response: Any, added: Added) -> None:
    response.ids = list(added.ids)
    if added.duplicates:
        response.duplicates = list(added.duplicates)
    if added.is_repeat:
        response.isRepeat = True


def read_added(response: Any) -> Added:
    ids = list(response.ids)
    if not response._has_by_field(_DUPLICATES):
        return Added(ids, (), response.isRepeat)
    return Added(ids, list(response.duplicates), response.isRepeat)


# --- poll -----------------------------------------------------------------------------------------


def write_polled(response: Any, polled: Polled, *, columns: bool) -> None:
    response.lease = polled.lease_id
    if not columns:
        _write_polled_items(response, polled)
        return
    response.ids = list(polled.ids)
    response.contents = list(polled.contents)
    if polled.details is not NO_DETAILS:
        write_details(response.init("details"), polled.details)


def _write_polled_items(response: Any, polled: Polled) -> None:
    details = polled.details
    items = response.init("items", len(polled.ids))
    for at, (item_id, contents) in enumerate(zip(polled.ids, polled.contents, strict=True)):
        item = items[at]
        put = item._set_by_field
        put(_POLLED_CONTENTS, contents)
        put(_POLLED_ID, item_id)
        put(_POLLED_ATTEMPT, details.attempts[at] if details.attempts else 1)
        put(_POLLED_ADDED_AT, made_at_ms(item_id))
        if details is not NO_DETAILS:
            item.key = details.keys[at] if details.keys else ""
            item.batch = details.batches[at] if details.batches else ""
            if details.attributes:
                write_attribute_list(item, "attributes", details.attributes[at])


def write_polled_many(response: Any, answers: Sequence[Polled]) -> None:
    response.leases = [polled.lease_id for polled in answers]
    response.counts = [len(polled.ids) for polled in answers]
    response.ids = [item_id for polled in answers for item_id in polled.ids]
    response.contents = [contents for polled in answers for contents in polled.contents]
    if any(polled.details is not NO_DETAILS for polled in answers):
        write_details(response.init("details"), _joined(answers))


def read_polled(response: Any) -> Polled:
    """Read an answer in columns."""
    details = NO_DETAILS
    if response._has_by_field(_POLL_DETAILS):
        details = read_details(response.details)
    return Polled(response.lease, list(response.ids), list(response.contents), details)


def read_polled_many(response: Any) -> list[Polled]:
    ids, contents = list(response.ids), list(response.contents)
    details = None
    if response._has_by_field(_POLL_MANY_DETAILS):
        details = read_details(response.details)
    answers = []
    start = 0
    for lease_id, count in zip(response.leases, response.counts, strict=True):
        end = start + count
        part = NO_DETAILS if details is None else _slice(details, start, end)
        answers.append(Polled(lease_id, ids[start:end], contents[start:end], part))
        start = end
    return answers


def write_details(target: Any, details: ItemDetails) -> None:
    if details.attempts:
        target.attempts = list(details.attempts)
    if details.keys:
        target.keys = list(details.keys)
    if details.batches:
        target.batches = list(details.batches)
    if details.attributes:
        write_attribute_columns(target.init("attributes"), details.attributes)


def read_details(details: Any) -> ItemDetails:
    return ItemDetails(
        list(details.attempts),
        list(details.keys),
        list(details.batches),
        read_attribute_columns(details.attributes, POLL_ITEMS_CEILING),
    )


def _slice(details: ItemDetails, start: int, end: int) -> ItemDetails:
    return ItemDetails(
        details.attempts[start:end],
        details.keys[start:end],
        details.batches[start:end],
        details.attributes[start:end],
    )


def _joined(answers: Sequence[Polled]) -> ItemDetails:
    counted = [(polled.details, len(polled.ids)) for polled in answers]
    return ItemDetails(
        joined_columns([(details.attempts, count) for details, count in counted], 1),
        joined_columns([(details.keys, count) for details, count in counted], ""),
        joined_columns([(details.batches, count) for details, count in counted], ""),
        joined_columns([(details.attributes, count) for details, count in counted], {}),
    )


def joined_columns(columns: Iterable[tuple[Sequence[Any], int]], missing: object) -> list[Any]:
    """Join columns, each given with its number of items; empty if all columns are empty."""
    listed = list(columns)
    if not any(column for column, _ in listed):
        return []
    return [each for column, count in listed for each in (column or [missing] * count)]


# --- fail -----------------------------------------------------------------------------------------

_FAIL_OUTCOMES = tuple(FailOutcome)
"""In the order of their numbers in the schema, which has the same words for them."""


def write_fail_outcomes(response: Any, outcomes: Sequence[FailOutcome]) -> None:
    response.outcomes = [outcome.value for outcome in outcomes]


def read_fail_outcomes(response: Any) -> list[FailOutcome]:
    return [_FAIL_OUTCOMES[outcome.raw] for outcome in response.outcomes]
