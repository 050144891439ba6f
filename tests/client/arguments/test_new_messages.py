"""What may be published, and what is refused before it is sent."""

from typing import Any

import pytest

from queueber import InvalidArgument, NewMessage
from queueber.client.arguments.new_messages import to_new_messages, to_publication
from queueber.model import NewMessages, Producer


def test_bytes_tuples_and_messages_become_columns() -> None:
    messages = [b"a", (b"b", "k"), NewMessage(b"c", "l", {"x": "1"}, "once"), bytearray(b"d")]

    assert to_new_messages(messages) == NewMessages(
        [b"a", b"b", b"c", b"d"],
        ["", "k", "l", ""],
        [{}, {}, {"x": "1"}, {}],
        ["", "", "once", ""],
    )


@pytest.mark.parametrize("one", [b"a", [b"a"], NewMessage(b"a"), (m for m in [b"a"])])
def test_a_single_message_needs_no_list_and_no_columns(one: Any) -> None:
    assert to_new_messages(one) == NewMessages([b"a"])


def test_a_payload_and_its_key_are_one_message() -> None:
    assert to_new_messages((b"a", "k")) == NewMessages([b"a"], ["k"])


def test_a_producer_may_be_a_tuple() -> None:
    publication = to_publication("orders", b"a", producer=("importer", 1, 2))

    assert publication.producer == Producer("importer", 1, 2)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"messages": "text"}, "messages: str is text; encode it to bytes first"),
        ({"messages": 7}, "messages: 7 is neither bytes nor a list of messages"),
        ({"messages": []}, "messages: there are none; publish at least one, or close=True"),
        ({"messages": ["x"]}, "messages: message 0 is str; it must be bytes"),
        ({"messages": [b"a", (b"b",)]}, "messages: message 1 is a tuple of 1; give (payload, key)"),
        ({"messages": [(b"a", 7)]}, "key: 7 is not text; it must be str"),
        ({"messages": [(b"a", "k" * 513)]}, "key: it has 513 bytes; the limit is 512"),
        ({"messages": [b"a"] * 10_001}, "messages: there are 10001; the limit is 10000"),
        ({"partition": 256}, "partition: 256 is too many; the limit is 255"),
        ({"partition": -1}, "partition: -1 is not a number, 0 or more"),
        ({"expected_offset": -1}, "expected_offset: -1 is not an offset, 0 or more"),
        ({"producer": "p"}, "producer: 'p' is not a producer"),
        ({"producer": ("", 1, 1)}, "producer: it is empty"),
        ({"producer": ("p", 1, 0)}, "producer.sequence: 0 is not a number, 1 or more"),
        ({"close": 1}, "close: 1 is neither True nor False"),
        ({"topic": "a b"}, "topic: 'a b' is not the name of a topic; use 1 to 255 letters"),
        ({"topic": "t" * 256}, "is not the name of a topic; use 1 to 255 letters"),
        ({"messages": NewMessage(b"a", attributes={"x": 1})}, "attributes: 1 is not text"),  # type: ignore[dict-item]
        ({"messages": NewMessage(b"a", dedup_id="d" * 257)}, "dedup_id: it has 257 bytes"),
    ],
)
def test_what_cannot_be_published_is_refused_with_a_reason(given: Any, told: str) -> None:
    arguments = {"topic": "orders", "messages": b"a", **given}

    with pytest.raises(InvalidArgument) as refused:
        to_publication(**arguments)

    assert told in str(refused.value)
