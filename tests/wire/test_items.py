"""Adds as messages: what is written is read back, and bad columns are refused."""

import pytest

from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.ids import ItemId, ids_up_to
from queueber.model import (
    NO_OPTIONS,
    Added,
    IdRuns,
    ItemOptions,
    NewItems,
    PackedContents,
    Producer,
)
from queueber.model.joined import joined_columns
from queueber.schema import wire
from queueber.wire.items import read_add, read_added, write_add, write_added
from tests.support.messages import sent

OWN = ItemOptions(3, (5, 1 << 40))
IDS = [ItemId(bytes([n]) * 16) for n in range(1, 6)]


def as_lists(items: NewItems) -> tuple[object, ...]:
    columns = (items.contents, items.delays_ms, items.priorities, items.keys, items.attributes)
    return (*map(list, columns), items.batch, items.producer, list(items.options))


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
        NewItems([b"one", b"two"], options=[OWN, OWN]),
        NewItems([b"one", b"two"], options=[NO_OPTIONS, OWN]),
        NewItems([b"1", b"2", b"3"], options=[ItemOptions(0), OWN, ItemOptions(None, (0,))]),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_an_add_is_read_as_it_was_written(items: NewItems, packed: bool) -> None:
    message = wire.AddRequest.new_message()
    write_add(message, items, packed=packed)

    read = read_add(sent(message))

    assert as_lists(read) == as_lists(items)
    assert isinstance(read.contents, PackedContents) == packed


@pytest.mark.parametrize(
    ("packed", "told"),
    [
        ({"ends": bytes(5), "values": b""}, "packed: the ends have 5 bytes"),
        ({"ends": b"\1\0\0\0", "values": b"ab"}, "packed: the ends of 1 contents do not fit 2"),
        ({"ends": b"\3\0\0\0", "values": b"ab"}, "packed: the ends of 1 contents do not fit 2"),
        ({"ends": b"\2\0\0\0\1\0\0\0\2\0\0\0", "values": b"ab"}, "do not fit"),
        ({"ends": b"", "values": b"ab"}, "packed: the ends of 0 contents do not fit 2"),
    ],
)
def test_packed_contents_whose_ends_do_not_fit_are_refused(
    packed: dict[str, bytes], told: str
) -> None:
    message = wire.AddRequest.new_message(packed=packed)

    with pytest.raises(InvalidArgument, match=told):
        read_add(sent(message))


def test_packed_contents_are_counted_before_they_are_read() -> None:
    message = wire.AddRequest.new_message(packed={"ends": bytes(40_004)})

    with pytest.raises(ResourceExhausted, match="packed: the call has 10001"):
        read_add(message.as_reader())


def test_contents_are_given_packed_or_in_a_list_but_not_both() -> None:
    message = wire.AddRequest.new_message(contents=[b"a"], packed={"values": b""})

    with pytest.raises(InvalidArgument, match="packed: contents were given, too"):
        read_add(sent(message))


def test_items_stand_before_packed_contents() -> None:
    message = wire.AddRequest.new_message(
        items=[{"contents": b"first"}], packed={"ends": b"\2\0\0\0", "values": b"ab"}
    )

    assert list(read_add(sent(message)).contents) == [b"first", b"ab"]


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

    assert as_lists(read_add(sent(message))) == ([b"a", b"b"], [], [], [], [], "", None, [])


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


def test_ids_are_answered_as_runs_to_those_who_ask() -> None:
    ids = IdRuns([(IDS[0], 3), (IDS[1], 1)])
    listed = [*ids_up_to(IDS[0], 3), IDS[1]]
    asked, not_asked = wire.AddResponse.new_message(), wire.AddResponse.new_message()
    write_added(asked, Added(ids), id_runs=True)
    write_added(not_asked, Added(ids))

    runs, plain = sent(asked), sent(not_asked)

    assert list(runs.ids) == []
    assert runs.idRuns == IDS[0] + b"\3\0\0\0" + IDS[1] + b"\1\0\0\0"
    assert list(plain.ids) == listed
    assert read_added(runs) == read_added(plain) == Added(listed)


def test_columns_are_joined_with_what_stands_for_the_missing() -> None:
    assert joined_columns([((), 2), ((), 1)], 0) == []
    assert joined_columns([((), 2), ([7], 1)], 0) == [0, 0, 7]


@pytest.mark.parametrize(
    ("options", "options_of", "told"),
    [
        ([{}], [1], "optionsOf: 1 for 2 items and 1 options; give one for each"),
        ([{}, {}], [], "optionsOf: 0 for 2 items and 2 options; give one for each"),
        ([{}, {}], [1, 3], "optionsOf: 3 is none of the 2 options"),
    ],
)
def test_options_that_do_not_fit_the_items_are_refused(
    options: list[dict[str, int]], options_of: list[int], told: str
) -> None:
    message = wire.AddRequest.new_message(contents=[b"1", b"2"])
    message.options = options
    message.optionsOf = options_of

    with pytest.raises(InvalidArgument, match=told):
        read_add(sent(message))


def test_items_in_a_list_have_no_options_and_those_in_columns_behind_them_have() -> None:
    message = wire.AddRequest.new_message(items=[{"contents": b"1"}], contents=[b"2"])
    message.options = [{"attemptsMax": 2}]

    assert read_add(sent(message)).options == [NO_OPTIONS, ItemOptions(2)]
