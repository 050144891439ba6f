"""Routes as they are stored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.records.keys import prefix_end, queue_prefix
from queueber.db.records.routes import (
    ROUTE_KEY_BYTES,
    RouteRecord,
    decode_route,
    encode_route,
    route_key,
    split_route_key,
)
from queueber.model import EventPayload, On

_NUMBERS = st.integers(1, (1 << 32) - 2)


@given(_NUMBERS, st.sampled_from(On), _NUMBERS)
def test_a_key_is_read_back_and_lies_in_the_range_of_its_queue(
    queue: int, on: On, topic: int
) -> None:
    key, prefix = route_key(queue, on, topic), queue_prefix(queue)

    assert split_route_key(key) == (queue, on, topic)
    assert len(key) == len(prefix) + ROUTE_KEY_BYTES
    assert prefix < key < prefix_end(prefix)


@given(st.text(), st.text(), st.sampled_from(EventPayload))
def test_a_record_is_read_back(where: str, partition_by: str, payload: EventPayload) -> None:
    record = RouteRecord(where, partition_by, payload)

    assert decode_route(encode_route(record)) == record


def test_a_record_is_what_it_was() -> None:
    record = RouteRecord("a = 1", "user", EventPayload.DIFF)

    assert route_key(7, On.DELETE, 9).hex() == "000000070200000009"
    assert encode_route(record).hex() == (
        "00000000060000000000000001000200020000000000000005000000320000000500"
        "00002a00000061203d20310000007573657200000000"
    )


def test_kinds_of_a_later_version_are_not_read() -> None:
    with pytest.raises(IndexError):
        split_route_key(queue_prefix(7) + b"\3" + queue_prefix(9))
