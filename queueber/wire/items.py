"""Codecs of adds, completes and fails: Cap'n Proto messages to plain values and back.

Most messages use few columns. So the code first asks whether a column is there, by its field: that
takes a tenth of the time of looking the field up by name and reading an empty list.
"""

from collections.abc import Sequence
from typing import Any

from queueber.errors import InvalidArgument
from queueber.limits import ADD_ITEMS_MAX, AFTER_MAX, MANY_MAX, PRIORITY_DEFAULT
from queueber.model import (
    NO_OPTIONS,
    Added,
    FailOutcome,
    IdRuns,
    NewItems,
    Origin,
    Producer,
)
from queueber.schema import wire
from queueber.wire.item_options import read_options_of, write_options_of
from queueber.wire.lists import (
    read_attribute_columns,
    read_attribute_list,
    read_duration_ms,
    read_list,
    write_attribute_columns,
)
from queueber.wire.loads import read_load_ref, write_load_ref
from queueber.wire.packed import read_packed, write_packed

_ADD = wire.AddRequest.schema.fields
_CONTENTS, _ITEMS = _ADD["contents"], _ADD["items"]
_DELAYS, _PRIORITIES, _KEYS = _ADD["delaysMs"], _ADD["priorities"], _ADD["keys"]
_ATTRIBUTES, _BATCH, _PRODUCER = _ADD["attributes"], _ADD["batch"], _ADD["producer"]
_ORIGIN, _PACKED = _ADD["origin"], _ADD["packed"]
_OPTIONS, _AFTER, _AFTER_BATCH = _ADD["options"], _ADD["after"], _ADD["afterBatch"]
_ITEM = wire.Item.schema.fields
_ITEM_CONTENTS, _ITEM_PRIORITY = _ITEM["contents"], _ITEM["priority"]
_ITEM_DELAY_SECS, _ITEM_DELAY_MS = _ITEM["visibilityTimeoutSecs"], _ITEM["visibilityTimeoutMs"]
_ITEM_KEY, _ITEM_ATTRIBUTES = _ITEM["key"], _ITEM["attributes"]
_ADDED = wire.AddResponse.schema.fields
_PACKED_RESULTS = wire.CompleteRequest.schema.fields["packed"]
_ADDED_RUNS, _DUPLICATES = _ADDED["idRuns"], _ADDED["duplicates"]

# --- add ------------------------------------------------------------------------------------------


def read_add(request: Any) -> NewItems:
    """The items of an add. The service checks the lengths of the columns."""
    has = request._has_by_field
    columns = NewItems(
        _read_contents(request),
        read_list("delaysMs", request.delaysMs, ADD_ITEMS_MAX) if has(_DELAYS) else (),
        read_list("priorities", request.priorities, ADD_ITEMS_MAX) if has(_PRIORITIES) else (),
        read_list("keys", request.keys, ADD_ITEMS_MAX) if has(_KEYS) else (),
        read_attribute_columns(request.attributes, ADD_ITEMS_MAX) if has(_ATTRIBUTES) else (),
        request.batch if has(_BATCH) else "",
        read_producer(request.producer) if has(_PRODUCER) else None,
        _read_origin(request.origin) if has(_ORIGIN) else None,
    )
    if has(_AFTER):
        columns.after = read_list("after", request.after, AFTER_MAX)
    if has(_AFTER_BATCH):
        columns.after_batch = request.afterBatch
    if has(_OPTIONS):
        columns.options = read_options_of(request, len(columns.contents))
    return _with_items(request.items, columns) if has(_ITEMS) else columns


def _read_contents(request: Any) -> Sequence[bytes]:
    contents = request._get_by_field(_CONTENTS)
    if not request._has_by_field(_PACKED):
        return read_list("contents", contents, ADD_ITEMS_MAX)
    if len(contents):
        raise InvalidArgument("packed: contents were given, too; give the one or the other")
    return read_packed("packed", request.packed, ADD_ITEMS_MAX)


def read_producer(producer: Any) -> Producer | None:
    return Producer(producer.id, producer.epoch, producer.sequence) if producer.id else None


def write_producer(target: Any, producer: Producer) -> None:
    target.id = producer.id
    target.epoch = producer.epoch
    target.sequence = producer.sequence


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
        [NO_OPTIONS] * len(rows) + list(columns.options) if columns.options else (),
        columns.after,
        columns.after_batch,
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


def write_add(target: Any, items: NewItems, *, packed: bool = False) -> None:
    """Write the items in columns, with contents packed or as a list."""
    target.idRuns = True
    if packed:
        write_packed(target.init("packed"), items.contents)
    else:
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
        write_producer(target.init("producer"), items.producer)
    if items.origin is not None:
        origin = target.init("origin")
        write_load_ref(origin.init("load"), items.origin.load)
        origin.partition = items.origin.partition
        origin.row = items.origin.row
    if items.options:
        write_options_of(target, items.options)
    if items.after:
        target.after = items.after
    if items.after_batch:
        target.afterBatch = items.after_batch


def write_added(response: Any, added: Added, *, id_runs: bool = False) -> None:
    ids = added.ids
    if id_runs and isinstance(ids, IdRuns):
        response.idRuns = ids.packed
    else:
        response.ids = list(ids)
    if added.duplicates:
        response.duplicates = list(added.duplicates)
    if added.is_repeat:
        response.isRepeat = True


def read_added(response: Any) -> Added:
    has = response._has_by_field
    ids = IdRuns.read(response.idRuns) if has(_ADDED_RUNS) else response.ids
    return Added(
        list(ids), list(response.duplicates) if has(_DUPLICATES) else (), response.isRepeat
    )


# --- complete -------------------------------------------------------------------------------------


def read_results_of(request: Any) -> Sequence[bytes]:
    """The results of items that are completed, packed or in a list."""
    if not request._has_by_field(_PACKED_RESULTS):
        return read_list("results", request.results, MANY_MAX)
    if len(request.results):
        raise InvalidArgument("packed: results were given, too; give the one or the other")
    return read_packed("packed", request.packed, MANY_MAX)


# --- fail -----------------------------------------------------------------------------------------

_FAIL_OUTCOMES = tuple(FailOutcome)
"""In the order of their numbers in the schema, which has the same words for them."""


def write_fail_outcomes(response: Any, outcomes: Sequence[FailOutcome]) -> None:
    response.outcomes = [outcome.value for outcome in outcomes]


def read_fail_outcomes(response: Any) -> list[FailOutcome]:
    return [_FAIL_OUTCOMES[outcome.raw] for outcome in response.outcomes]
