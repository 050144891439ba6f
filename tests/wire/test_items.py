"""Adds and polls as messages: what is written is read back, and bad columns are refused."""

import pytest

from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.ids import made_at_ms
from queueber.model import NO_DETAILS, Added, ItemDetails, NewItems, Polled, Producer
from queueber.schema import wire
from queueber.wire.items import (
    joined_columns,
    read_add,
    read_added,
    read_polled,
    read_polled_many,
    write_add,
    write_added,
    write_polled,
    write_polled_many,
)
from tests.support.messages import sent

IDS = [bytes([n]) * 16 for n in range(1, 6)]
DETAILS = ItemDetails([1, 2], ["", "k"], ["b", ""], [{"name": "välue"}, {}])


def as_lists(items: NewItems) -> tuple[object, ...]:
    columns = (items.contents, items.delays_ms, items.priorities, items.keys, items.attributes)
    return (*map(list, columns), items.batch, items.producer)


@pytest.mark.parametrize(
    "items",
    [
        NewItems([b"one"]),
        NewItems([b"one", b""], [0, 5]),
        NewItems(
            [b"one", b"two"],
            [1, 2],
            [0, 9],
            ["key", ""],
            [{}, {"a": "1", "ü": ""}],
            "batch",
            Producer("me", 1 << 40, 7),
        ),
    ],
)
def test_an_add_is_read_as_it_was_written(items: NewItems) -> None:
    message = wire.AddRequest.new_message()
    write_add(message, items)

    assert as_lists(read_add(sent(message))) == as_lists(items)


def test_a_producer_without_an_id_is_none() -> None:
    message = wire.AddRequest.new_message(contents=[b"x"], producer={"epoch": 3, "sequence": 1})

    assert read_add(sent(message)).producer is None


def test_items_stand_before_columns_and_both_keep_what_they_carry() -> None:
    message = wire.AddRequest.new_message(
        items=[
            {"contents": b"plain"},
            {
                "contents": b"full",
                "visibilityTimeoutSecs": 2,
                "visibilityTimeoutMs": 5,
                "priority": 8,
                "key": "k",
                "attributes": [{"name": "a", "value": "1"}],
            },
        ],
        contents=[b"column"],
    )

    items = read_add(sent(message))

    assert as_lists(items)[:5] == (
        [b"plain", b"full", b"column"],
        [0, 2005, 0],
        [5, 8, 5],
        ["", "k", ""],
        [{}, {"a": "1"}, {}],
    )


def test_plain_items_have_no_columns() -> None:
    message = wire.AddRequest.new_message(items=[{"contents": b"a"}], contents=[b"b"])

    assert as_lists(read_add(sent(message))) == ([b"a", b"b"], [], [], [], [], "", None)


def test_columns_beside_plain_items_are_filled_up_for_them() -> None:
    message = wire.AddRequest.new_message(
        items=[{"contents": b"a"}], contents=[b"b"], keys=["k"], delaysMs=[3]
    )

    assert as_lists(read_add(sent(message)))[:4] == ([b"a", b"b"], [0, 3], [], ["", "k"])


@pytest.mark.parametrize("field", ["contents", "items", "delaysMs", "priorities", "keys"])
def test_a_column_is_counted_before_it_is_read(field: str) -> None:
    message = wire.AddRequest.new_message()
    message.init(field, 10_001)

    with pytest.raises(ResourceExhausted, match=f"{field}: the call has 10001"):
        read_add(message.as_reader())


@pytest.mark.parametrize("field", ["counts", "names", "values"])
def test_the_columns_of_attributes_are_counted_before_they_are_read(field: str) -> None:
    message = wire.AddRequest.new_message(contents=[b"x"])
    message.init("attributes").init(field, 320_001)

    with pytest.raises(ResourceExhausted, match=f"{field}: the call has 320001"):
        read_add(message.as_reader())


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ({"counts": [1], "names": ["a"], "values": []}, "1 names and 0 values"),
        ({"counts": [2], "names": ["a"], "values": ["b"]}, "add up to 2"),
        ({"counts": [2], "names": ["a", "a"], "values": ["b", "c"]}, "two of the same name"),
    ],
)
def test_attributes_that_do_not_fit_together_are_refused(
    attributes: dict[str, object], told: str
) -> None:
    message = wire.AddRequest.new_message(contents=[b"x"], attributes=attributes)

    with pytest.raises(InvalidArgument, match=told):
        read_add(sent(message))


@pytest.mark.parametrize(
    "added",
    [
        Added(IDS[:2], (), False),
        Added(IDS[:2], [False, True], False),
        Added(IDS[:1], (), True),
    ],
)
def test_the_answer_to_an_add_is_read_as_it_was_written(added: Added) -> None:
    message = wire.AddResponse.new_message()
    write_added(message, added)

    read = read_added(sent(message))

    assert (list(read.ids), list(read.duplicates)) == (list(added.ids), list(added.duplicates))
    assert read.is_repeat == added.is_repeat


@pytest.mark.parametrize("details", [NO_DETAILS, DETAILS])
def test_what_was_polled_is_read_as_it_was_written(details: ItemDetails) -> None:
    polled = Polled(IDS[4], IDS[:2], [b"one", b""], details)
    message = wire.PollResponse.new_message()
    write_polled(message, polled, columns=True)

    assert read_polled(sent(message)) == polled


def test_an_item_in_the_original_form_carries_its_details_too() -> None:
    message = wire.PollResponse.new_message()
    write_polled(message, Polled(IDS[4], IDS[:2], [b"one", b"two"], DETAILS), columns=False)

    first, second = sent(message).items

    assert (first.contents, first.id, first.addedAtMs) == (b"one", IDS[0], made_at_ms(IDS[0]))
    assert [(pair.name, pair.value) for pair in first.attributes] == [("name", "välue")]
    assert (first.attempt, first.key, first.batch) == (1, "", "b")
    assert (second.attempt, second.key, second.batch) == (2, "k", "")


def test_an_item_without_details_is_at_its_first_attempt() -> None:
    message = wire.PollResponse.new_message()
    write_polled(message, Polled(IDS[4], IDS[:1], [b"one"]), columns=False)

    assert sent(message).items[0].attempt == 1


def test_several_polls_keep_their_own_details() -> None:
    answers = [
        Polled(IDS[4], IDS[:1], [b"one"]),
        Polled(),
        Polled(IDS[3], IDS[1:3], [b"two", b"three"], DETAILS),
    ]
    message = wire.PollManyResponse.new_message()
    write_polled_many(message, answers)

    first, second, third = read_polled_many(sent(message))

    assert (first.ids, first.contents) == ([IDS[0]], [b"one"])
    assert (list(first.details.attempts), list(first.details.keys)) == ([1], [""])
    assert (second.lease_id, list(second.ids)) == (b"", [])
    assert third == answers[2]


def test_several_polls_without_details_have_none() -> None:
    message = wire.PollManyResponse.new_message()
    write_polled_many(message, [Polled(IDS[4], IDS[:1], [b"one"])])

    assert read_polled_many(sent(message))[0].details is NO_DETAILS


def test_columns_are_joined_with_what_stands_for_the_missing() -> None:
    assert joined_columns([((), 2), ((), 1)], 0) == []
    assert joined_columns([((), 2), ([7], 1)], 0) == [0, 0, 7]
