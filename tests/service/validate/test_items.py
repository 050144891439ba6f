"""The checks of what calls say of items, batches and readers: at each limit, and one past it."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from queueber.errors import InvalidArgument, QueueberError, ResourceExhausted
from queueber.limits import (
    ADD_ITEMS_MAX,
    ATTRIBUTES_BYTES_MAX,
    ATTRIBUTES_MAX,
    BATCH_NAME_BYTES_MAX,
    DELAY_MS_MAX,
    ERROR_BYTES_MAX,
    ITEM_WIRE_BYTES,
    KEY_BYTES_MAX,
    MESSAGE_OVERHEAD_BYTES,
    MIB,
    PRIORITY_MAX,
    PRODUCER_ID_BYTES_MAX,
    READER_NAME_BYTES_MAX,
)
from queueber.model import NewItems, Producer
from queueber.service.validate.items import (
    check_batch,
    check_cursor,
    check_delays_ms,
    check_errors,
    check_new_items,
    check_pause_ms,
    check_reader,
    check_results,
)

ITEM_BYTES_MAX = 10
TWO = (b"a", b"b")


def check_add(items: NewItems, message_bytes_max: int = MIB) -> None:
    check_new_items(items, item_bytes_max=ITEM_BYTES_MAX, message_bytes_max=message_bytes_max)


def two(**columns: Any) -> NewItems:
    return NewItems(TWO, **columns)


def attributes(count: int, size: int) -> dict[str, str]:
    """So many attributes, of so many bytes altogether."""
    made = {f"{number:02}": "" for number in range(count)}
    made["00"] = "v" * (size - 2 * count)
    return made


Check = Callable[[], None]

TAKEN: dict[str, Check] = {
    "an empty item": lambda: check_add(NewItems([b""])),
    "as many items, as large": lambda: check_add(NewItems([b"x" * 10] * ADD_ITEMS_MAX)),
    "nothing": lambda: check_add(NewItems([])),
    "delays": lambda: check_add(two(delays_ms=[0, DELAY_MS_MAX])),
    "priorities": lambda: check_add(two(priorities=[0, PRIORITY_MAX])),
    "keys": lambda: check_add(two(keys=["", "ä" * (KEY_BYTES_MAX // 2)])),
    "as many attributes": lambda: check_add(two(attributes=[{}, attributes(ATTRIBUTES_MAX, 100)])),
    "attributes as large": lambda: check_add(
        two(attributes=[attributes(2, ATTRIBUTES_BYTES_MAX)] * 2)
    ),
    "a batch": lambda: check_add(two(batch="b" * BATCH_NAME_BYTES_MAX)),
    "a producer": lambda: check_add(two(producer=Producer("p" * PRODUCER_ID_BYTES_MAX, 0, 1))),
    "results": lambda: check_results([b"", b"x" * 10], 2, ITEM_BYTES_MAX),
    "errors": lambda: check_errors(["", "ä" * (ERROR_BYTES_MAX // 2)]),
    "delays after a failure": lambda: check_delays_ms([-1, 0, DELAY_MS_MAX]),
    "the name of a batch": lambda: check_batch("b" * BATCH_NAME_BYTES_MAX),
    "the name of a reader": lambda: check_reader("r" * READER_NAME_BYTES_MAX),
    "no pause": lambda: check_pause_ms(0),
    "a pause": lambda: check_pause_ms(DELAY_MS_MAX),
    "no cursor": lambda: check_cursor("after", b""),
    "a cursor": lambda: check_cursor("after", bytes(64)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_check_of_what_is_at_the_limit_is_taken(name: str) -> None:
    TAKEN[name]()


REFUSED: dict[str, tuple[type[QueueberError], str, Check]] = {
    "no item of a producer": (
        InvalidArgument,
        "items: the call has none; a call of a producer adds at least one",
        lambda: check_add(NewItems([], producer=Producer("p", 0, 1))),
    ),
    "too many items": (
        ResourceExhausted,
        f"items: the call has {ADD_ITEMS_MAX + 1}; the limit is {ADD_ITEMS_MAX}, "
        "send several calls",
        lambda: check_add(NewItems([b""] * (ADD_ITEMS_MAX + 1))),
    ),
    "an item too large": (
        ResourceExhausted,
        "contents: an item has 11 bytes; the limit is 10",
        lambda: check_add(NewItems([b"", b"x" * 11, b"y" * 10])),
    ),
    "a delay too long": (
        InvalidArgument,
        f"visibilityTimeout: {DELAY_MS_MAX + 1} ms is too long; the limit is {DELAY_MS_MAX}",
        lambda: check_add(two(delays_ms=[0, DELAY_MS_MAX + 1])),
    ),
    "a priority too high": (
        InvalidArgument,
        f"priority: {PRIORITY_MAX + 1} is too high; it must be 0 to {PRIORITY_MAX}",
        lambda: check_add(two(priorities=[PRIORITY_MAX + 1, 0])),
    ),
    "a key too long": (
        InvalidArgument,
        f"key: {'k' * 50!r}... has {KEY_BYTES_MAX + 1} bytes; the limit is {KEY_BYTES_MAX}",
        lambda: check_add(two(keys=["k", "k" * (KEY_BYTES_MAX + 1)])),
    ),
    "too many attributes": (
        InvalidArgument,
        f"attributes: an item has {ATTRIBUTES_MAX + 1}; the limit is {ATTRIBUTES_MAX}",
        lambda: check_add(two(attributes=[{}, attributes(ATTRIBUTES_MAX + 1, 100)])),
    ),
    "attributes too large": (
        InvalidArgument,
        f"attributes: those of an item have {ATTRIBUTES_BYTES_MAX + 1} bytes; the limit is "
        f"{ATTRIBUTES_BYTES_MAX}",
        lambda: check_add(two(attributes=[{}, attributes(1, ATTRIBUTES_BYTES_MAX + 1)])),
    ),
    "an attribute without a name": (
        InvalidArgument,
        "attributes: one has an empty name; every name has a letter",
        lambda: check_add(two(attributes=[{}, {"": "value"}])),
    ),
    "a batch too long": (
        InvalidArgument,
        f"batch: {'b' * 50!r}... has {BATCH_NAME_BYTES_MAX + 1} bytes; the limit is "
        f"{BATCH_NAME_BYTES_MAX}",
        lambda: check_add(two(batch="b" * (BATCH_NAME_BYTES_MAX + 1))),
    ),
    "a producer without a name": (
        InvalidArgument,
        f"producer.id: it is empty; give 1 to {PRODUCER_ID_BYTES_MAX} bytes of text",
        lambda: check_add(two(producer=Producer("", 1, 1))),
    ),
    "a producer too long": (
        InvalidArgument,
        f"producer.id: {'p' * 50!r}... has {PRODUCER_ID_BYTES_MAX + 1} bytes; the limit is "
        f"{PRODUCER_ID_BYTES_MAX}",
        lambda: check_add(two(producer=Producer("p" * (PRODUCER_ID_BYTES_MAX + 1), 1, 1))),
    ),
    "a producer at sequence 0": (
        InvalidArgument,
        "producer.sequence: 0; the first call of an epoch has 1",
        lambda: check_add(two(producer=Producer("p", 1, 0))),
    ),
    "a result too large": (
        ResourceExhausted,
        "results: one has 11 bytes; the limit is 10",
        lambda: check_results([b"", b"x" * 11], 2, ITEM_BYTES_MAX),
    ),
    "an error too long": (
        InvalidArgument,
        f"errors: one has {ERROR_BYTES_MAX + 2} bytes; the limit is {ERROR_BYTES_MAX}",
        lambda: check_errors(["", "ä" * (ERROR_BYTES_MAX // 2 + 1)]),
    ),
    "a reader too long": (
        InvalidArgument,
        f"reader: {'r' * 50!r}... has {READER_NAME_BYTES_MAX + 1} bytes; the limit is "
        f"{READER_NAME_BYTES_MAX}",
        lambda: check_reader("r" * (READER_NAME_BYTES_MAX + 1)),
    ),
    "a pause too long": (
        InvalidArgument,
        f"forMs: {DELAY_MS_MAX + 1} is too long; the limit is {DELAY_MS_MAX}, and 0 is until "
        "resumed",
        lambda: check_pause_ms(DELAY_MS_MAX + 1),
    ),
    "no cursor of ours": (
        InvalidArgument,
        "after: 65 bytes are no cursor, which has 64 at most; give back what the page before said",
        lambda: check_cursor("after", bytes(65)),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_check_of_what_is_past_the_limit_names_the_field_what_it_was_and_the_limit(
    name: str,
) -> None:
    error, message, check = REFUSED[name]

    with pytest.raises(error) as raised:
        check()

    assert str(raised.value) == message


@pytest.mark.parametrize("delay_ms", [-2, DELAY_MS_MAX + 1])
def test_check_of_a_delay_after_a_failure_out_of_range_names_it_and_the_range(
    delay_ms: int,
) -> None:
    with pytest.raises(InvalidArgument) as raised:
        check_delays_ms([0, delay_ms])

    assert str(raised.value) == (
        f"delaysMs: {delay_ms} is out of range; it must be 0 to {DELAY_MS_MAX}, or -1 for the "
        "queue's backoff"
    )


def test_check_of_more_than_a_message_names_its_size_and_the_limit() -> None:
    items = NewItems([b"x" * 10] * 3)
    size = 3 * 10 + 3 * ITEM_WIRE_BYTES + MESSAGE_OVERHEAD_BYTES
    check_add(items, message_bytes_max=size)

    with pytest.raises(
        ResourceExhausted, match=rf"^contents: the call has {size} bytes; the limit is {size - 1},"
    ):
        check_add(items, message_bytes_max=size - 1)


COLUMNS: dict[str, tuple[str, Sequence[object]]] = {
    "delays_ms": ("delaysMs", [1, 1, 1]),
    "priorities": ("priorities", [1, 1, 1]),
    "keys": ("keys", ["k", "k", "k"]),
    "attributes": ("attributes", [{}, {}, {}]),
}


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("column", COLUMNS)
def test_check_of_a_column_of_another_length_names_it_and_both_lengths(
    column: str, count: int
) -> None:
    field, values = COLUMNS[column]

    with pytest.raises(InvalidArgument) as raised:
        check_add(two(**{column: values[:count]}))

    assert str(raised.value) == f"{field}: {count} for 2 items; give one for each"


@pytest.mark.parametrize("count", [0, 1, 3])
def test_check_of_results_of_another_number_names_both(count: int) -> None:
    with pytest.raises(InvalidArgument) as raised:
        check_results([b"r"] * count, 2, ITEM_BYTES_MAX)

    assert str(raised.value) == f"results: {count} for 2 ids; give one for each"
